"""The set-up decides what `.venv` needs, and runs tools for it. Fakes note their calls, and install nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from course import command_line
from course.setup import bootstrap, installation, requirements
from course.setup.bootstrap import ROOT, SetupError, bring_up_to_date, plan
from course.setup.exclusive import exclusive
from course.setup.installation import install, install_with_uv
from course.setup.step import ProgressLine, SetupStep

VERSION = (3, 11)

pytestmark = pytest.mark.timeout(300)


class FakeInstaller:
    """Makes the two files by which an environment is known, and remembers whether each call was to make it anew."""

    def __init__(
        self, python: str = "3.11.7", raises: BaseException | None = None, meanwhile: Callable[[], object] = object
    ) -> None:
        self.calls: list[bool] = []
        self.python = python
        self.raises = raises
        self.meanwhile = meanwhile

    def __call__(self, root: Path, anew: bool, lock: int, extras: tuple[str, ...]) -> None:
        self.calls.append(anew)
        self.extras = extras
        venv = root / ".venv"
        bootstrap.interpreter(venv).parent.mkdir(parents=True, exist_ok=True)
        bootstrap.interpreter(venv).touch()
        (venv / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {self.python}\n")
        self.meanwhile()
        if self.raises:
            raise self.raises


@pytest.fixture
def clone(tmp_path):
    """A folder with what the set-up reads of a clone."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "minidl"\n')
    (tmp_path / "uv.lock").write_text("version = 1\n")
    return tmp_path


@pytest.fixture
def ready(clone):
    """A clone whose environment stands."""
    bring_up_to_date(clone, (), VERSION, FakeInstaller())
    return clone


def reason(clone: Path, version: tuple[int, int] = VERSION) -> str:
    """Why the clone needs a set-up."""
    todo = plan(clone, (), version)
    assert todo is not None
    return todo.reason


def test_the_first_start_makes_the_environment_and_the_second_installs_nothing(clone):
    installer = FakeInstaller()
    bring_up_to_date(clone, (), VERSION, installer)
    bring_up_to_date(clone, (), VERSION, installer)
    assert installer.calls == [True]


@pytest.mark.parametrize("name", ["pyproject.toml", "uv.lock"])
def test_a_changed_input_refreshes_the_environment_in_place(ready, name):
    (ready / ".venv" / "kept").touch()
    with (ready / name).open("a") as file:
        file.write("# changed\n")
    installer = FakeInstaller()
    bring_up_to_date(ready, (), VERSION, installer)
    assert installer.calls == [False]
    assert (ready / ".venv" / "kept").exists()
    assert plan(ready, (), VERSION) is None


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), SetupError("no network")])
def test_a_set_up_that_did_not_finish_is_done_anew(clone, interruption):
    with pytest.raises(type(interruption)):
        bring_up_to_date(clone, (), VERSION, FakeInstaller(raises=interruption))
    assert "did not finish" in reason(clone)
    assert not bootstrap.serves_without_refresh(clone, (), VERSION)
    (clone / ".venv" / "half-made").touch()
    bring_up_to_date(clone, (), VERSION, FakeInstaller())
    assert not (clone / ".venv" / "half-made").exists()
    assert plan(clone, (), VERSION) is None
    (clone / "uv.lock").write_text("version = 2\n")
    with pytest.raises(KeyboardInterrupt):
        bring_up_to_date(clone, (), VERSION, FakeInstaller(raises=KeyboardInterrupt()))
    (clone / "uv.lock").write_text("version = 1\n")
    assert "did not finish" in reason(clone)


def test_a_refresh_without_a_network_leaves_the_environment_in_use_and_is_tried_again(ready):
    (ready / "uv.lock").write_text("version = 2\n")
    with pytest.raises(SetupError):
        bring_up_to_date(ready, (), VERSION, FakeInstaller(raises=SetupError("no network")))
    assert bootstrap.serves_without_refresh(ready, (), VERSION)
    installer = FakeInstaller()
    bring_up_to_date(ready, (), VERSION, installer)
    assert installer.calls == [False]
    assert plan(ready, (), VERSION) is None


