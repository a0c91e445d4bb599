"""What the commands `minidl` and `python3 -m course` say: help texts, errors, and the tables of small runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from .exact import without_addresses

HELP = (
    *("minidl --help", "minidl train --help", "minidl compare --help", "minidl simulate --help", "minidl info --help"),
    *("course --help", "course check --help", "course grade --help", "course start --help", "course progress --help"),
    *("course release --help", "course redraw --help", "course build --help"),
)
SMALL = "--model mlp --data digits --epochs 1 --seed 3"
RUNS = {
    "train": f"minidl train {SMALL} --nodes 3 --on simulation --network 10gbe --algorithm ring --bucket-mb 0.01",
    "train, strategy": f"minidl train {SMALL} --nodes 2 --on simulation --strategy local_sgd:period=4",
    "train, serial": f"minidl train {SMALL} --kernels numpy",
    "compare": (
        "minidl compare --strategies serial synchronous:compressor=ef(top_k(0.1)) parameter_server:staleness=2 "
        "gossip --networks 1gbe none --nodes 2 --epochs 1 --jitter 0.1 --slow 1:2 --momentum 0.5"
    ),
    "simulate": "minidl simulate --algorithm ring,tree --nodes 2,4 --bytes 64KiB --network 10gbe",
    "simulate, broadcast": "minidl simulate --collective broadcast --nodes 3 --bytes 1MB --gamma 1e-9",
}
WRONG = (
    *("minidl train --nodes 0", "minidl train --model cnn", "minidl train --strategy local_sgd:perod=3"),
    *("minidl train --strategy local_sgd:period=none", "minidl train --strategy synchronous:compressor=top_k(2)"),
    *("minidl compare --strategies serial --networks 2gbe", "minidl compare --strategies serial --slow 1"),
    *("minidl simulate --bytes ten", "minidl trian", "minidl simulate --algorithm star", "course check 99"),
    *("course nothing", "course start 99", "course check 01 --hint vjp_max 2", "course grade no_such_folder"),
)
TABLES = ("*.csv", "config.json")  # the trace is compared by the other groups


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The cases of this group."""
    for command in (*HELP, *WRONG):
        yield command, partial(printed, command)
    for name, command in RUNS.items():
        yield name, partial(written, command)


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command, in that folder."""
    environment = {**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-P", "-m", *command.split()],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip


def printed(command: str) -> Any:
    """Exit code, output and errors."""
    with tempfile.TemporaryDirectory() as folder:
        done = run(command, Path(folder))
    return {
        "exit code": done.returncode,
        "stdout": without_addresses(done.stdout).splitlines(),
        "stderr": without_addresses(done.stderr).splitlines(),
    }


def written(command: str) -> Any:
    """Exit code, and the tables that the command writes; times are left out where they are real."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        done = run(f"{command} --out {folder / 'out'}", folder)
        files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        tables = {}
        if "simulat" in command or "compare" in command:
            found = sorted(path for pattern in TABLES for path in folder.rglob(pattern))
            tables = {path.name: path.read_text(encoding="utf-8").replace(name, "").splitlines() for path in found}
    return {"exit code": done.returncode, "stderr": done.stderr.splitlines(), "files": files, "tables": tables}
