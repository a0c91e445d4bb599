"""What ranks print: bounded, and nobody else's output is touched."""

from __future__ import annotations

import io
import itertools
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from minidl import cluster
from minidl.cluster.engines.printed import KEPT, KeptFile, KeptText

pytestmark = pytest.mark.timeout(300)

ISOLATED = cluster.Simulation(isolated=True)


@pytest.mark.parametrize("on", ["processes", "simulation", ISOLATED], ids=["processes", "simulation", "isolated"])
def test_of_a_rank_that_prints_too_much_the_beginning_is_shown(on: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 0:
            for line in range(KEPT // 8):
                print(f"{line:09}")
        print("short")

    cluster.launch(program, nodes=2, on=on, deadline=150)
    *shown, note, short = capsys.readouterr().out.splitlines()
    assert len(shown) == -(-KEPT // 10)
    assert shown[:2] == ["[rank 0] 000000000", "[rank 0] 000000001"]
    assert "no more is shown" in note
    assert short == "[rank 1] short"


def test_an_output_without_end_is_not_kept_and_its_beginning_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def program(comm: cluster.Communicator) -> None:
        for number in itertools.count():
            print("x" * 10_000)
            if number == KEPT // 1000:
                comm.tell("that is enough")

    def listener(rank: int, told: str) -> None:
        raise InterruptedError(told)

    with pytest.raises(InterruptedError, match="that is enough"):
        cluster.launch(program, nodes=1, deadline=150, listener=listener)
    assert KEPT < len(capsys.readouterr().out) < 1.1 * KEPT


def test_a_stream_takes_in_no_more_than_it_keeps(tmp_path: Path) -> None:
    with (tmp_path / "printed").open("w+b") as file:
        stream, text = KeptFile(file.fileno()), KeptText()
        for kept in (stream, text):
            assert kept.write("x" * (KEPT - 1)) == KEPT - 1
            kept.writelines(["ä", "b", "c\n"])
            print("d" * KEPT, file=kept)
        stream.flush()
        assert text.getvalue() == "x" * (KEPT - 1) + "äb"
        assert os.pread(file.fileno(), 2 * KEPT, 0).decode() == text.getvalue()


@pytest.mark.parametrize("on", ["processes", "simulation", ISOLATED], ids=["processes", "simulation", "isolated"])
def test_a_program_may_close_its_output_or_put_another_in_its_place(
    on: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def program(comm: cluster.Communicator) -> int:
        print("before")
        if comm.rank == 0:
            sys.stdout.close()
        elif comm.rank == 1:
            sys.stdout = None  # type: ignore[assignment]
        else:
            sys.stdout = io.StringIO()
            print("kept from view")
        total: int = comm.all_reduce(comm.rank)
        return total

    assert cluster.launch(program, nodes=3, on=on, deadline=150).results == [3, 3, 3]
    assert capsys.readouterr().out == "".join(f"[rank {rank}] before\n" for rank in range(3))
    print("still there")
    assert capsys.readouterr().out == "still there\n"


def test_a_copy_that_a_program_makes_of_its_process_is_no_rank() -> None:
    def program(comm: cluster.Communicator) -> int:
        os.fork()
        return comm.rank

    assert cluster.launch(program, nodes=2, deadline=150).results == [0, 1]


class Leaves:
    def __reduce__(self) -> Any:
        return sys.exit, (3,)


def test_a_result_that_exits_where_it_is_read_is_an_error_of_its_rank() -> None:
    with pytest.raises(cluster.RankFailed, match="the result of rank 0 cannot be read here") as caught:
        cluster.launch(lambda comm: Leaves(), nodes=1, deadline=150)
    assert isinstance(caught.value.cause, SystemExit)


def test_a_deadline_that_is_over_before_the_program_begins_says_so() -> None:
    with pytest.raises(cluster.CommTimeout, match=r"deadline of 0.0001 s\nits program had not begun"):
        cluster.launch(lambda comm: None, nodes=2, deadline=0.0001)


@pytest.mark.parametrize(
    ("on", "stdout"), [("simulation", None), ("simulation", "leads nowhere"), ("processes", "closed"), (ISOLATED, None)]
)
def test_a_run_returns_its_results_when_nobody_can_print(on: Any, stdout: str | None, monkeypatch: Any) -> None:
    def program(comm: cluster.Communicator) -> int:
        print("rank", comm.rank)
        return comm.rank

    stream = None
    if stdout is not None:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        stream = open(descriptor, "w", buffering=1, closefd=False)  # noqa: SIM115
        if stdout == "closed":
            stream.close()
        os.close(descriptor)
    monkeypatch.setattr(sys, "stdout", stream)
    assert cluster.launch(program, nodes=2, on=on, deadline=150).results == [0, 1]
