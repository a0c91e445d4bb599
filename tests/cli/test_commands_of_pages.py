"""Every command that a page or the help prints is typed.

Those of `minidl` run, with less to compute: one epoch (two where a run goes on), two seeds, 1 MB, samples of 32
symbols, data sets of 160 samples, simulated nodes. Those of the course and of the benchmarks are parsed, and so is what
a launcher starts. The tasks of minidl/for_engineers.md are done as they stand there, one command after the other.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from PIL import Image

from course.command_line import COMMANDS
from minidl import cluster, data
from minidl.cli.app import EXAMPLES
from minidl.parallel import Checkpoint
from tests.cli.command import entry, minidl, succeeds
from tests.house.test_pages import LECTURES, PAGES, ROOT
from tests.tiers import exhaustively

TASKS = dict(re.findall(r"^## (\d\. [^\n]*)\n(.*?)(?=^## |\Z)", PAGES["minidl/for_engineers.md"], re.M | re.S))
OTHER_PAGES = [text for name, text in PAGES.items() if name != "minidl/for_engineers.md"]
INLINE = [
    command
    for path in LECTURES.glob("*.py")
    for command in re.findall(r"`(python3 -m course[^`{\n]*)`", path.read_text(encoding="utf-8"))
]

NOT_TYPED = {  # what a line begins with, and why it is not typed here
    "git clone": "copies the repository",
    "cd": "changes the shell",
    "source": "changes the shell",
    "printf": "the file that it writes is for a launcher",
    "pip install": "installs",
    "pre-commit install": "installs",
    "python3 -m course test": "hands its words to pytest",
    "python3 -m course demo": "takes no words: tests/course/commands/test_demo.py",
    "python3 -m course lab": "hands its words to JupyterLab: tests/course/commands/test_lab.py",
    "python -m minidl.mini": "takes no words: tests/mini",
    "mpiexec -n 4 python script.py": "a reader's own program",
    "nbgrader": "another program: tests/course/grading",
}
LAUNCHERS = ("mpiexec", "srun")
LARGE_THAT_DOES_NOT_FIT = "memory --model gpt:layers=96,heads=96,width=12288,context=2048 "  # other plans are tried
DEAR = (
    "train",
    "compare",
    "calibrate",
    "simulate --measured",
    "simulate --networks torus:8x8",
    LARGE_THAT_DOES_NOT_FIT,
)
"""Commands of a second or more; the first tier types one of the first two."""


def commands(text: str) -> list[str]:
    """The commands in a text for a shell, a line each, in the words that the shell passes on."""
    lines = text.replace("\\\n", " ").splitlines()
    parts = [part for line in lines for part in shlex.join(shlex.split(line, comments=True)).split(" '&&' ")]
    return [part for part in parts if part]


BLOCKS = [
    block for page in OTHER_PAGES for block in re.findall(r"^```(?:sh|bash|console)\n(.*?)^```", page, re.M | re.S)
]
TYPED = sorted({command for text in (*BLOCKS, *EXAMPLES.values(), *INLINE) for command in commands(text)})
RUN = [command.removeprefix("minidl ") for command in TYPED if command.startswith("minidl ")]
PARSED = [
    command
    for command in TYPED
    if not command.startswith(("minidl ", *(f"{begin} " for begin in NOT_TYPED))) and command not in NOT_TYPED
]


def is_dear(command: str) -> bool:
    return command.startswith(DEAR) and "--list" not in command


FIRST = {command for command in RUN if not is_dear(command)} | {
    next(command for command in RUN if command.startswith(dear)) for dear in DEAR[:2]
}


# ---- minidl ----

OWN_CODE = """
from dataclasses import dataclass

from minidl import compress
from minidl.cluster.collectives.all_reduce import all_reduce_tree

@dataclass
class MyTopK(compress.TopK):
    density: float = 0.07

def my_all_reduce(comm, x, op):
    all_reduce_tree(comm, x, op)
