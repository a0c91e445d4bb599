"""While a check calls an answer, the library's version of what the exercise builds is refused; cells may try it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from course.building.sources import sources
from course.judging import Answer, Builds, ChapterChecks, Outcome, Part, expect, judging
from course.judging.judged_notebook import PREPARED
from course.judging.process.student_session import StudentSession
from course.sandbox.refused.refusals import located

pytestmark = pytest.mark.timeout(300)

CELL = """
import functools, importlib, inspect, sys
import numpy as np
import minidl
from minidl import Tensor, cluster, gradcheck, nn, optim
from minidl import functional as F
from minidl.cluster import collectives, cost
from minidl.cluster.collectives import all_reduce_ring as ring
from minidl.mini import collectives as core
class Alone: rank, size = 0, 1
seconds = cost.all_reduce
partial = functools.partial(cost.all_reduce, "ring")
modules = dict(sys.modules)
class Mine(Tensor): pass
class MySGD(optim.SGD): pass
tensor = Tensor([1.0, 2.0], requires_grad=True)
sgd = optim.SGD([nn.Parameter([1.0])], lr=0.1)
tried = cluster.launch(lambda comm: comm.all_reduce(1.0, algorithm="ring"), nodes=2, on="simulation").results
tried_too = seconds("ring", 4, 4000, 1e-6, 1e-9)
bound = tensor.sum
source = inspect.getsource(cost)
del sys.modules["minidl.cluster.cost.formulas"]
from minidl.cluster import cost as again
sys.modules.pop("minidl.cluster.cost.formulas", None)
once_more = importlib.import_module("minidl.cluster.cost.formulas").all_reduce
reloaded = importlib.reload(collectives).all_reduce_ring
F.matmul.__module__ = sys.modules[F.__name__].matmul.__module__ = __name__
unwrapped = collectives.all_reduce_rabenseifner.__wrapped__
del collectives.all_reduce_rabenseifner.__wrapped__
"""

COSTS = Builds("minidl.cluster.cost.formulas", "minidl.cluster.launch", instead="a formula")
COLLECTIVES = Builds("minidl.cluster.collectives", instead="comm.send and comm.recv")
AUTOGRAD = Builds("minidl", instead="numpy")
RULES = Builds("minidl.optim", instead="numpy")

FOUR = '"ring", 4, 4000, 1e-6, 1e-9'
REFUSED = {
    "an import inside": (COSTS, f"from minidl.cluster import cost\nreturn cost.all_reduce({FOUR})"),
    "the core's version": (COLLECTIVES, "return core.all_reduce(Alone(), np.ones(3))"),
    "the core's version, imported inside": (
        RULES, "from minidl.mini.nn import SGD\nreturn SGD(0.1).step(1.0, 2.0)"),
    "a name of a cell": (COSTS, f"return seconds({FOUR})"),
    "a partial": (COSTS, "return partial(4, 4000, 1e-6, 1e-9)"),
    "an old sys.modules": (COSTS, f"return modules['minidl.cluster.cost.formulas'].all_reduce({FOUR})"),
    "imported once more": (COSTS, f"return once_more({FOUR})"),
    "reload": (COSTS, f"return importlib.reload(cost).all_reduce({FOUR})"),
    "a new copy": (COSTS, f"del sys.modules['minidl.cluster.cost.formulas']\nimport minidl.cluster.cost.formulas as c\n"
                   f"return c.all_reduce({FOUR})"),
    "its source": (COSTS, "names = {}\nexec(open(cost.formulas.__file__).read(), names)\nreturn names['ring']"),
    "its compiled file": (COSTS, "import importlib.util as u\nfile = u.cache_from_source(cost.formulas.__file__)\n"
                          "return open(file, 'rb').read()"),
    "a simulation": (COSTS, "return cluster.launch(lambda comm: 0, nodes=2, on='simulation').seconds"),
    "another program": (COSTS, "import subprocess\nreturn subprocess.run([sys.executable, '-c', 'print(1)'])"),
    "a thread": (COSTS, f"import concurrent.futures as c\nwith c.ThreadPoolExecutor() as pool:\n"
                 f"    return pool.submit(seconds, {FOUR}).result()"),
    "gc": (COSTS, "import gc, types\ngc.unfreeze()\n"
           "fs = [f for f in gc.get_objects() if type(f) is types.FunctionType and "
           f"f.__name__ == 'all_reduce' and f.__module__ == 'minidl.cluster.cost.formulas']\nreturn fs[0]({FOUR})"),
    "with the library's names": (COSTS, f"code = compile('got = all_reduce({FOUR})', cost.__file__, 'exec')\n"
                                 "exec(code, vars(cost))\nreturn cost.got"),
    "a module that looks like it": (COSTS, "import types\nm = sys.modules['minidl.a'] = types.ModuleType('minidl.a')\n"
                                    f"m.f = seconds\nexec(compile('x = f({FOUR})', cost.__file__, 'exec'), vars(m))\n"
                                    "return m.x"),
    "a collective": (COLLECTIVES, "return ring(None, np.ones(3))"),
    "reloaded in a cell": (COLLECTIVES, "return reloaded(None, np.ones(3))"),
    "a tensor of a cell": (AUTOGRAD, "return (tensor * tensor).sum().backward()"),
    "an operator": (AUTOGRAD, "return tensor + 1"),
    "numpy's function": (AUTOGRAD, "return np.exp(tensor)"),
    "a bound method": (AUTOGRAD, "return bound()"),
    "a subclass": (AUTOGRAD, "return Mine([1.0])"),
    "one that a cell calls its own": (AUTOGRAD, "return F.matmul(tensor, tensor)"),
    "one that a cell has unwrapped": (COLLECTIVES, "return unwrapped(None, np.ones(3))"),
    "kernels": (AUTOGRAD, "from minidl.kernels import reference\nreturn reference.relu(np.ones(2))"),
    "an optimizer of a cell": (RULES, "return sgd.step()"),
    "a subclass of an optimizer": (RULES, "return MySGD([nn.Parameter([1.0])], lr=0.1)"),
}  # fmt: skip

IS = {
    "the function": (COSTS, "cost.all_reduce"),
    "another name of it": (COSTS, "seconds"),
    "a partial": (COSTS, "functools.partial(cost.all_reduce, 'ring')"),
    "a bound method": (AUTOGRAD, "tensor.sum"),
    "a class": (AUTOGRAD, "Tensor"),
    "a subclass": (AUTOGRAD, "Mine"),
    "an object that can be called": (AUTOGRAD, "nn.Linear(2, 2)"),
    "a decorated function": (COLLECTIVES, "functools.lru_cache(collectives.all_reduce_ring)"),
    "called by another": (COSTS, "functools.partial(__import__('contextvars').copy_context().run, cost.all_reduce)"),
    "exported by a file": (COSTS, "__import__('helper_file').time"),
    "a method of it": (RULES, "sgd.step"),
    "the core's version": (COLLECTIVES, "core.all_reduce"),
}  # fmt: skip
"""Answers that are the library's version, rather than call it."""

