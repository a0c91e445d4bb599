"""OpenBLAS uses AVX-512 where the processor has it, in this process and, with the same bits, in its children."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from minidl import instruction_set
from minidl.instruction_set import VARIABLE, WIDEST
from tests.tiers import exhaustively

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(instruction_set.processor() is None, reason="Linux on x86 only"),
]

ROOT = Path(__file__).resolve().parent.parent
AVX2 = "fpu sse2 avx avx2 fma"
AVX512 = f"{AVX2} avx512f avx512dq avx512cd avx512bw avx512vl"
IS_OPENBLAS = instruction_set.openblas() is not None


def cpuinfo(vendor: str = "GenuineIntel", family: int = 6, model: int = 0x9E, flags: str = AVX512) -> str:
    core = f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nflags\t\t: {flags}\n"
    return f"{core}\n{core.replace(flags, 'fpu')}"


def test_the_variable_is_set_only_where_openblas_would_miss_avx512(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = (
        ("GenuineIntel", 6, 0x9E, AVX512, True),  # the name of a Coffee Lake
        ("GenuineIntel", 19, 0x01, AVX512, True),  # Diamond Rapids, which OpenBLAS 0.3.31 takes for a Pentium 4
        ("AuthenticAMD", 0x17, 0x31, AVX512, True),  # of a Zen 2
        ("GenuineIntel", 6, 0x9E, AVX2, False),
        ("GenuineIntel", 6, 0x9E, AVX512.replace(" avx512vl", ""), False),
        ("GenuineIntel", 6, 0x55, AVX512, False),  # Skylake-X, Cascade Lake, Cooper Lake: OpenBLAS knows them
        ("GenuineIntel", 6, 0xCF, AVX512, False),  # Emerald Rapids: a name unknown to OpenBLAS, which then looks
        ("AuthenticAMD", 0x19, 0x11, AVX512, False),  # Zen 4
        ("HygonGenuine", 0x18, 0x00, AVX512, False),
    )
    texts = [(cpuinfo(*which), is_set) for *which, is_set in cases]
    unreadable = ("", "processor\t: 0\n", cpuinfo().replace("6\n", "six\n"))
    without_numpy = SimpleNamespace(modules={}, platform=sys.platform, maxsize=sys.maxsize)
    monkeypatch.setattr(instruction_set, "sys", without_numpy)
    monkeypatch.setattr(instruction_set, "CPUINFO", str(tmp_path / "cpuinfo"))
    for text, is_set in (*texts, *((text, False) for text in unreadable)):
        (tmp_path / "cpuinfo").write_text(text)
        monkeypatch.delenv(VARIABLE, raising=False)
        instruction_set.use_avx512()
        assert os.environ.get(VARIABLE) == (WIDEST if is_set else None), text


def test_importing_minidl_sets_the_variable_unless_the_user_has_or_numpy_is_loaded(tmp_path: Path) -> None:
    assert after_importing_minidl(tmp_path, cpuinfo()) == WIDEST
    assert after_importing_minidl(tmp_path, "") == "not set"
    assert after_importing_minidl(tmp_path, cpuinfo(), **{VARIABLE: "HASWELL"}) == "HASWELL"
    assert after_importing_minidl(tmp_path, cpuinfo(), first="import numpy") == "not set"


def after_importing_minidl(folder: Path, text: str, first: str = "pass", **variables: str) -> str:
    """OPENBLAS_CORETYPE after `import minidl` on a machine whose /proc/cpuinfo has this text; a warning is an error."""
    script = """
        import minidl, os
        print(os.environ.get("OPENBLAS_CORETYPE", "not set"))
    """
    return python(folder, f"{first}\n{on_a_machine_with(folder, text)}\n{stripped(script)}", **variables)


def on_a_machine_with(folder: Path, text: str) -> str:
    """The beginning of a script: the module that minidl is about to import, reading another /proc/cpuinfo."""
    (folder / "cpuinfo").write_text(text)
    return stripped(f"""
        import importlib.util, sys
        spec = importlib.util.spec_from_file_location("minidl.instruction_set", {instruction_set.__file__!r})
        module = sys.modules["minidl.instruction_set"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.CPUINFO = {str(folder / "cpuinfo")!r}
    """)


def stripped(script: str) -> str:
    return "\n".join(line.strip() for line in script.splitlines())


def python(folder: Path, script: str, **variables: str) -> str:
    """What the script prints; OPENBLAS_CORETYPE is in its environment only if `variables` has it."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    environment |= {"PYTHONPATH": str(ROOT)} | variables
    path = folder / "script.py"
    path.write_text(script)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)], env=environment, cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


# Children

