"""`minidl bench` measures what is asked for, and refuses in one sentence what it cannot measure."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from minidl.cli.bench.peer import MeasurementError, Side
from minidl.cli.bench.run import Asked, checked
from minidl.cli.bench.step.run import PEERS
from minidl.cluster.engines.threads import cores
from tests.cli.command import refused

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["stepp"], "the benchmark must be"),
        (["--workload", "lennet"], "--workload must be"),
        (["--threads", "0"], f"--threads must be from 1 to {cores()}, got 0"),
        (["--threads", str(cores() + 1)], f"--threads must be from 1 to {cores()}, got {cores() + 1}"),
        (["--threads", "two"], "--threads takes whole numbers with commas between, such as 1,2, got 'two'"),
        (["--nodes", "1"], "--nodes must be at least 2, got 1"),
        (["--bytes", "6"], "--bytes 6: a vector of float32 has a multiple of 4 bytes"),
        (["--rounds", "0"], "--rounds must be at least 1, got 0"),
        (["--against", "tensorflow"], "--against must be"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(capsys, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    assert sentence in " ".join(refused(capsys, "bench", *arguments).split())
    assert not list(tmp_path.iterdir())


def asked(**changes: object) -> Asked:
    nothing = ("benchmarks", "workload", "threads", "nodes", "nbytes", "ranks", "against")
    return checked(dict.fromkeys(nothing) | {"rounds": 1, "simgrid_python": "python3"} | changes)


def test_what_is_not_installed_is_left_out_and_named(monkeypatch):
    monkeypatch.setattr("minidl.cli.bench.run.is_installed", lambda package: package != "jax")
    everything = asked()
    assert everything.peers(PEERS) == ["PyTorch eager", "torch.compile"]
    assert everything.skipped == ["jax.jit is left out: jax is not installed"]


def test_against_none_leaves_minidl_alone():
    alone = asked(against=["none"])
    assert alone.peers(PEERS) == []
    assert alone.skipped == []


def test_a_library_that_ends_before_it_answers_says_why(tmp_path):
    program = tmp_path / "ends.py"
    program.write_text("raise SystemExit('there is no such library here')")
    with ExitStack() as stack, pytest.raises(MeasurementError, match="theirs has ended: there is no such library here"):
        Side("theirs", str(program), [], ranks=1, stack=stack)


def test_a_request_that_fails_comes_back_as_a_sentence_and_the_next_is_answered(tmp_path):
    program = tmp_path / "halves.py"
    program.write_text("import sys\nfrom minidl.cli.bench.peer import serve\nserve(sys.argv[1], lambda x: 1 / x)\n")
    with ExitStack() as stack:
        side = Side("theirs", str(program), [], ranks=1, stack=stack)
        with pytest.raises(MeasurementError, match="theirs: ZeroDivisionError: division by zero"):
            side.ask(0)
        assert side.ask(4) == [0.25]