ALLOWED = {
    "another part of the library": (RULES, "tensor.grad = None\n(tensor * tensor).sum().backward()\n"
                                    "return tensor.grad.tolist()", "[2.0, 4.0]"),
    "what is built on it": (COLLECTIVES, "return cluster.launch(lambda comm: comm.all_reduce(1.0, algorithm='ring'), "
                            "nodes=2, on='simulation').results", "[2.0, 2.0]"),
    "a fork": (COSTS, "import os\nif os.fork() == 0: os._exit(0)\nreturn os.wait()[1]", "0"),
    "numpy": (AUTOGRAD, "return float(np.ones(3).sum())", "3.0"),
    "an enumeration": (AUTOGRAD, "import enum\nclass Side(enum.Enum): LEFT = 1\nreturn Side(1).name", "LEFT"),
    "the signature of a function": (AUTOGRAD, "import inspect\nreturn str(inspect.signature(lambda x: x))", "(x)"),
    "a protocol": (AUTOGRAD, "import typing\nclass Sized(typing.Protocol): n: int\nclass Two(Sized): n = 2\n"
                   "return Two().n", "2"),
    "to compile": (AUTOGRAD, "import numba\nreturn numba.njit(lambda x: x + 1)(1)", "2"),
    "to show a tensor": (AUTOGRAD, "return 'tensor' in repr(tensor).lower()", "True"),
}  # fmt: skip


