"""The MPI engine: mpiexec started by a launch, a launch in a script that mpiexec has started, and their ends."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster import Communicator
from minidl.cluster.engines import supervisor
from tests.cluster import process_census
from tests.tiers import exhaustively

pytest.importorskip("mpi4py", reason="needs the extra mpi")
launcher = pytest.importorskip("minidl.cluster.engines.mpi.launcher")
cleanup = pytest.importorskip("minidl.cluster.engines.mpi.cleanup")

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="launch starts mpiexec on Linux only"),
]

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    before, descriptors = process_census.shared_memory(), process_census.descriptors()
    yield
    assert process_census.wait_until_gone(process_census.ranks(os.getpid())) == []
    assert process_census.left_in_shared_memory(before) == set()
    assert {d.split()[0] for d in process_census.descriptors()} <= {d.split()[0] for d in descriptors}


# Started by a launch


@dataclass(frozen=True)
class Seen:
    """What came of one launch: the run, what the ranks printed, and what they told."""

    run: cluster.Run
    printed: str
    told: list[tuple[int, Any]]


@pytest.fixture(scope="module")
def seen() -> Seen:
    def program(comm: Communicator, x: int) -> dict[str, Any]:
        print("hello from", comm.rank)
        comm.tell(comm.rank * x)
        comm.send(np.ones(10), (comm.rank + 1) % comm.size)
        comm.recv((comm.rank - 1) % comm.size)
        before = comm.bytes_sent
        reduce_in_any_order(comm)
        return {
            "environment": os.environ.get("OF_THIS_TEST"),
            "in any order": comm.bytes_sent > before,
            **counted(comm),
        }

    told: list[tuple[int, Any]] = []
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
        patch.setenv("OF_THIS_TEST", "inherited")
        run = cluster.launch(
            program, args=(10,), nodes=4, on="mpi", timeout=25, listener=lambda *what: told.append(what)
        )
    return Seen(run, printed.getvalue(), told)


def reduce_in_any_order(comm: Communicator) -> None:
    """All-reduces of the program and of its helper, on each rank in another order."""
    for round_ in range(20):
        x, y = np.full(3000, 1.0), np.full(3000, 100.0)
        first = comm.all_reduce(x, async_op=comm.rank > 0)
        second = comm.all_reduce(y, async_op=comm.rank % 2 == 0)
        for work in (second, first):
            if isinstance(work, cluster.Work):
                work.wait()
        assert (x == comm.size).all(), round_
        assert (y == 100 * comm.size).all(), round_


def counted(comm: Communicator) -> dict[str, Any]:
    """The bytes sent by the all-reduce "auto" of arrays of several types, in all ranks and in half of them."""
    half = comm.split(comm.rank % 2)
    assert half is not None
    sent = [comm.bytes_sent]
    for x in (np.ones(100), np.ones(100_000, np.int32), np.ones(10, np.complex64), np.ones(10, np.float16)):
        comm.all_reduce(x)
        half.all_reduce(x)
        assert (x == 4 * 2).all()
        sent.append(comm.bytes_sent)
    return {"bytes": list(np.diff(sent))}


def test_launch_starts_mpiexec_and_brings_back_results_output_trace_and_what_was_told(seen: Seen) -> None:
    assert [result["environment"] for result in seen.run.results] == ["inherited"] * 4
    assert seen.printed == "".join(f"[rank {rank}] hello from {rank}\n" for rank in range(4))
    assert sorted(seen.told) == [(0, 0), (1, 10), (2, 20), (3, 30)]
    assert seen.run.trace.source == "measured"
    assert all(rank["send"] == (1, 80, 0, 0, 1) for rank in seen.run.trace.ledger())
    assert seen.run.seconds > 0


def test_auto_is_mpis_own_all_reduce_where_mpi_knows_the_type(seen: Seen) -> None:
    for result in seen.run.results:
        *by_mpi, by_messages = result["bytes"]
        assert by_mpi == [2 * 800, 2 * 400_000, 2 * 80]  # what it sends it does not say: counted is what it is given
        assert by_messages > 2 * 20


def test_the_time_of_mpis_own_all_reduce_is_communication(seen: Seen) -> None:
    for rank in range(4):
        events = [event for event in seen.run.trace.events if event.rank == rank and event.operation == "all_reduce"]
        assert sum(event.kind == "receive" and event.peer < 0 for event in events) >= 6  # the calls of `counted`


def test_mpis_own_all_reduce_is_paired_by_calls_whatever_goes_on_beside_on_some_ranks(seen: Seen) -> None:
    assert [result["in any order"] for result in seen.run.results] == [True] * 4


def raises(comm: Communicator) -> None:
    comm.barrier()
    if comm.rank == 1:
        raise ZeroDivisionError("of this test")
    comm.recv(1)


def ends_without_a_word(comm: Communicator) -> None:
    comm.barrier()
    if comm.rank == 1:
        os._exit(0)
    comm.all_reduce(np.ones(10))


def stops(comm: Communicator) -> None:
    comm.barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    comm.all_reduce(np.ones(10))


@pytest.mark.parametrize(
    ("program", "kind", "culprits", "said"),
    [
        (raises, cluster.RankFailed, {1}, "ZeroDivisionError: of this test"),
        *exhaustively(
            (ends_without_a_word, cluster.RankFailed, {1}, "the process died"),
            (stops, cluster.CommTimeout, {0, 2}, "did not complete within 3 s"),
        ),
    ],
)
def test_a_run_that_fails_comes_back_with_the_cause(program: Any, kind: type, culprits: set[int], said: str) -> None:
    with pytest.raises(kind) as caught:
        cluster.launch(program, nodes=3, on="mpi", timeout=3 if kind is cluster.CommTimeout else 25, deadline=150)
    assert type(caught.value) is kind
    assert caught.value.rank in culprits
    assert said in str(caught.value).splitlines()[0]


def test_the_rank_that_died_is_named_although_mpiexec_has_killed_the_others_and_no_file_stays() -> None:
    """The launcher is busy with a listener meanwhile. mpiexec kills the others soon, or the listener does."""

    def program(comm: Communicator) -> None:
        processes = comm.all_gather(os.getpid())
        if comm.rank == 0:
            comm.tell(processes)
        comm.recv(1 - comm.rank)

    def listener(rank: int, processes: list[int]) -> None:
        for process in reversed(processes):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            assert process_census.wait_until_gone([process]) == []

    before = topology_files()
    with pytest.raises(cluster.RankFailed, match="the process died") as caught:
        cluster.launch(program, nodes=2, on="mpi", timeout=25, deadline=150, listener=listener)
    assert caught.value.rank == 1
    end = time.monotonic() + 100
    while topology_files() - before and time.monotonic() < end:  # those of other tests go
        time.sleep(0.05)
    assert topology_files() - before == set()


def topology_files() -> set[str]:
    """MPICH's mpiexec writes them there whatever TMPDIR says."""
    return {path.name for path in Path("/tmp").glob("hydra_hwloc_xmlfile_*")}


