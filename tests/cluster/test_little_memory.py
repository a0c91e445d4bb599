"""A small /dev/shm, as in containers, or no anonymous memory: ranks share memory all the same, or say what to do."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.engines import anonymous_file

pytestmark = pytest.mark.timeout(300)

LARGE = """
import os, sys
import numpy as np
from minidl import cluster
def program(comm, has_memfd):
    if not has_memfd:
        del os.memfd_create
    x = np.ones(1_000_000)
    for algorithm in ("auto", "ring"):
        comm.all_reduce(x, algorithm=algorithm)
    return float(x[0])
try:
    print(cluster.launch(program, args=({has_memfd},), nodes=2).results)
except cluster.RankFailed as error:
    print(str(error).splitlines()[0])
"""


def run_with_little_room(folder: str, kilobytes: int, source: str) -> str:
    """What the program prints where the file systems at that folder and /dev/shm are so small, for it alone."""
    mount = " && ".join(f"mount -t tmpfs -o size={kilobytes}k tmpfs {small}" for small in {folder, "/dev/shm"})
    if sys.platform != "linux" or subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("mounting a small file system needs Linux and the right to do so")
    script = f"{mount} && exec {sys.executable} -c '{source}'"
    environment = {**os.environ, "TMPDIR": folder, "MINIDL_KERNELS": "numpy"}
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, env=environment)
    assert done.stderr == ""
    return done.stdout


def test_a_small_dev_shm_and_a_full_disk_do_not_matter_where_there_is_anonymous_memory(tmp_path: Path) -> None:
    assert run_with_little_room(str(tmp_path), 64, LARGE.format(has_memfd=True)) == "[4.0, 4.0]\n"


def test_without_room_anywhere_the_error_says_what_to_do(tmp_path: Path) -> None:
    text = run_with_little_room(str(tmp_path), 1024, LARGE.format(has_memfd=False))
    assert "of shared memory" in text
    assert str(tmp_path) in text
    assert "set TMPDIR" in text


def test_without_anonymous_memory_a_temporary_file_serves() -> None:
    def program(comm: cluster.Communicator) -> float:
        del os.memfd_create
        x = np.ones(1_000_000)
        for algorithm in ("auto", "ring"):
            comm.all_reduce(x, algorithm=algorithm)
        return float(x[0])

    assert cluster.launch(program, nodes=2).results == [4.0, 4.0]


def test_a_sandbox_that_refuses_anonymous_memory_gets_a_temporary_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> int:
        raise PermissionError(1, "not here")

    monkeypatch.setattr(os, "memfd_create", refuse, raising=False)
    descriptor = anonymous_file.anonymous_file("minidl", 5000)
    try:
        assert os.fstat(descriptor).st_size == 5000
        assert os.fstat(descriptor).st_nlink == 0
        assert os.fstat(descriptor).st_blocks * 512 >= 5000  # there is room for all of it
    finally:
        os.close(descriptor)
