"""Make and fill `.venv`: venv, then uv with the committed lock; pip if uv is not available."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from course.setup import requirements
from course.setup.step import SetupStep

LOG = "minidl-setup.log"


class SetupError(Exception):
    """A set-up failed; the text says what happened and what to do."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def install(root: Path, anew: bool, lock: int, extras: tuple[str, ...]) -> None:
    """Make the environment if `anew`, then install minidl (editable) with these extras.

    lock: the descriptor of the set-up's lock. The tools inherit it, so that no second set-up starts while one of them
    still runs.

    Raises SetupError with the end of the log.
    """
    venv = root / ".venv"
    step = SetupStep(venv / LOG, root, lock)
    if anew:
        make_environment(venv, step)
    python = interpreter(venv)
    if (uv := shutil.which("uv")) and install_with_uv(root, uv, python, step, extras):
        return
    if bring_pip(python, step):
        if (uv := fetch_uv(python, step)) and install_with_uv(root, uv, python, step, extras):
            return
        if install_with_pip(python, step, extras):
            return
    raise SetupError(
        f"{step.tail()}\n\nThe packages could not be installed; the lines above are the end of {step.log}.\n"
        "Most often there was no network or no space: put that right and start the same command again."
    )


def interpreter(venv: Path) -> Path:
    """The Python of an environment."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def make_environment(venv: Path, step: SetupStep) -> None:
    """An empty environment of the running Python, with pip if this Python can make one."""
    with_pip = importlib.util.find_spec("ensurepip") is not None
    if importlib.util.find_spec("venv") is None or not (with_pip or shutil.which("uv")):
        name = f"python{sys.version_info.major}.{sys.version_info.minor}"
        raise SetupError(
            f"{sys.executable} comes without its own venv or ensurepip, so no environment can be made. "
            f"On Debian and Ubuntu: `sudo apt install {name}-venv`; then start the same command again.",
            exit_code=2,
        )
    # Outside any environment this is the running Python; inside one, the Python that it was made from.
    base: str = getattr(sys, "_base_executable", None) or sys.executable
    command = [base, "-m", "venv", *([] if with_pip else ["--without-pip"]), str(venv)]
    if step.run("Making .venv", command) != 0:
        raise SetupError(f"{step.tail()}\n\n`{' '.join(command)}` failed; the lines above are the end of {step.log}.")


def bring_pip(python: Path, step: SetupStep) -> bool:
    """Whether the environment can run pip; if it was made without, as uv does, Python's own copy is installed."""
    if step.run(None, [str(python), "-m", "pip", "--version"]) == 0:
        return True
    return step.run(None, [str(python), "-m", "ensurepip"]) == 0


def fetch_uv(python: Path, step: SetupStep) -> str | None:
    """The path of the environment's own uv, installed by pip the first time; None if that fails."""
    folder = str(python.parent)
    if shutil.which("uv", path=folder) is None:
        step.run("Fetching uv", [str(python), "-m", "pip", "install", "uv"])
    return shutil.which("uv", path=folder)


def install_with_uv(root: Path, uv: str, python: Path, step: SetupStep, extras: tuple[str, ...]) -> bool:
    """Install the committed lock, or the ranges of pyproject.toml if they changed after the lock was made."""
    environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "UV_PYTHON")}
    environment |= {"UV_PROJECT_ENVIRONMENT": str(python.parent.parent), "UV_PYTHON_DOWNLOADS": "never"}
    if not can_cache(environment):  # uv would install nothing, and pip would take other versions than the locked ones
        environment["UV_NO_CACHE"] = "1"
    if requirements.lock_is_current(root):
        options = [option for extra in extras for option in ("--extra", extra)]
        # --inexact keeps packages that were added by hand, and uv and pip themselves.
        command = [uv, "sync", "--frozen", "--inexact", *options]
        title = "Installing the locked packages with uv"
    else:
        command = [uv, "pip", "install", "--editable", target(extras)]
        title = "uv.lock is older than pyproject.toml; installing its ranges with uv"
    return step.run(title, [*command, "--compile-bytecode", "--python", str(python)], environment) == 0


def can_cache(environment: Mapping[str, str]) -> bool:
    """Whether uv can write, or make, its cache folder; it cannot where the home folder is read-only or missing."""
    users = environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(environment.get("UV_CACHE_DIR") or os.path.join(users, "uv")).absolute()
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def target(extras: tuple[str, ...]) -> str:
    """What pip and uv call this folder with its extras."""
    return f".[{','.join(extras)}]"


def install_with_pip(python: Path, step: SetupStep, extras: tuple[str, ...]) -> bool:
    """Install the ranges of pyproject.toml."""
    command = [str(python), "-m", "pip", "install", "--editable", target(extras)]
    environment = {"PIP_RETRIES": "1", **os.environ}  # by default pip retries for minutes without a network
    return step.run("Installing the packages with pip", command, environment) == 0


def remove(venv: Path) -> None:
    """Delete an environment, pyvenv.cfg first, so that a partly deleted one is never taken for a complete one."""
    if venv.is_symlink() or venv.is_file():
        venv.unlink()
    elif venv.exists():
        (venv / "pyvenv.cfg").unlink(missing_ok=True)
        shutil.rmtree(venv)