@pytest.mark.parametrize("missing", [[], ["a-new-package"]])
def test_a_command_goes_on_unrefreshed_unless_a_package_is_missing(missing, monkeypatch, capsys):
    def fail(*_: object) -> None:
        raise SetupError("no network")

    monkeypatch.delenv("MINIDL_NO_VENV", raising=False)
    monkeypatch.setenv(bootstrap.NOT_REFRESHED, "0")
    monkeypatch.setattr(bootstrap, "bring_up_to_date", fail)
    monkeypatch.setattr(bootstrap, "serves_without_refresh", lambda *_: True)
    monkeypatch.setattr(sys, "prefix", str(ROOT / ".venv"))
    monkeypatch.setattr(requirements, "missing", lambda *_: missing)
    if missing:
        with pytest.raises(SetupError, match="lacks a-new-package, and could not be refreshed: a network is needed"):
            bootstrap.ensure_environment([], ())
    else:
        bootstrap.ensure_environment([], ())
    assert "The packages that it has are used" in capsys.readouterr().err


def test_a_set_up_killed_at_any_moment_leaves_no_matching_record(clone):
    seen: list[object] = []

    def installer(root: Path, anew: bool, lock: int, extras: tuple[str, ...]) -> None:
        seen.append(bootstrap.read_record(root / ".venv"))
        FakeInstaller()(root, anew, lock, extras)

    bring_up_to_date(clone, (), VERSION, installer)
    (clone / "uv.lock").write_text("version = 2\n")
    bring_up_to_date(clone, (), VERSION, installer)
    assert seen == [bootstrap.UNFINISHED, bootstrap.UNFINISHED]


def test_a_file_edited_during_the_set_up_counts_as_changed_afterwards(clone):
    def installer(root: Path, anew: bool, lock: int, extras: tuple[str, ...]) -> None:
        FakeInstaller()(root, anew, lock, extras)
        (root / "pyproject.toml").write_text('[project]\nname = "edited"\n')

    bring_up_to_date(clone, (), VERSION, installer)
    assert "has changed" in reason(clone)


def test_an_environment_without_its_interpreter_or_its_configuration_is_damaged(ready):
    python = bootstrap.interpreter(ready / ".venv")
    python.unlink()
    python.symlink_to(ready / "an uninstalled Python")
    assert "damaged" in reason(ready)
    bring_up_to_date(ready, (), VERSION, FakeInstaller())
    (ready / ".venv" / "pyvenv.cfg").unlink()
    assert "damaged" in reason(ready)


def test_a_damaged_record_counts_as_unfinished(ready):
    for record in ("", "{", "[]", "null", '{"finished": tr'):
        (ready / ".venv" / bootstrap.RECORD).write_text(record)
        assert "did not finish" in reason(ready)


def test_whatever_lies_in_the_place_of_the_environment_is_replaced(clone):
    venv = clone / ".venv"
    for make in (venv.touch, venv.mkdir, lambda: venv.symlink_to(clone / "nowhere")):
        make()
        bring_up_to_date(clone, (), VERSION, FakeInstaller())
        assert plan(clone, (), VERSION) is None
        shutil.rmtree(venv)


