"""The command `minidl`, called in the process of the tests, or started in a new one where that is the claim."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import io
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from minidl.cli import app, display, imported
from minidl.cli.models import MODELS
from minidl.cli.simulate.cases import IMPORTED_ALL_REDUCES
from minidl.cli.strategies import COMPRESSORS, STRATEGIES
from minidl.parallel import Checkpoint

ROOT = Path(__file__).parents[2]
QUICK = ("--model", "mlp", "--epochs", "2")  # a fifth of a second

OF_THE_TERMINAL = ("COLUMNS", "FORCE_COLOR", "NO_COLOR")
"""Variables of the terminal that runs the tests: no run of the command sees them."""


@functools.cache
def entry() -> Any:
    """All commands, as the module `minidl.cli` calls them."""
    return typer.main.get_command(app.app)


def minidl(folder: Path, *arguments: object, **changes: str) -> subprocess.CompletedProcess[str]:
    """Call the command in this process, in `folder`, with numpy's kernels, off a terminal, to its end.

    It prints no progress, however long it takes. An error that the command does not answer is raised here. What
    `--import` has registered is forgotten.
    """
    words = [str(argument) for argument in arguments]
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, forgetting_own_names():
        patch.chdir(folder)
        for name in OF_THE_TERMINAL:
            patch.delenv(name, raising=False)
        for name, value in ({"MINIDL_KERNELS": "numpy"} | changes).items():
            patch.setenv(name, value)
        patch.setattr(display, "LOG_SECONDS", math.inf)
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as ending:
            contextvars.Context().run(entry(), words, prog_name="minidl")
    code = ending.value.code
    assert code is None or isinstance(code, int)
    return subprocess.CompletedProcess(words, code or 0, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def forgetting_own_names() -> Iterator[None]:
    """Restore afterwards what `--import` changes: the names that can be typed, imported modules, the import path."""
    changed: list[dict[str, Any]] = [STRATEGIES, COMPRESSORS, MODELS, imported.DATA, IMPORTED_ALL_REDUCES]  # type: ignore[list-item]
    before, path = [dict(known) for known in changed], list(sys.path)
    try:
        yield
    finally:
        for known, names in zip(changed, before, strict=True):
            known.clear()
            known.update(names)
        sys.path[:] = path
        for name in [name for name in sys.modules if name.startswith(imported._PREFIX)]:
            del sys.modules[name]


def succeeds(*arguments: object, **changes: str) -> str:
    """What the command, called in this process and in the current folder, prints; it ends with exit code 0."""
    done = minidl(Path(), *arguments, **changes)
    assert (done.returncode, done.stderr) == (0, ""), (arguments, done.stderr)
    return done.stdout


def refused(*arguments: object, **changes: str) -> str:
    """What the command, called in the current folder, prints as an error; it ends with exit code 2."""
    done = minidl(Path(), *arguments, **changes)
    assert done.returncode == 2, (arguments, done.stderr)
    return done.stderr


def refuses(command: str, sentences: Mapping[str, str]) -> None:
    """Assert that the command answers each of these words with one sentence, and makes no file.

    sentences: what is typed after the command, and what the error contains.
    """
    before = files()
    for words, sentence in sentences.items():
        err = refused(*shlex.split(command), *shlex.split(words))
        assert err.startswith(f"minidl {shlex.split(command)[0]}: "), words
        assert err.count("\n") == 1, words
        assert sentence in err, words
        assert files() == before, words


def files() -> list[Path]:
    """What is in the current folder, compiled modules aside: Python makes them for what `--import` names."""
    return sorted(path for path in Path().iterdir() if path.name != "__pycache__")


def environment(**changes: str) -> dict[str, str]:
    """What a new process sees: this checkout, numpy's kernels, and no width or colour of this terminal."""
    kept = {name: value for name, value in os.environ.items() if name not in OF_THE_TERMINAL}
    return kept | {"PYTHONPATH": str(ROOT), "MINIDL_KERNELS": "numpy"} | changes


def run_anew(folder: Path, *arguments: object, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end in a new process, as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "minidl", *map(str, arguments)],
        cwd=folder,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=580,
    )


def start(folder: Path, *arguments: object, **changes: str) -> subprocess.Popen[str]:
    """Start the command in a process group of its own, as a shell does. The test's end is its end too."""
    process = subprocess.Popen(
        [sys.executable, "-m", "minidl", *map(str, arguments)],
        cwd=folder,
        env=environment(**changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=with_default_signals,
    )
    STARTED.append(process)
    return process


def without_progress(errors: str) -> str:
    """What a started command has written to standard error, without the lines by which a slow machine is bridged."""
    return re.sub(r"^.* \d+% done .*\n", "", errors, flags=re.MULTILINE)


STARTED: list[subprocess.Popen[str]] = []


def end_what_was_started() -> None:
    """Kill what a failed test has left."""
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def with_default_signals() -> None:
    """Hang-ups end the program, also where the tests themselves run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def read_until(process: subprocess.Popen[str], text: str) -> None:
    """Read what a started command says, up to the line that contains `text`."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(f"ended without {text!r}: {process.communicate()[1]}")


def wait_for(folder: Path, pattern: str, count: int = 1, seconds: float = 120.0) -> None:
    """Wait until there are so many files of this name in the folder."""
    end = time.monotonic() + seconds
    while len(list(folder.glob(pattern))) < count:
        assert time.monotonic() < end, f"no {count} {pattern} in {folder} after {seconds} s"
        time.sleep(0.005)


def assert_same_bits(one: Path, other: Path) -> None:
    """The weights, buffers and optimizer states of the checkpoints of two run folders are equal to the bit."""
    a, b = (Checkpoint.load(folder / "checkpoint.npz") for folder in (one, other))
    assert (a.epoch, a.schedule) == (b.epoch, b.schedule)
    assert [row["loss"] for row in a.history] == [row["loss"] for row in b.history]
    assert bits([a.model, a.optimizer]) == bits([b.model, b.optimizer])


def bits(tree: Any) -> Any:
    """The tree with each array's type and bytes in its place."""
    if isinstance(tree, dict):
        return {key: bits(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [bits(value) for value in tree]
    return (tree.dtype, tree.tobytes()) if isinstance(tree, np.ndarray) else tree
