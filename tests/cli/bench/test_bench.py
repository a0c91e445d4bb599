"""`minidl bench` measures what is asked for, and refuses in one sentence what it cannot measure."""

from __future__ import annotations

import contextvars
from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import pytest

from minidl import Tensor, nn, optim
from minidl.cli.app import app
from minidl.cli.bench import memory, scaling
from minidl.cli.bench.comparisons import Comparison
from minidl.cli.bench.peer import MeasurementError, Side
from minidl.cli.bench.run import MEASURED, Asked, checked
from minidl.cli.bench.simulation.run import simgrid_version
from minidl.cli.bench.step.profile import time_by_operation
from minidl.cli.bench.step.run import PEERS
from minidl.cores import cores
from tests.cli.command import minidl, refused

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
    return checked(dict.fromkeys(nothing) | {"rounds": 1, "profile": False, "simgrid_python": "python3"} | changes)


def test_what_is_not_installed_is_left_out_and_named(monkeypatch):
    monkeypatch.setattr("minidl.cli.bench.run.is_installed", lambda package: package != "jax")
    everything = asked()
    assert everything.peers(PEERS) == ["PyTorch eager", "torch.compile"]
    assert everything.skipped == ["jax.jit is left out: jax is not installed"]


@pytest.mark.parametrize("python", ["/nonexistent", "/", "true", "false"])
def test_a_program_that_is_no_interpreter_with_simgrid_has_no_version_of_it(python):
    assert simgrid_version(python) is None


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


def test_ctrl_c_ends_a_side_in_the_middle_of_an_answer(tmp_path):
    program = tmp_path / "interrupts.py"
    program.write_text(
        "import os, signal, sys, time\n"
        "from minidl.cli.bench.peer import serve\n"
        "serve(sys.argv[1], lambda: (os.kill(os.getppid(), signal.SIGINT), time.sleep(10_000)))\n"
    )
    with pytest.raises(KeyboardInterrupt), ExitStack() as stack:  # which waits for the end of the process
        Side("theirs", str(program), [], ranks=1, stack=stack).ask()


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (MeasurementError("the sums are wrong"), 1, "minidl bench: step: the sums are wrong"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_was_measured_is_kept_if_a_part_fails_or_is_stopped(capsys, tmp_path, monkeypatch, error, code, sentence):
    def launches(*_):
        yield Comparison("launch", "nodes that do nothing", "4 nodes", [0.1])

    def steps(*_):
        raise error
        yield

    monkeypatch.setitem(MEASURED, "launch", launches)
    monkeypatch.setitem(MEASURED, "step", steps)
    with pytest.raises(SystemExit) as ending:
        contextvars.Context().run(app, ["bench", "launch", "step", "--out", str(tmp_path)], prog_name="minidl")
    assert ending.value.code == code
    assert capsys.readouterr().err.strip() == sentence
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.csv", "bench.md"]


def test_the_memory_of_a_step_is_the_most_that_lives_at_once():
    def step():
        kept = np.ones(1_000_000)
        for _ in range(3):
            np.ones(2_000_000)
        return kept

    assert 24_000_000 <= memory.peak_of_arrays(step) < 24_100_000


def test_the_memory_of_a_step_of_pytorch_is_the_most_that_lives_at_once():
    torch = pytest.importorskip("torch", reason="torch is in the extra `bench`")
    before = [torch.ones(5_000_000)]

    def step():
        before.clear()  # what was there before does not count, nor does its release
        kept = torch.ones(1_000_000)
        for _ in range(3):
            torch.ones(2_000_000)
        return kept

    assert 12_000_000 <= memory.peak_of_tensors(step) < 12_100_000


def test_scaling_is_measured_only_where_every_node_has_a_core():
    many = asked(benchmarks=["scaling"], nodes=[f"{cores() + 1}"])
    assert list(MEASURED["scaling"](many, lambda *_: None)) == []
    nodes = f"{cores() + 1} nodes"
    assert many.skipped == [f"scaling on {nodes} is left out: each needs a core, and there are {cores()}"]


def test_scaling_gives_every_node_the_workloads_minibatch():
    one, two = scaling.job("lenet", 1, 3), scaling.job("lenet", 2, 3)
    assert (one.batch_size, two.batch_size) == (64, 128)
    assert [len(each.data().train) for each in (one, two)] == [3 * 64, 3 * 128]


def test_the_whole_step_of_a_profile_includes_the_update():
    model = nn.Linear(3, 2)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    training = SimpleNamespace(forward=lambda: model(Tensor(np.ones((4, 3), np.float32))).sum(), optimizer=optimizer)
    backward = time_by_operation(training, 3).backward
    assert backward["(optimizer)"] > 0
    assert backward.pop("(all)") == pytest.approx(sum(backward.values()))


@pytest.mark.slow
def test_every_benchmark_measures_minidl_alone(tmp_path):
    small = ("--workload", "mlp-small", "--threads", 1, "--nodes", 2, "--bytes", "4KB", "--ranks", 4, "--rounds", 1)
    ended = minidl(tmp_path, "bench", *small, "--against", "none", "--profile", "--out", "out")
    assert ended.returncode == 0, ended.stderr
    assert "mlp-small, 1 thread" in ended.stdout
    rows = [line.split(",")[:3] for line in (tmp_path / "out" / "bench.csv").read_text().splitlines()]
    assert rows[1:] == [
        ["step", "mlp-small", "1 thread"],
        ["memory", "mlp-small", "1 thread"],
        *([["scaling", "mlp-small", "2 nodes"]] if cores() > 1 else []),
        ["collectives", "4 KB", "2 nodes"],
        ["simulation", "a message by messages", "4 ranks"],
        ["simulation", "a message at once", "4 ranks"],
        ["launch", "nodes that do nothing", "2 nodes"],
    ]