def test_a_link_to_another_folder_is_replaced_and_the_folder_left_alone(ready, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (ready / ".venv").rename(elsewhere)
    (ready / ".venv").symlink_to(elsewhere)
    bring_up_to_date(ready, (), (3, 13), FakeInstaller("3.13.0"))
    assert (elsewhere / "pyvenv.cfg").exists()
    assert not (ready / ".venv").is_symlink()


def test_another_minor_version_of_python_makes_the_environment_anew(ready):
    assert plan(ready, (), (3, 11)) is None
    assert reason(ready, (3, 13)) == "The environment .venv has Python 3.11: making it anew for Python 3.13."
    (ready / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\nuv = 0.9\nversion_info = 3.12.1\n")  # as uv does
    assert bootstrap.python_of(ready / ".venv") == "3.12"
    installer = FakeInstaller("3.13.0")
    bring_up_to_date(ready, (), (3, 13), installer)
    assert installer.calls == [True]
    assert plan(ready, (), (3, 13)) is None


def test_packages_for_tests_are_added_by_the_first_command_that_needs_them_and_stay(clone):
    installer, project = FakeInstaller(), clone / "pyproject.toml"
    project.write_text(project.read_text() + "[project.optional-dependencies]\ncourse = []\ndev = []\n")
    bring_up_to_date(clone, (), VERSION, installer)
    assert installer.extras == ("course",)
    bring_up_to_date(clone, ("dev",), VERSION, installer)
    assert installer.extras == ("course", "dev")
    assert installer.calls == [True, False]
    (clone / "uv.lock").write_text("version = 2\n")
    bring_up_to_date(clone, ("course",), VERSION, installer)
    assert installer.extras == ("course", "dev")
    assert plan(clone, ("dev",), VERSION) is None
    project.write_text(project.read_text().replace("dev", "tests"))
    bring_up_to_date(clone, (), VERSION, installer)
    assert installer.extras == ("course",)


def test_a_student_installs_neither_mypy_nor_hypothesis_nor_mpich():
    names = {name for name, _ in requirements.named(requirements.lines(ROOT, requirements.EXTRAS))}
    assert not names & {"mypy", "hypothesis", "mpich"}


def test_an_environment_made_by_hand_is_completed_and_not_deleted(ready):
    (ready / ".venv" / bootstrap.RECORD).unlink()
    installer = FakeInstaller()
    bring_up_to_date(ready, (), VERSION, installer)
    assert installer.calls == [False]


def test_a_moved_clone_makes_its_environment_anew(ready, tmp_path):
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in (".venv", "pyproject.toml", "uv.lock"):
        (ready / name).rename(moved / name)
    assert "moved or copied" in reason(moved)


def test_of_three_starts_at_once_one_installs_and_the_others_wait(clone, monkeypatch):
    said: list[str] = []
    two_wait = threading.Event()

    def announce(sentence: str) -> None:
        said.append(sentence)
        if sum("waiting for it" in one for one in said) == 2:
            two_wait.set()

    monkeypatch.setattr(bootstrap, "announce", announce)
    installer = FakeInstaller(meanwhile=lambda: two_wait.wait(timeout=120))
    starts = [threading.Thread(target=bring_up_to_date, args=(clone, (), VERSION, installer)) for _ in range(3)]
    for start in starts:
        start.start()
    for start in starts:
        start.join()
    assert installer.calls == [True]
    assert two_wait.is_set()


@pytest.mark.skipif(os.name == "nt", reason="descriptors are not inherited on Windows")
def test_an_installer_that_outlives_its_parent_keeps_the_lock(tmp_path):
    lock = tmp_path / "lock"
    child = "import sys; sys.stdin.read()"
    with exclusive(lock, say=print) as descriptor:
        tool = subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, pass_fds=(descriptor,))
    waited = threading.Event()
    got_it = threading.Event()

    def next_start() -> None:
        with exclusive(lock, say=lambda _: waited.set()):
            got_it.set()

    thread = threading.Thread(target=next_start)
    thread.start()
    assert waited.wait(timeout=120)
    assert not got_it.is_set()
    tool.communicate()
    assert got_it.wait(timeout=120)
    thread.join()


@pytest.fixture
def step(tmp_path):
    """A step whose log lies in a folder of its own."""
    with exclusive(tmp_path / "lock", say=print) as descriptor:
        yield SetupStep(tmp_path / "log", tmp_path, descriptor)


def test_a_step_logs_what_its_tool_prints_and_returns_its_exit_code(step, capsys):
    code = step.run("Trying", [sys.executable, "-c", "import sys; print('said'); sys.exit(3)"])
    assert code == 3
    assert step.last_line() == "said"
    assert re.fullmatch(r"Trying \.\.\.\nTrying: failed after \d+ s\n", capsys.readouterr().err)


def test_a_line_of_progress_counts_seconds_on_a_terminal_and_elsewhere_stands_every_15_seconds(capsys, monkeypatch):
    line = ProgressLine("Fetching", terminal=False)
    for seconds in (0.5, 14.9, 15.0, 15.5, 29.9, 30.0):
        line.show(seconds, "half")
    line.finish(31.0, 0)
    told = ["Fetching ...", "Fetching ... 15 s so far", "Fetching ... 30 s so far", "Fetching: 31 s"]
    assert capsys.readouterr().err.splitlines() == told
    monkeypatch.setenv("COLUMNS", "25")
    line = ProgressLine("Fetching", terminal=True)
    line.show(2.0, "a line of the log that is long")
    assert capsys.readouterr().err == "\rFetching ... 2 s  a line"
    line.finish(3.0, 1)
    assert capsys.readouterr().err == "\rFetching: failed after 3 s\n"


def test_without_ensurepip_and_uv_the_message_names_the_package_to_install(step, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(SetupError, match=r"apt install python3\.\d+-venv") as caught:
        installation.make_environment(tmp_path / ".venv", step)
    assert caught.value.exit_code == 2


def test_with_the_environment_at_hand_nothing_is_set_up_and_missing_packages_are_named(monkeypatch, capsys):
    monkeypatch.setenv("MINIDL_NO_VENV", "1")
    monkeypatch.setattr(bootstrap, "bring_up_to_date", lambda *_: pytest.fail("a set-up was started"))
    monkeypatch.setattr(bootstrap.requirements, "installed", lambda name: True)
    bootstrap.ensure_environment([], ())
    monkeypatch.setattr(bootstrap.requirements, "installed", lambda name: name != "pytest-timeout")
    assert command_line.main(["test"]) == 2
    assert "lacks pytest-timeout:" in capsys.readouterr().err


def test_an_unwritable_folder_gets_a_sentence(monkeypatch):
    def refuse(root: Path, extras: tuple[str, ...]) -> None:
        raise PermissionError(13, "Permission denied", str(root / ".venv"))

    monkeypatch.delenv("MINIDL_NO_VENV", raising=False)
    monkeypatch.setattr(bootstrap, "bring_up_to_date", refuse)
    with pytest.raises(SetupError, match=r"Permission denied.*MINIDL_NO_VENV=1"):
        bootstrap.ensure_environment([], ())


def test_what_another_system_needs_is_not_missing_here(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(
        "[project]\ndependencies = ['numpy', \"no-such-package>=1; platform_system == 'Plan9'\"]\n"
        "[project.optional-dependencies]\n"
    )
    assert requirements.missing(tmp_path, ()) == []
    monkeypatch.setattr("platform.system", lambda: "Plan9")
    assert requirements.missing(tmp_path, ()) == ["no-such-package"]


class NotedStep(SetupStep):
    """Notes the command and the environment of each step, and runs none; the steps named in `failing` fail."""

    failing: tuple[str, ...] = ()

    def __init__(self, *_: object) -> None:
        self.log = Path("nowhere.log")
        self.commands: list[str] = []
        self.environments: list[dict[str, str]] = []
        steps.append(self)

    def run(self, title: str | None, command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        self.commands.append(" ".join(command))
        self.environments.append(dict(environment or {}))
        return int(any(name in self.commands[-1] for name in self.failing))


steps: list[NotedStep] = []


@pytest.mark.parametrize(("home", "no_cache"), [("home", None), ("new/home", None), ("file/home", "1")])
def test_with_a_home_where_nothing_can_be_written_uv_installs_without_a_cache(tmp_path, monkeypatch, home, no_cache):
    (tmp_path / "home").mkdir()
    (tmp_path / "file").touch()
    for name in ("UV_CACHE_DIR", "UV_NO_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / home))
    step = NotedStep()
    assert install_with_uv(ROOT, "uv", tmp_path / ".venv" / "bin" / "python", step, ())
    assert [environment.get("UV_NO_CACHE") for environment in step.environments] == [no_cache]


UV, OWN_UV, PIP = "/usr/bin/uv sync", "bin/uv sync", "pip install --editable .[course]"


@pytest.mark.parametrize(
    ("uvs", "failing", "tools"),
    [
        (["/usr/bin"], (), [UV]),
        (["/usr/bin"], (UV,), [UV, "pip --version", "pip install uv", PIP]),
        ([".venv/bin"], ("pip --version",), ["pip --version", "ensurepip", OWN_UV]),
        ([".venv/bin"], (OWN_UV,), ["pip --version", OWN_UV, PIP]),
        ([], (), ["pip --version", "pip install uv", PIP]),
    ],
)
def test_uv_installs_the_locked_packages_and_pip_those_of_pyproject_where_uv_is_not_there_or_fails(
    monkeypatch, uvs, failing, tools
):
    def which(name: str, path: str = "/usr/bin") -> str | None:
        return next((f"{place}/{name}" for place in uvs if path.endswith(place)), None)

    monkeypatch.setattr(shutil, "which", which)
    monkeypatch.setattr(requirements, "lock_is_current", lambda root: True)
    monkeypatch.setattr(installation, "SetupStep", NotedStep)
    monkeypatch.setattr(NotedStep, "failing", failing)
    install(Path("root"), False, 0, ("course",))
    assert [tool for tool, command in zip(tools, steps[-1].commands, strict=True) if tool not in command] == []
    monkeypatch.setattr(NotedStep, "failing", (*failing, PIP, "sync"))
    monkeypatch.setattr(NotedStep, "tail", lambda self: "no route to host")
    with pytest.raises(SetupError, match="no route to host"):
        install(Path("root"), False, 0, ("course",))


def test_a_lock_that_is_older_than_the_ranges_is_not_installed(monkeypatch):
    monkeypatch.setattr(requirements, "lock_is_current", lambda root: False)
    step = NotedStep()
    assert install_with_uv(ROOT, "uv", Path(".venv/bin/python"), step, ("course", "dev"))
    assert step.commands == ["uv pip install --editable .[course,dev] --compile-bytecode --python .venv/bin/python"]