"""


def few(load: Any, **sizes: int) -> data.Splits:
    """The first 160 samples and 40 for testing, of all classes."""
    splits = load(**sizes)
    if sizes:
        return splits
    train, test = (
        data.Dataset(part.x[:count], part.y[:count], part.name, part.classes)
        for part, count in zip(splits, (160, 40), strict=True)
    )
    return replace(splits, train=train, test=test)


@pytest.fixture(scope="module")
def few_samples():
    with pytest.MonkeyPatch.context() as patch:
        sizes = {"glyphs": {"n_train": 64, "n_test": 26}, "stdlib_text": {"n_chars": 12_000}}
        for name in ("digits", "spirals", *sizes):
            load = data._DATA_SETS[name]
            patch.setitem(data._DATA_SETS, name, partial(few, load, **sizes.get(name, {})))
        yield


@pytest.fixture(scope="module")
def folder(few_samples, tmp_path_factory):
    """A folder with all that the pages have: files of the reader's own, and runs for FOLDER."""
    folder = tmp_path_factory.mktemp("reader")
    rows = [f"{i % 7},{i % 5},{'ab'[i % 7 > 3]}\n" for i in range(160)]
    for name in ("my.csv", "new.csv"):
        (folder / name).write_text(f"left,right,label\n{''.join(rows)}")
    (folder / "results.csv").write_text("method,seed,accuracy\n" + "".join(f"mine,{i},0.9{i}\n" for i in range(5)))
    (folder / "my.txt").write_text("def minidl(): ...\n" * 600)
    (folder / "my.py").write_text(OWN_CODE)
    Image.fromarray(np.eye(8, dtype=np.uint8) * 255).save(folder / "digits.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        made = ("--epochs", 1, "--on", "simulation", "--out")
        succeeds("train", "--model", "mlp", *made, "runs/images")
        succeeds("train", "--model", "mlp:hidden=4", "--data", "my.csv", *made, "runs/table")
        succeeds("train", "--model", "gpt:layers=1,width=8,context=8", "--data", "my.txt", *made, "runs/text")
        succeeds("schedule", "zb-h1", "--out", "drawn")
        cluster.Network.preset("10gbe").save("net.json")
    unfinished = Checkpoint.load(folder / "runs/images")
    unfinished.config["epochs"] = 2
    unfinished.save(folder / "runs/images/checkpoint.npz")
    return folder


def run_for(words: list[str]) -> str:
    """The run that stands for FOLDER."""
    return "runs/text" if words[0] == "sample" else "runs/table" if words[-1].endswith(".csv") else "runs/images"


def less(words: list[str]) -> list[str]:
    """The words with less to compute, as the docstring at the top says."""
    words = [run_for(words) if word == "runs/FOLDER" else word for word in words]
    epochs = "2" if "--resume" in words else "1"
    most = {"--epochs": epochs, "--seeds": "2", "--bytes": "1MB"}
    words = [re.sub("context=[0-9]+", "context=32", word) for word in words]
    words = [most.get(before, word) for before, word in zip(["", *words], words, strict=False)]
    if words[0] == "simulate" and "--bytes" not in words:
        words += ["--bytes", "1MB"]
    if is_dear(" ".join(words)) and words[0] in ("train", "compare"):
        added = {"--epochs": epochs} | ({"--on": "simulation"} if words[0] == "train" else {})
        words += [word for name, value in added.items() if name not in words for word in (name, value)]
    return words


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "command",
    [command if command in FIRST else pytest.param(command, marks=pytest.mark.exhaustive) for command in RUN],
)
def test_a_command_of_minidl_runs(command, folder, tmp_path, monkeypatch):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    done = minidl(tmp_path, *less(shlex.split(command)))
    assert done.returncode == 0, done.stderr


# ---- the course, the benchmarks, launchers ----


class UnderstoodError(Exception):
    """All words were parsed."""


def understood(self: argparse.ArgumentParser, words: Any = None, namespace: Any = None) -> None:
    _, rest = self.parse_known_args(words, namespace)
    if rest:
        self.error(f"unrecognized arguments: {' '.join(rest)}")
    raise UnderstoodError


@pytest.mark.parametrize("command", PARSED)
def test_a_command_of_another_program_is_understood(command, monkeypatch):
    words = shlex.split(command)
    if words[0] in LAUNCHERS:
        words = words[words.index("minidl") :]
    if words[0] == "pytest":
        assert [word for word in words if word.startswith("tests/") and not (ROOT / word).exists()] == []
        return
    if words[0] == "minidl":
        whole = entry().make_context("minidl", words[1:])  # without it, click takes -h from the command for good
        entry().commands[words[1]].make_context(words[1], words[2:], parent=whole)
        return
    assert words[:2] in (["python3", "-m"], ["python", "-m"]), f"{command}: NOT_TYPED must say why it is not typed"
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", understood)
    if words[2] == "benchmarks":
        typer.main.get_command(import_module("benchmarks.__main__").app).make_context(words[2], words[3:])
    elif words[2] == "course" and not words[3:]:
        return  # the overview
    else:
        module = COMMANDS[words[3]].module if words[2] == "course" else f"{words[2]}.__main__"
        run = getattr(import_module(module), "run" if words[2] == "course" else "main")
        with pytest.raises(UnderstoodError):
            run(words[4:] if words[2] == "course" else words[3:])


# ---- the page that is typed as it stands ----

ADDRESSES = {"node1": "127.0.0.1", "node2": "127.0.0.2"}  # two addresses of this computer

SSH = """#!/bin/sh
# Stands for ssh: ssh [-options] HOST COMMAND..., which is run here.
while [ "${1#-}" != "$1" ]; do shift; done
shift
exec sh -c "$*"
"""


def programs(folder: Path) -> dict[str, str]:
    """The environment in which the page is typed: `minidl`, `mpiexec`, and an `ssh` that stays on this computer."""
    tools = folder / "tools"
    tools.mkdir()
    for name, text in {"ssh": SSH, "minidl": f'#!/bin/sh\nexec {sys.executable} -m minidl "$@"\n'}.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "HYDRA_LAUNCHER": "ssh"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("title", "blocks"), [(min(TASKS), 2), *exhaustively(*((title, None) for title in TASKS))])
def test_the_commands_of_for_engineers_work_as_printed(title: str, blocks: int | None, tmp_path: Path):
    """blocks: how many blocks of the task are tried (two: a command, and what it prints); None for all."""
    text = "".join(f"{block}```\n" for block in TASKS[title].split("```\n")[:blocks])
    environment = programs(tmp_path)
    if "mpiexec" in text and (find_spec("mpi4py") is None or not shutil.which("mpiexec", path=environment["PATH"])):
        pytest.skip("needs the extra mpi")
    for name, program in re.findall(r"^```python\n# (\S+\.py)\n(.*?)^```", text, re.M | re.S):
        (tmp_path / name).write_text(program, encoding="utf-8")
    script = "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S))
    for name, address in ADDRESSES.items():
        script = script.replace(name, address)
    result = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=580
    )
    assert result.returncode == 0, result.stderr
    said = " ".join(result.stdout.split())
    for block in re.findall(r"^```text\n(.*?)^```", text, re.M | re.S):
        for line in block.splitlines():
            assert " ".join(line.split()) in said