IN_USE = """
import os
import numpy as np
from minidl import cluster, instruction_set
from minidl.cluster import Processes

def program(comm):
    x = np.random.default_rng(0).normal(size=(64, 300)).astype(np.float32)
    return instruction_set.openblas(), (x @ x.T).tobytes(), os.environ.get("OPENBLAS_CORETYPE")

class Here:
    rank = 0

engines = {engines}
here = program(Here)
for engine in engines:
    for there in cluster.launch(program, nodes=2, on=engine, timeout=60).results:
        assert there == here, (engine, there[0], here[0], there[2], here[2])
print(*here[::2])
"""


@pytest.mark.skipif(not IS_OPENBLAS, reason="numpy has another BLAS")
@pytest.mark.parametrize(
    ("kernels", "engines"),
    [("Haswell", "[Processes()]"), *exhaustively(("SkylakeX", "[Processes(start_method='spawn'), 'mpi']"))],
)
def test_ranks_compute_with_the_kernels_of_the_launching_process(engines: str, kernels: str, tmp_path: Path) -> None:
    if kernels == "SkylakeX" and not instruction_set.processor().has_avx512:  # type: ignore[union-attr]
        pytest.skip("this processor has no AVX-512")
    if "mpi" in engines:
        pytest.importorskip("mpi4py", reason="needs the extra mpi")
    # As in a notebook that imports numpy first: the variable, which counted when numpy was loaded, is gone.
    loaded_before = f"import os; os.environ['{VARIABLE}'] = '{kernels}'; import numpy; del os.environ['{VARIABLE}']"
    script = f"{loaded_before}\n{IN_USE.format(engines=engines)}"
    assert python(tmp_path, script, OPENBLAS_NUM_THREADS="1") == f"{kernels} None"


@pytest.mark.skipif(not IS_OPENBLAS, reason="numpy has another BLAS")
def test_what_the_course_starts_computes_with_the_kernels_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    from course.commands import lab, test

    given: list[dict[str, str]] = []
    for command in (lab, test):
        monkeypatch.setattr(command, "run_child", lambda _, environment=None: given.append(environment or {}) or 0)
        command.run(["-x"])
    kernels = {variables[VARIABLE] for variables in given if variables}
    assert kernels == {instruction_set.openblas().upper()}  # type: ignore[union-attr]


# The same on every machine


@pytest.mark.skipif(not IS_OPENBLAS, reason="numpy has another BLAS")
def test_a_lecture_computes_with_the_instructions_that_every_machine_has(tmp_path: Path) -> None:
    from course.building import execution

    variables = execution.environment("scratch")
    assert variables.items() >= instruction_set.common().items()
    if not instruction_set.common():
        pytest.skip("this processor has no AVX2")
    script = """
        import minidl
        from minidl import instruction_set
        from numba import config
        from numba.core.registry import cpu_target
        from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
        wide = {"X86_V4", "AVX512_ICL", "AVX512_SPR"}
        print(instruction_set.openblas(), config.CPU_NAME, wide == set(__cpu_dispatch__) - {"X86_V3"})
        print(*[name for name in __cpu_dispatch__ if __cpu_features__[name]])
        triple, name, features = cpu_target.target_context.codegen().magic_tuple()  # what LLVM compiles for
        print(name, features)
    """
    printed = python(tmp_path, stripped(script), **instruction_set.common())
    assert printed == "Haswell haswell True\nX86_V3\nhaswell +avx2,+fma"


def test_instructions_are_chosen_only_where_the_processor_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for features, is_pinned in (("avx2 fma", True), (f"{AVX512} fma", True), ("avx fma", False), (None, False)):
        found = features and instruction_set.Processor("GenuineIntel", 6, 0x55, frozenset(features.split()))
        monkeypatch.setattr(instruction_set, "processor", lambda found=found: found)
        assert bool(instruction_set.common()) == is_pinned


# What is lost


def test_info_says_what_is_lost_and_what_to_type_and_is_silent_where_nothing_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from minidl.cli.info import facts

    monkeypatch.setattr(instruction_set, "CPUINFO", str(tmp_path / "cpuinfo"))
    for kernels, flags in (("SkylakeX", AVX512), ("Haswell", AVX2), (None, AVX512), ("Haswell", AVX512)):
        (tmp_path / "cpuinfo").write_text(cpuinfo(flags=flags))
        monkeypatch.setattr(instruction_set, "openblas", lambda kernels=kernels: kernels)
        assert (instruction_set.lost() is None) == ((kernels, flags) != ("Haswell", AVX512))
    monkeypatch.delenv(VARIABLE, raising=False)
    lost = dict(facts())["AVX-512"]
    assert "OpenBLAS runs its Haswell kernels, without the AVX-512 of this processor" in lost
    assert lost.endswith("start Python with OPENBLAS_CORETYPE=SKYLAKEX, or import minidl before numpy")
    monkeypatch.setenv(VARIABLE, "haswell")
    assert dict(facts())["AVX-512"].endswith("start Python without OPENBLAS_CORETYPE=haswell")
