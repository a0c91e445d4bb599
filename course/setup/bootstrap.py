"""Set up the course's environment: decide what `.venv` needs, install it, and continue inside it.

`.venv/minidl-setup.json` is the record of the last set-up. It says "unfinished" during the set-up, and is then
replaced, in one step, by what the environment was made from. So the next start detects any interruption. A start with
a matching record installs nothing, uses no network, and costs two starts of Python.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from course import whole_file
from course.setup import requirements
from course.setup.exclusive import exclusive
from course.setup.installation import SetupError, install, interpreter, remove

__all__ = ["SetupError", "ensure_environment", "interpreter"]

ROOT = Path(__file__).resolve().parent.parent.parent
RECORD = "minidl-setup.json"
UNFINISHED: dict[str, object] = {"finished": False}

NOT_REFRESHED = "MINIDL_NOT_REFRESHED"
"""Set for this command and its children if they use the old environment, since it could not be refreshed."""


@dataclass(frozen=True)
class Plan:
    """What must be done to `.venv` before it can be used: make it anew, or refresh it. `reason`: why, in a sentence."""

    reason: str
    anew: bool


def ensure_environment(arguments: list[str], extras: tuple[str, ...]) -> None:
    """Make or refresh the environment, and start the command again inside it. Returns only inside it.

    arguments: those of the command, to start it again.
    extras: the extras of pyproject.toml that it needs.

    Raises SetupError with what went wrong and what to do.
    """
    if os.environ.get("MINIDL_NO_VENV") == "1":
        check_environment_at_hand(extras)
        return
    try:
        if os.environ.get(NOT_REFRESHED) != "1":
            bring_up_to_date(ROOT, extras)
    except SetupError:
        if not serves_without_refresh(ROOT, extras):
            raise
        announce("It could not be refreshed (no network?). The packages that it has are used.")
        os.environ[NOT_REFRESHED] = "1"
    except KeyboardInterrupt:
        raise SetupError("\nInterrupted before .venv was complete: the next start makes it anew.", 130) from None
    except OSError as error:
        raise SetupError(
            f"The environment {ROOT / '.venv'} could not be made: {error}. Free space or permissions are needed there; "
            "MINIDL_NO_VENV=1 uses the Python that you start instead."
        ) from error
    if Path(sys.prefix).resolve() != (ROOT / ".venv").resolve():
        start_again_inside(interpreter(ROOT / ".venv"), arguments)
    if os.environ.get(NOT_REFRESHED) == "1" and (missing := requirements.missing(ROOT, extras)):
        raise SetupError(
            f"{ROOT / '.venv'} lacks {', '.join(missing)}, and could not be refreshed: a network is needed."
        )


def bring_up_to_date(
    root: Path,
    extras: tuple[str, ...] = (),
    version: tuple[int, int] = sys.version_info[:2],
    installer: Callable[[Path, bool, int, tuple[str, ...]], None] = install,
) -> None:
    """Make or refresh `root/.venv` unless its record matches; one process at a time, the others wait.

    extras: those that the command needs. An environment keeps the extras that earlier commands installed, if they
    still exist.
    """
    if plan(root, extras, version) is None:
        return
    with exclusive(root / ".venv.lock", say=announce) as lock:
        todo = plan(root, extras, version)
        if todo is None:  # another start did it while this one waited for the lock
            return
        announce(todo.reason)
        venv = root / ".venv"
        if todo.anew:
            remove(venv)
            venv.mkdir()
        before = read_record(venv)
        kept = extras_of(before) & requirements.extras_of_project(root)
        together = tuple(sorted({*requirements.EXTRAS, *extras, *kept}))
        # before installing: an edit during the set-up must count as a change
        wanted = {**fingerprint(root, version), "extras": list(together)}
        write_record(venv, UNFINISHED)
        try:
            installer(root, todo.anew, lock, together)
        except SetupError:
            if not todo.anew and before is not None:  # uv and pip change nothing before they have all packages
                write_record(venv, before)
            raise
        write_record(venv, wanted)


def serves_without_refresh(
    root: Path, extras: tuple[str, ...] = (), version: tuple[int, int] = sys.version_info[:2]
) -> bool:
    """Whether `root/.venv` was complete once, and only its requirements have changed since."""
    todo = plan(root, extras, version)
    return todo is not None and not todo.anew and read_record(root / ".venv") is not None


def plan(root: Path, extras: tuple[str, ...], version: tuple[int, int]) -> Plan | None:
    """What `root/.venv` needs to serve this Python `version` with these `extras`, or None if it is ready."""
    venv = root / ".venv"
    record = read_record(venv)
    python = f"{version[0]}.{version[1]}"
    if not venv.exists():
        return Plan("First start: making the environment .venv (once, about a minute with a good network).", anew=True)
    if record == UNFINISHED:
        return Plan("An earlier set-up did not finish: making .venv anew.", anew=True)
    if not (venv / "pyvenv.cfg").is_file() or not interpreter(venv).exists():
        return Plan("The environment .venv is damaged: making it anew.", anew=True)
    if (made_by := python_of(venv)) != python:
        return Plan(f"The environment .venv has Python {made_by}: making it anew for Python {python}.", anew=True)
    if record is None:
        return Plan("Completing the environment .venv, which was made by hand.", anew=False)
    if record.get("root") != str(root):
        return Plan(f"This folder was moved or copied from {record.get('root')}: making .venv anew.", anew=True)
    if {**record, "extras": None} != {**fingerprint(root, version), "extras": None}:
        return Plan("pyproject.toml or uv.lock has changed: refreshing the environment .venv.", anew=False)
    if lacking := {*requirements.EXTRAS, *extras} - extras_of(record):
        return Plan(f"This command needs more packages (extra {', '.join(sorted(lacking))}): adding them.", anew=False)
    return None


def extras_of(record: dict[str, object] | None) -> set[str]:
    """The extras that an environment has, by its record."""
    extras = (record or {}).get("extras")
    return {str(extra) for extra in extras} if isinstance(extras, list) else set()


def fingerprint(root: Path, version: tuple[int, int]) -> dict[str, object]:
    """What an environment is made from: the contents of pyproject.toml and uv.lock, the Python version, the path."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "uv.lock"):
        path = root / name
        digest.update(path.read_bytes() if path.exists() else b"")
        digest.update(b"\0")
    return {"finished": True, "inputs": digest.hexdigest(), "python": f"{version[0]}.{version[1]}", "root": str(root)}


