"""The tasks of minidl/for_engineers.md are done by typing what stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.tiers import exhaustively

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "minidl" / "for_engineers.md").read_text(encoding="utf-8")
TASKS = dict(re.findall(r"^## (\d\. [^\n]*)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
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
    commands = "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S))
    for name, address in ADDRESSES.items():
        commands = commands.replace(name, address)
    result = subprocess.run(
        ["bash", "-e", "-c", commands], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=580
    )
    assert result.returncode == 0, result.stderr
    said = " ".join(result.stdout.split())
    for block in re.findall(r"^```text\n(.*?)^```", text, re.M | re.S):
        for line in block.splitlines():
            assert " ".join(line.split()) in said