@pytest.fixture(scope="module")
def session() -> Iterator[StudentSession]:
    def load(session: StudentSession) -> None:
        session.prepare(*PREPARED)
        kind, error = session.request("run_cell", ("cell 1", CELL))
        assert kind == "value", error

    with StudentSession(load) as session:
        yield session


def outcome(session: StudentSession, builds: Builds | None, body: str) -> str:
    """What the lines of a function return while this is refused, or the error that they raise."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    session.refused = None
    assert session.request("run_cell", ("cell 2", f"def f():\n{lines}\n")) == ("value", None)
    session.refused = builds and ("exercise", builds)
    kind, value = session.request("call", (None, "f", ()))
    return f"{value['type']}: {value['text']}" if kind == "error" else str(value[0])


def test_the_library_s_version_is_refused_under_any_name(session: StudentSession) -> None:
    for way, (builds, body) in REFUSED.items():
        said = outcome(session, builds, body)
        assert said.startswith(("LibraryVersionError", "PermissionError")), (way, said)
        assert "may not be used in exercise, which is to be built without the library's version" in said, way
        assert said.endswith(f"use {builds.instead}"), way


def test_an_answer_may_not_be_the_library_s_version_itself(tmp_path: Path) -> None:
    (tmp_path / "helper_file.py").write_text("from minidl.cluster.cost import all_reduce as time\n")

    def load(session: StudentSession) -> None:
        session.prepare(*PREPARED)
        assert session.request("run_cell", ("cell 1", CELL)) == ("value", None)

    with StudentSession(load, folder=tmp_path) as session:
        for way, (builds, answer) in IS.items():
            session.refused = None
            assert session.request("run_cell", ("cell 2", f"f = {answer}")) == ("value", None), way
            session.refused = ("exercise", builds)
            for arguments in ((), (np.ones(3),), ("ring", 4, 4000, 1e-6, 1e-9), (None, np.ones(3))):
                kind, value = session.request("call", (None, "f", arguments))
                assert kind == "error", way
                if value["type"] == "LibraryVersionError":
                    break
            assert value["type"] == "LibraryVersionError", (way, value)


def test_functions_that_the_exercise_does_not_build_are_allowed(session: StudentSession) -> None:
    for way, (builds, body, expected) in ALLOWED.items():
        assert outcome(session, builds, body) == expected, way


def test_after_the_check_everything_works_again(session: StudentSession) -> None:
    assert outcome(session, AUTOGRAD, "return F.relu(tensor)").startswith("LibraryVersionError")
    assert outcome(session, None, "return F.relu(tensor).data.tolist()") == "[1.0, 2.0]"
    assert outcome(session, COSTS, "return float(F.relu(tensor).data.sum())") == "3.0"
    assert outcome(session, None, f"return seconds({FOUR}) == tried_too") == "True"


def test_another_library_is_refused_by_any_way_of_import(tmp_path: Path) -> None:
    """A stand-in of mxnet, which no environment of minidl installs; a real torch would come first on the path."""
    (tmp_path / "mxnet").mkdir()
    (tmp_path / "mxnet" / "__init__.py").write_text("def grad(x):\n    return x\nclass Tensor:\n    data = 3\n")
    cell = (
        "import mxnet, mxnet as m\nfrom mxnet import grad\nx = mxnet.Tensor()\nassert grad(3) == mxnet.grad(3) == 3\n"
    )
    bodies = ("return mxnet.grad(3)", "return m.grad(3)", "return grad(3)", "return x.data", "import jax",
              "import sys\ndel sys.modules['mxnet']\nimport mxnet")  # fmt: skip

    def load(session: StudentSession) -> None:
        assert session.request("run_cell", ("cell 1", cell)) == ("value", None)

    with StudentSession(load, folder=tmp_path) as session:
        for body in bodies:
            assert outcome(session, AUTOGRAD, body).startswith("LibraryVersionError"), body
        assert outcome(session, None, "return (mxnet.grad(3), grad(3), x.data)") == "(3, 3, 3)"


def test_refused_modules_that_only_the_call_loads_are_refused() -> None:
    builds = Builds("minidl.cluster.engines.supervisor", "minidl.cluster.engines.processes", instead="numpy")
    with StudentSession(lambda session: None) as session:
        loaded = "import sys\nreturn 'minidl.cluster.engines.supervisor' in sys.modules"
        assert outcome(session, None, loaded) == "False", "this test needs a package that the process has not loaded"
        assert outcome(session, builds, "return 1") == "1"
        called = "from minidl.cluster.engines.processes.engine import Processes\nreturn Processes()"
        assert outcome(session, builds, called).startswith("LibraryVersionError")


chapter = ChapterChecks("99_library", builds={"ring_time": COSTS})


@chapter.exercise(points=1)
def ring_time(answer: Answer, part: Part) -> None:
    with part(1, "the time"):
        expect.number(answer(4, 4000.0), 2 * 3 * (1e-6 + 1000 * 1e-9), "ring_time(4, 4000.0)")


def outcome_in_a_kernel(function: Callable[[int, float], float]) -> Outcome:
    with judging() as outcomes:
        ring_time(function)
    return outcomes[0]


def test_a_check_in_a_notebook_s_kernel_refuses_it_as_well() -> None:
    def borrowed(p: int, n: float) -> float:
        from minidl.cluster import cost

        return cost.all_reduce("ring", p, int(n), 1e-6, 1e-9)

    message = outcome_in_a_kernel(borrowed).first_fault.message
    assert "minidl.cluster.cost.formulas.all_reduce may not be used in ring_time" in message
    assert outcome_in_a_kernel(lambda p, n: 2 * (p - 1) * (1e-6 + n / p * 1e-9)).first_fault is None


def test_a_function_that_mentions_check_can_be_checked() -> None:
    from course.checks import messages_and_collectives as check

    def mentions(p: int, n: float) -> float:
        check.hint("ring_seconds")
        return 2 * (p - 1) * (1e-6 + n / p * 1e-9) + check.crossover(mentions)

    assert outcome_in_a_kernel(mentions).first_fault is None


def test_an_answer_may_be_compiled_and_may_use_other_libraries() -> None:
    numba = pytest.importorskip("numba")
    assert outcome_in_a_kernel(numba.njit(lambda p, n: 2 * (p - 1) * (1e-6 + n / p * 1e-9))).first_fault is None

    def with_a_pool_of_threads(p: int, n: float) -> float:
        import platform
        from concurrent.futures import ThreadPoolExecutor

        import matplotlib.figure  # noqa: F401

        from minidl.cluster import Network

        network = Network(1e-6, 1e-9)
        platform.processor()
        with ThreadPoolExecutor() as pool:
            return sum(pool.map(lambda _: network.alpha + n / p * network.beta, range(2 * (p - 1))))

    assert outcome_in_a_kernel(with_a_pool_of_threads).first_fault is None


def test_what_an_exercise_builds_is_in_the_library() -> None:
    for chapter in (source.name.split("_", 1)[1] for source in sources() if not source.is_lecture):
        checks = import_module(f"course.checks.{chapter}").chapter
        assert checks.builds, chapter
        assert checks.builds.keys() <= checks.exercises.keys(), chapter
        for name in {name for builds in checks.builds.values() for name in builds.names}:
            module, path = located(name)
            for part in path:
                module = getattr(module, part)
