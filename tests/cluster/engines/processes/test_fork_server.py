"""A launch recovers when the process that forks the ranks was killed, or ran out of descriptors, since the last one."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from minidl import cluster, parallel
from tests.cluster import process_census
from tests.tiers import exhaustively

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="the census of processes reads /proc"),
]

ENVIRONMENT = os.environ | {"MINIDL_KERNELS": "numpy"}
"""The scripts call no kernels. To load the compiled ones took most of the time in which a fork server starts."""

BEGINNING = """
import os, resource, signal
from minidl import cluster

def ranks(nodes=3, on="processes"):
    return len(cluster.launch(lambda comm: comm.all_reduce(1), nodes=nodes, on=on, timeout=60).results)

def server():
    from multiprocess.forkserver import _forkserver
    return _forkserver._forkserver_pid

"""


def run(folder: Path, script: str, limit: int | None = None) -> tuple[str, str]:
    """What a script with that end prints and writes to standard error; no process is left when it has ended."""
    path = folder / "script.py"
    path.write_text(BEGINNING + script)
    command = [sys.executable, str(path)]
    if limit is not None:
        command = ["sh", "-c", f'ulimit -Sn {limit}; exec "$0" "$1"', *command]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=ENVIRONMENT,
        start_new_session=True,
    ) as process:  # fmt: skip
        out, err = process.communicate(timeout=200)
        assert process.returncode == 0, err
        assert process_census.wait_until_gone(process_census.descendants(process.pid)) == []
    return out, err


def test_a_launch_starts_another_fork_server_when_the_last_one_was_killed_or_has_no_descriptors_left(
    tmp_path: Path,
) -> None:
    script = """
print(ranks())
os.kill(server(), signal.SIGKILL)  # not yet dead when the next launch asks
print(ranks())
before, hard = server(), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.prlimit(before, resource.RLIMIT_NOFILE, (14, hard))
print(ranks(6), server() != before)
print(ranks())
"""
    assert run(tmp_path, script)[0] == "3\n3\n6 True\n3\n"


def test_a_launch_with_too_few_descriptors_says_so_and_leaves_the_fork_server_as_it_is(tmp_path: Path) -> None:
    too_many = """
print(ranks(2))
before = server()
try:
    print(ranks(20))
except OSError as error:
    print(str(error).partition(":")[0])
print(ranks(2), server() == before)
"""
    refused = "[Errno 24] 20 nodes need more open files than this process may have"
    assert run(tmp_path, too_many, limit=64) == (f"2\n{refused}\n2 True\n", "")


def test_the_garbage_collector_of_a_rank_does_not_look_at_what_the_server_holds() -> None:
    def held(comm: cluster.Communicator) -> tuple[int, int]:
        return gc.get_freeze_count(), len(gc.get_objects())

    frozen, own = cluster.launch(held, nodes=1, on=cluster.Processes("forkserver")).results[0]
    assert frozen > 10 * own > 0


def test_a_copy_of_a_process_that_has_launched_starts_a_fork_server_of_its_own(tmp_path: Path) -> None:
    copy = """
import multiprocessing
print(ranks(), flush=True)
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.map(ranks, [2, 4]), pool.apply(server) != server())
print(ranks())
"""
    assert run(tmp_path, copy) == ("3\n[2, 4] True\n3\n", "")


def test_a_launch_that_loses_its_fork_server_twice_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from minidl.cluster.engines.processes import start

    def lose(*_: object) -> None:
        raise EOFError("unexpected EOF")

    monkeypatch.setattr(start, "_start_ranks", lose)
    monkeypatch.setattr(start, "_end_server", lambda: None)
    with pytest.raises(OSError, match=r"ended twice while it started 2 of them: raise the limit on open files"):
        cluster.launch(lambda comm: None, nodes=2)


@pytest.mark.parametrize("method", ["forkserver", *exhaustively("spawn")])
def test_a_launch_from_a_folder_that_was_deleted_runs(method: str, tmp_path: Path) -> None:
    deleted = f"""
os.mkdir("deleted"); os.chdir("deleted"); os.rmdir("../deleted")
print(ranks(2, cluster.Processes({method!r})))
"""
    assert run(tmp_path, deleted) == ("2\n", "")


def test_without_a_temporary_folder_a_launch_says_what_to_do_or_runs(tmp_path: Path) -> None:
    no_folder = """
import tempfile
tempfile.tempdir = "/nowhere"
try:
    ranks(2)
except OSError as error:
    print(error)
print(ranks(2, cluster.Processes("spawn")))
"""
    said, _, count = run(tmp_path, no_folder)[0].partition("\n")
    assert said.startswith("the process that forks the ranks cannot make its socket in the temporary folder: ")
    assert "set TMPDIR to another folder" in said
    assert count == "2\n"


def test_nothing_stays_in_the_temporary_folder_when_the_launching_process_is_killed(tmp_path: Path) -> None:
    temporary = Path(tempfile.mkdtemp())  # shorter than tmp_path: a socket's path has about 100 characters
    (tmp_path / "script.py").write_text(
        f"{BEGINNING}print(ranks(2), flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "script.py"], capture_output=True, text=True, cwd=tmp_path,
        env=ENVIRONMENT | {"TMPDIR": str(temporary)},
    )  # fmt: skip
    assert done.stdout == "2\n", done.stderr
    end = time.monotonic() + 100
    while list(temporary.iterdir()) and time.monotonic() < end:  # the server ends after its ranks
        time.sleep(0.05)
    assert list(temporary.iterdir()) == []
    temporary.rmdir()


def test_where_the_launcher_has_imported_what_trains_no_rank_imports_it_again() -> None:
    name = parallel.__name__
    assert cluster.launch(lambda comm: name in sys.modules, nodes=2, deadline=150).results == [True, True]