def break_mpi(comm: Communicator) -> None:
    """From now on MPI fails on this rank, as it does where it reads from a process that has been killed."""
    from mpi4py import MPI

    class Broken:
        def __init__(self, whole: Any) -> None:
            self.whole = whole

        def __getattr__(self, name: str) -> Any:
            return getattr(self.whole, name)

        def Improbe(self, *_: Any) -> None:  # noqa: N802  (MPI's name)
            raise MPI.Exception(MPI.ERR_OTHER)

    endpoint: Any = comm._owner.endpoint
    endpoint._comm = Broken(endpoint._comm)


@pytest.mark.parametrize("dies", [True, *exhaustively(False)])
def test_an_error_of_mpi_names_the_rank_that_has_died_and_does_not_bring_mpi_to_the_launcher(
    dies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def program(comm: Communicator) -> None:
        from minidl.cluster.engines.mpi import mailbox

        comm.barrier()
        if comm.rank == 0:
            mailbox.NEWS_SECONDS = 0.0  # so that the launcher hears of the error first
            break_mpi(comm)
        elif dies and comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.recv((comm.rank + 1) % comm.size)

    if dies:
        monkeypatch.setattr(supervisor, "PATIENCE_SECONDS", 60.0)
    with pytest.raises(cluster.RankFailed) as caught:
        cluster.launch(program, nodes=3, on="mpi", timeout=25, deadline=150)
    assert caught.value.rank == (1 if dies else 0)
    assert str(caught.value).startswith("the process died" if dies else "MPI has failed, and no other rank has died: ")
    assert "mpi4py" not in type(caught.value.cause).__module__


def test_an_endless_loop_ends_at_the_deadline() -> None:
    def program(comm: Communicator) -> None:
        while comm.rank == 1:
            time.sleep(0.01)
        comm.recv(1)

    with pytest.raises(cluster.CommTimeout, match="deadline of 2 s"):
        cluster.launch(program, nodes=2, on="mpi", deadline=2)


@pytest.mark.parametrize("seconds", [0.1, *exhaustively(0.5)])
def test_a_launch_whose_time_is_up_while_it_starts_leaves_nothing(seconds: float) -> None:
    with pytest.raises(cluster.CommTimeout, match="deadline"):
        cluster.launch(wait_in_a_circle, nodes=2, on="mpi", deadline=seconds)


def wait_in_a_circle(comm: Communicator) -> None:
    comm.recv((comm.rank + 1) % comm.size)


def test_faults_on_purpose_strike_under_mpi_too() -> None:
    with pytest.raises(cluster.RankFailed) as caught:
        cluster.launch(raises, nodes=2, on="mpi", faults=cluster.FaultPlan().kill(1, at="barrier"))
    assert caught.value.rank == 1
    assert caught.value.trace is not None
    assert [(event.rank, event.label) for event in caught.value.trace.faults] == [(1, "kill in barrier (call 1)")]


def test_what_mpi_cannot_do_is_refused_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="on_failure='continue' is not possible under MPI"):
        cluster.launch(raises, on="mpi", on_failure="continue")
    with pytest.raises(ValueError, match="leave network= away"):
        cluster.launch(raises, on="mpi", network="1gbe")
    with pytest.raises(ValueError, match="trace_events"):
        cluster.MPI(trace_events=-1)
    with pytest.raises(TypeError, match="cannot be pickled"):
        cluster.launch(raises, args=(threading.Lock(),), on="mpi")
    with pytest.raises(cluster.RankFailed, match="a rank cannot launch ranks of its own"):
        cluster.launch(lambda comm: cluster.launch(raises, on="mpi"), nodes=1, on="mpi")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setattr(launcher.sysconfig, "get_path", lambda _: "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match=r"pip install 'minidl\[mpi\]'"):
        launcher.find_mpiexec()


LAUNCH = """
import tempfile
tempfile.tempdir = "/nowhere"  # for the fork server: MPI needs no temporary folder
from minidl import cluster
print(cluster.launch({program}, nodes=2, on="mpi", timeout=25).results)
"""
FROM_BESIDE = "import of_the_student\n" + LAUNCH.format(program="of_the_student.program")
FROM_A_DELETED_FOLDER = "import os; os.rmdir(os.getcwd())\n" + LAUNCH.format(program="lambda comm: comm.rank")


@pytest.mark.parametrize(
    ("flag", "script"), [("-c", FROM_BESIDE), *exhaustively(("-", FROM_BESIDE), ("-c", FROM_A_DELETED_FOLDER))]
)
def test_ranks_import_what_the_caller_can_wherever_it_is(tmp_path: Path, flag: str, script: str) -> None:
    (tmp_path / "folder").mkdir()
    if script is FROM_BESIDE:
        (tmp_path / "folder" / "of_the_student.py").write_text("def program(comm):\n    return comm.rank\n")
    done = subprocess.run(
        [sys.executable, flag, *([script] if flag == "-c" else [])], input=script, capture_output=True, text=True,
        timeout=60, cwd=tmp_path / "folder", env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout == "[0, 1]\n", done.stderr


@pytest.mark.parametrize("victim", ["hydra_pmi_proxy", *exhaustively("mpiexec", "minidl.cluster.engines.mpi.rank")])
def test_a_kill_while_the_ranks_connect_leaves_no_process_and_no_segment(
    victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    accept = launcher.MpiexecJob._accept

    def kill_after_the_last(job: Any, found: dict[int, Any]) -> None:
        accept(job, found)
        if len(found) == 4:
            for pid in process_census.descendants(os.getpid()):
                if any(word.endswith(victim) for word in process_census.command(pid).split()[:4]):
                    killed.append(pid)
                    os.kill(pid, signal.SIGKILL)
                    break

    monkeypatch.setattr(launcher.MpiexecJob, "_accept", kill_after_the_last)
    with pytest.raises(cluster.ClusterError):  # ranks that outlive their proxy connect, and time out
        cluster.launch(wait_in_a_circle, nodes=4, on="mpi", timeout=3)
    assert killed
    assert process_census.ranks(os.getpid()) == []


def test_segments_that_no_process_has_mapped_are_removed() -> None:
    held, left = (Path(f"/dev/shm/mpich_shm_of_this_test_{os.getpid()}_{name}") for name in ("held", "left"))
    known = cleanup.segments()
    try:
        for path in (held, left):
            path.write_bytes(bytes(4096))
        mapped = np.memmap(held, np.uint8, "r")
        cleanup.remove_unused(known)
        assert held.exists()
        assert not left.exists()
        del mapped
    finally:
        held.unlink(missing_ok=True)
        left.unlink(missing_ok=True)


# Under mpiexec


def under_mpiexec(folder: Path, script: str, nodes: int, timeout: float = 40) -> subprocess.CompletedProcess[str]:
    path = folder / "script.py"
    path.write_text(textwrap.dedent(script))
    command = [launcher.find_mpiexec(), "-n", str(nodes), sys.executable, str(path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MINIDL_KERNELS": "numpy"}  # no rank loads compiled ones
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, cwd=folder)


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    return sorted(line for line in done.stdout.splitlines() if line.strip())


def test_every_rank_of_a_script_under_mpiexec_gets_the_run_and_the_first_one_hears_what_all_tell(
    tmp_path: Path,
) -> None:
    """Fingerprints are compared in debug mode and not counted; faults strike where MPI would reduce by itself.

    What is told is larger than a message that MPI sends at once, and rank 0 waits for the others only at the end.
    """
    done = under_mpiexec(
        tmp_path,
        """
        import sys
        import numpy as np
        from minidl import cluster, random

        def program(comm, given):
            given.append(comm.rank)
            half = comm.split(comm.rank % 2)
            x = np.ones(100_000)
            work = half.all_reduce(x, async_op=True)
            comm.shared_array("x", 3)[comm.rank] = 1
            if comm.rank % 2:
                half.barrier()
            work.wait()
            comm.barrier()
            shared = float(comm.shared_array("x", 3).sum())
            if comm.rank == 0:  # on another line
                return comm.all_reduce(comm.rank), float(x[0]), shared, comm.rng.random()
            return comm.all_reduce(comm.rank), float(x[0]), shared, comm.rng.random()

        given = [5]
        before = random.manual_seed(1)
        run = cluster.launch(program, args=(given,), nodes=3, on="mpi", seed=4)
        again = cluster.launch(program, args=(given,), nodes=3, on=cluster.MPI(debug=True), seed=4)
        assert given == [5]
        assert random.generator() is before
        assert run.results == again.results
        assert run.trace.ledger() == again.trace.ledger()
        assert len({result[3] for result in run.results}) == 3
        faults = cluster.FaultPlan(seed=1).corrupt(1, at="all_reduce")
        spoiled = cluster.launch(lambda comm: comm.all_reduce(np.ones(4)).sum(), nodes=3, on="mpi", faults=faults)
        assert spoiled.results != [12.0] * 3 and spoiled.trace.faults
        assert [result[:3] for result in run.results] == [(3, 2.0, 3.0), (3, 1.0, 3.0), (3, 2.0, 3.0)]
        assert len(run.trace.ledger()) == 3

        def tells(comm):
            for number in range(7):
                comm.tell((number, bytes(300_000)))

        heard = []
        cluster.launch(tells, nodes=3, on="mpi", listener=lambda rank, told: heard.append((rank, told[0])))
        in_order = all([n for r, n in heard if r == rank] == [*range(7)] for rank in range(3))
        sys.stdout.write(f"{cluster.is_first('mpi')} {len(heard)} {in_order}\\n")
        """,
        nodes=3,
    )
    assert done.returncode == 0, done.stderr
    assert lines(done) == ["False 0 False", "False 0 False", "True 21 True"]


def test_under_mpiexec_the_first_rank_measures_where_all_cut_a_model(tmp_path: Path) -> None:
    """Each rank would measure other seconds; what the first one raises is raised on all."""
    done = under_mpiexec(
        tmp_path,
        """
        import sys
        from functools import partial
        from minidl import cluster, data, nn, optim, parallel
        from minidl import mpiexec
        from minidl.parallel import pipeline

        rank, measured = mpiexec.rank(), []

        def costs_of_units(units, x, unit):
            measured.append(unit)
            seconds = [1, 1, 9] if rank == 0 else [9, 1, 1]
            return pipeline.Costs(tuple(pipeline.UnitCost("", each, 0, 0, 0, 0) for each in seconds), unit)

        sys.modules[parallel.Pipeline.__module__].costs_of_units = costs_of_units
        optimizer = partial(optim.SGD, lr=0.1)
        job = parallel.Job(lambda: nn.models.MLP(2, 8, 8, 3), partial(data.spirals, n=40), optimizer, epochs=1)
        report = parallel.train(job, parallel.Pipeline(2, 4, cuts="seconds"), nodes=2, on="mpi")
        try:
            cluster.once(lambda: 1 // 0 if rank == 0 else 1, "mpi")
        except ZeroDivisionError as error:
            sys.stdout.write(f"{rank} {report.strategy.cuts} {measured} {error}\\n")
        """,
        nodes=2,
    )
    assert done.returncode == 0, done.stderr
    assert lines(done) == [
        "0 [2] ['seconds'] integer division or modulo by zero",
        "1 [2] [] integer division or modulo by zero",
    ]


def test_under_mpiexec_a_run_that_fails_makes_launch_raise_on_all_and_the_script_can_go_on(tmp_path: Path) -> None:
    done = under_mpiexec(
        tmp_path,
        """
        import sys
        import numpy as np
        from minidl import cluster

        def program(comm, bad):
            comm.isend(np.ones(100_000), (comm.rank + 1) % comm.size)
            comm.send(3, (comm.rank + 1) % comm.size)
            if comm.rank == bad:
                raise ValueError("of this test")
            return comm.all_reduce(comm.recv((comm.rank - 1) % comm.size)[0])

        def waits(comm):
            comm.recv((comm.rank + 1) % comm.size)

        def waits_for_one_that_has_returned(comm):
            if comm.rank != 1:
                comm.recv(1)

        def reduces_by_mpi_without_one_that_has_returned(comm):
            comm.all_reduce(np.ones(10))
            if comm.rank != 1:
                comm.all_reduce(np.ones(10))

        def reduces_beside_itself_without_one_that_has_returned(comm):
            if comm.rank != 1:
                comm.all_reduce(np.ones(10), algorithm="ring", async_op=True).wait()

        def sends_too_much_too_early(comm):
            if comm.rank < 2:
                comm.send(np.ones(10_000), 1 - comm.rank)
                comm.recv(1 - comm.rank)

        def waits_beside_itself(comm):
            if comm.rank == 1:
                comm.recv(0, tag=5)
            comm.all_reduce(np.ones(4), algorithm="parameter_server", async_op=True).wait()

        def mixed_up(comm):
            comm.all_reduce(np.ones(4), op="max" if comm.rank == 2 else "sum")

        def swapped(comm):
            for turn in (1, 2):
                if (turn == 1) == (comm.rank == 1):
                    comm.all_reduce(np.ones(4))
                else:
                    comm.all_reduce(np.ones(4))

        def mixed_up_at_the_very_end(comm):
            comm.broadcast(1, src=0) if comm.rank == 0 else comm.gather(1, dst=2)

        def attempt(program, *args, nodes=3, on="mpi", **terms):
            try:
                cluster.launch(program, args, nodes, on, **terms)
            except (cluster.ClusterError, ValueError) as error:
                waits = sorted((w.rank, w.peer, w.operation, w.tag) for w in getattr(error, "waits", ()))
                return type(error).__name__, getattr(error, "rank", None), str(error).splitlines()[0], waits

        said = [
            attempt(program, 1),
            attempt(waits, deadline=0.5),
            attempt(waits, nodes=2),
            attempt(waits_for_one_that_has_returned),
            attempt(reduces_by_mpi_without_one_that_has_returned),
            attempt(reduces_beside_itself_without_one_that_has_returned),
            attempt(sends_too_much_too_early, timeout=0.5),
            attempt(waits_beside_itself, timeout=0.5),
            *(attempt(wrong, on=cluster.MPI(debug=True)) for wrong in (mixed_up, swapped, mixed_up_at_the_very_end)),
        ]
        good = cluster.launch(program, (-1,), 3, "mpi")
        sys.stdout.write(f"{(said, [int(result) for result in good.results])}\\n")
        """,
        nodes=3,
    )
    assert done.returncode == 0, done.stderr
    first, *others = lines(done)
    assert others == [first] * 2
    said, good = ast.literal_eval(first)
    assert good == [3, 3, 3]
    assert [(kind, rank) for kind, rank, _, _ in said[:6]] == [
        ("RankFailed", 1),
        ("CommTimeout", None),
        ("ValueError", None),
        *[("Deadlock", 1)] * 3,
    ]
    assert said[0][2] == "ValueError: of this test"
    assert said[1][2] == "the run did not finish within its deadline of 0.5 s"
    assert said[2][2] == "mpiexec has started 3 ranks, but launch was asked for nodes=2"
    assert all("rank 1 has already returned" in text for _, _, text, _ in said[3:6])
    assert said[6][0] == said[7][0] == "CommTimeout"
    assert "a send of 80000 bytes" in said[6][2]
    assert {(0, 1, "send", 0), (1, 0, "send", 0)} & {tuple(wait) for wait in said[6][3]}
    assert [kind for kind, *_ in said[8:]] == ["CollectiveMismatch"] * 3
    assert all("different" in text for _, _, text, _ in said[8:])
    assert {tuple(wait) for wait in said[7][3]} <= {
        (0, 1, "all_reduce", None),
        (1, 0, "recv", 5),
        (2, 0, "all_reduce", None),
    }


@pytest.mark.parametrize(
    "what", ["os.kill(os.getpid(), signal.SIGKILL)", *exhaustively("os.kill(os.getpid(), signal.SIGSTOP)")]
)
def test_under_mpiexec_a_rank_that_is_lost_ends_the_job(tmp_path: Path, what: str) -> None:
    done = under_mpiexec(
        tmp_path,
        f"""
        import os, signal
        from minidl import cluster

        def program(comm):
            comm.barrier()
            if comm.rank == 1:
                {what}
            comm.recv(1)

        cluster.launch(program, nodes=3, on="mpi", timeout=4)
        """,
        nodes=3,
        timeout=60,
    )
    assert done.returncode != 0
    if "KILL" not in what:
        assert "CommTimeout: a receive from rank 1 did not complete within 4 s" in done.stderr
        assert "rank 1 did not answer" in done.stderr


def test_under_mpiexec_what_follows_a_launch_that_lost_a_rank_raises_at_once(tmp_path: Path) -> None:
    done = under_mpiexec(
        tmp_path,
        """
        import time
        from minidl import cluster

        def program(comm):
            if comm.rank == 1:
                time.sleep(1000)
            comm.recv(1)

        for what in (
            lambda: cluster.launch(program, nodes=2, on="mpi", timeout=1),
            lambda: cluster.launch(lambda comm: 0, nodes=2, on="mpi"),
            lambda: cluster.once(lambda: 0, on="mpi"),
        ):
            try:
                what()
            except cluster.ClusterError as error:
                print(type(error).__name__, error.rank, str(error).splitlines()[0], flush=True)
        """,
        nodes=2,
        timeout=60,
    )
    assert done.returncode != 0
    first, *others = lines(done)
    assert first.startswith("CommTimeout 1 ")
    assert [other.partition(",")[0] for other in others] == 2 * [
        "RankFailed 1 rank 1 has not returned from an earlier launch"
    ]


@pytest.mark.parametrize(("status", "code"), [(256, 1), *exhaustively((3, 3))])
def test_under_mpiexec_os_exit_of_a_rank_does_not_end_the_job_with_code_0(
    tmp_path: Path, status: int, code: int
) -> None:
    done = under_mpiexec(
        tmp_path,
        f"""
        import os
        from minidl import cluster

        def program(comm):
            comm.barrier()
            if comm.rank == 1:
                if os.fork() == 0:
                    os._exit(0)  # a copy may end
                os.wait()
                os._exit({status})
            comm.recv(1)

        cluster.launch(program, nodes=3, on="mpi", timeout=20)
        """,
        nodes=3,
        timeout=60,
    )
    assert done.returncode == code
    assert f"rank 1 left the program by os._exit({status}) without a result" in done.stderr


def test_a_rank_that_aborts_the_job_waits_until_its_output_is_read(tmp_path: Path) -> None:
    from minidl.cluster.engines.mpi.abort import wait_until_read

    reader, writer = os.pipe()
    os.write(writer, b"last words")
    reading = threading.Timer(0.2, os.read, (reader, 100))
    reading.start()
    wait_until_read(writer, 60.0)
    readable, _, _ = select.select([reader], [], [], 0)
    assert not readable
    reading.join()
    os.write(writer, b"nobody reads these")
    wait_until_read(writer, 0.05)  # a reader that is stopped does not keep the rank
    os.close(reader)
    os.close(writer)
    wait_until_read(writer, 60.0)
    with (tmp_path / "output").open("wb", buffering=0) as file:
        file.write(b"last words")
        wait_until_read(file.fileno(), 60.0)  # what is written to a file is not waited for


# The launching process


SLEEPERS = """
    import time
    from minidl import cluster

    def program(comm):
        comm.barrier()
        comm.tell(comm.rank)
        if comm.rank:
            while True:
                pass
        comm.recv(1)

    cluster.launch(program, nodes=3, on="mpi", listener=lambda rank, _: print(rank, flush=True))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, *exhaustively(signal.SIGINT)])
def test_ranks_end_when_the_launching_process_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SLEEPERS))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as script:
        assert script.stdout is not None
        assert sorted(script.stdout.readline().strip() for _ in range(3)) == ["0", "1", "2"]
        below = process_census.descendants(script.pid)
        assert len(below) >= 4
        script.send_signal(number)
        _, said = script.communicate(timeout=30)
        assert process_census.wait_until_gone(below) == []
    if number == signal.SIGINT:
        assert "KeyboardInterrupt" in said


def test_a_rank_that_starts_after_the_launching_process_has_ended_ends_those_that_started_before(
    tmp_path: Path,
) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        textwrap.dedent(
            """
            import sys
            from minidl import mpiexec

            if mpiexec.rank() == 0:
                from mpi4py import MPI  # initializes MPI, where this rank waits for the other one
            else:
                from minidl.cluster.engines.mpi import rank
                rank.main(sys.argv[1], False)
            """
        )
    )
    mpiexec, name = launcher.find_mpiexec(), "minidl-of-a-launcher-that-has-ended"
    command = [mpiexec, *launcher._options(mpiexec), "-n", "2", sys.executable, str(path), name]
    environment = os.environ | {"PYTHONPATH": str(ROOT), launcher.MARK: name}
    with subprocess.Popen(command, env=environment, start_new_session=True) as job:
        try:
            job.wait(60)
        finally:
            job.kill()
            launcher.end_processes(name, 5.0)