def read_record(venv: Path) -> dict[str, object] | None:
    """The record of the last set-up; None without one; UNFINISHED for an unreadable one."""
    try:
        record = json.loads((venv / RECORD).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        return UNFINISHED
    return record if isinstance(record, dict) else UNFINISHED


def write_record(venv: Path, record: dict[str, object]) -> None:
    """Replace the record in one step, so that no start ever reads half of it."""
    whole_file.replace(venv / RECORD, json.dumps(record).encode())


def python_of(venv: Path) -> str:
    """The Python version, as "3.11", in an environment's pyvenv.cfg (key `version`; `version_info` if uv wrote it)."""
    for line in (venv / "pyvenv.cfg").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key.strip() in ("version", "version_info"):
            return ".".join(value.strip().split(".")[:2])
    return "(unknown version)"


def start_again_inside(python: Path, arguments: list[str]) -> NoReturn:
    """Replace this process by the same command under the environment's Python."""
    command = [str(python), "-m", "course", *arguments]
    if os.name == "nt":  # Windows has no exec: the caller would get its prompt back at once
        sys.exit(subprocess.run(command).returncode)
    sys.stdout.flush()
    os.execv(python, command)


def check_environment_at_hand(extras: tuple[str, ...]) -> None:
    """With MINIDL_NO_VENV=1: raise SetupError if packages are missing, and name them."""
    missing = requirements.missing(ROOT, extras)
    if missing:
        raise SetupError(
            f"MINIDL_NO_VENV=1, but {sys.executable} lacks {', '.join(missing)}: "
            f"install them with `{sys.executable} -m pip install`, or unset MINIDL_NO_VENV.",
            exit_code=2,
        )


def announce(sentence: str) -> None:
    """Print a sentence to standard error; standard output is the command's."""
    print(sentence, file=sys.stderr, flush=True)
