"""`python -m benchmarks` measures what is asked for, and refuses in one sentence what it cannot measure."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer

from benchmarks.__main__ import app
from benchmarks.peers import compressors, memory, scaling
from benchmarks.peers.collectives import run as collectives_run
from benchmarks.peers.comparisons import Comparison
from benchmarks.peers.peer import MeasurementError, Side
from benchmarks.peers.run import MEASURED, Asked, checked
from benchmarks.peers.simulation import run as simulation_run
from benchmarks.peers.step import run as step_run
from benchmarks.peers.step.profile import time_by_operation
from benchmarks.peers.step.side import GPU, StepSide
from minidl import Tensor, kernels, nn, optim
from minidl.cores import cores
from tests.cli import command
from tests.cli.command import minidl, refused, succeeds
from tests.kernels import stand_in
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def benchmarks_are_called(monkeypatch, tmp_path):
    """`minidl(...)` of the tests calls `python -m benchmarks` here, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "entry", lambda: typer.main.get_command(app))


def test_bad_input_is_refused_in_a_sentence():
    for words, sentence in {
        "stepp": "the benchmark must be",
        "--workload lennet": "--workload must be",
        "--threads 0": f"--threads must be from 1 to {cores()}, got 0",
        f"--threads {cores() + 1}": f"--threads must be from 1 to {cores()}, got {cores() + 1}",
        "--threads two": "--threads takes whole numbers with commas between, such as 1,2, got 'two'",
        "--nodes 1": "--nodes must be at least 2, got 1",
        "--bytes 6": "--bytes 6: a vector of float32 has a multiple of 4 bytes",
        "--rounds 0": "--rounds must be at least 1, got 0",
        "--against tensorflow": "--against must be",
    }.items():
        said = refused(*words.split())
        assert said.startswith("python -m benchmarks: ")
        assert said.count("\n") == 1
        assert sentence in said


def asked(**changes: object) -> Asked:
    nothing = ("benchmarks", "workload", "threads", "nodes", "nbytes", "ranks", "against")
    return checked(
        dict.fromkeys(nothing) | {"rounds": 1, "profile": False, "write": False, "simgrid_python": "python3"} | changes
    )


def test_what_is_not_installed_or_not_wanted_is_left_out_and_named(monkeypatch):
    monkeypatch.setattr("benchmarks.peers.run.is_installed", lambda package: package != "jax")
    everything, alone = asked(), asked(against=["none"])
    assert everything.peers(step_run.PEERS) == ["PyTorch eager", "torch.compile"]
    assert everything.skipped == ["jax.jit is left out: jax is not installed"]
    assert (alone.peers(step_run.PEERS), alone.skipped) == ([], [])
    for python in ("/nonexistent", "/", "true", "false"):  # no interpreters with SimGrid
        assert simulation_run.simgrid_version(python) is None


def test_a_library_that_ends_before_it_answers_says_why(tmp_path):
    program = tmp_path / "ends.py"
    program.write_text("raise SystemExit('there is no such library here')")
    with ExitStack() as stack, pytest.raises(MeasurementError, match="theirs has ended: there is no such library here"):
        Side("theirs", str(program), [], ranks=1, stack=stack)


def test_a_request_that_fails_comes_back_as_a_sentence_and_the_next_is_answered(tmp_path):
    program = tmp_path / "halves.py"
    program.write_text("import sys\nfrom benchmarks.peers.peer import serve\nserve(sys.argv[1], lambda x: 1 / x)\n")
    with ExitStack() as stack:
        side = Side("theirs", str(program), [], ranks=1, stack=stack)
        with pytest.raises(MeasurementError, match="theirs: ZeroDivisionError: division by zero"):
            side.ask(0)
        assert side.ask(4) == [0.25]


def test_ctrl_c_ends_a_side_in_the_middle_of_an_answer(tmp_path):
    program = tmp_path / "interrupts.py"
    program.write_text(
        "import os, signal, sys, time\n"
        "from benchmarks.peers.peer import serve\n"
        "serve(sys.argv[1], lambda: (os.kill(os.getppid(), signal.SIGINT), time.sleep(10_000)))\n"
    )
    with pytest.raises(KeyboardInterrupt), ExitStack() as stack:  # which waits for the end of the process
        Side("theirs", str(program), [], ranks=1, stack=stack).ask()


class FakeSide:
    """A side that answers each request from a table, and keeps the requests."""

    def __init__(self, name, answers):
        self.name, self.answers, self.asked = name, answers, []

    def ask(self, *request):
        self.asked.append(request)
        found = self.answers[request[0]]
        return found.pop(0) if isinstance(found, list) else [found]


def with_sides(monkeypatch, module, **answers):
    """Let the benchmark start these sides, by name, in place of processes."""
    sides = {name: FakeSide(name, found) for name, found in answers.items()}
    monkeypatch.setattr(
        module, "started", lambda names, start, skipped: [sides[name] for name in names if name in sides]
    )
    return sides


def test_training_steps_take_turns_and_a_side_that_learns_otherwise_is_left_out(monkeypatch):
    ours = {"prepare": (2.0, 1.0), "block": [[0.1], [0.1], [0.2]], "flops": 2 * 1024**3, "matrix": [[0.05], [0.05]]}
    sides = with_sides(
        monkeypatch,
        step_run,
        minidl=ours,
        **{"minidl, compiled": {"prepare": (2.0, 1.0), "block": [[0.5], [0.05], [0.1]]}},
        alike={"prepare": (2.0, 1.0005), "block": [[0.5], [0.4], [0.4]]},
        other={"prepare": (2.0, 1.1)},
    )
    told, skipped = [], []
    run = step_run.StepRun(1, list(sides), 2, lambda *said: told.append(said), skipped, ExitStack())
    assert list(run.compare("lenet", {"minidl": [], "minidl, compiled": ["alike", "other", "missing"]})) == [
        Comparison("step", "lenet", "1 thread", [0.1, 0.2], limit=pytest.approx((0.5 + 0.25) / 2)),
        Comparison("step", "compiled lenet", "1 thread", [0.05, 0.1], "alike", [0.4, 0.4], pytest.approx(0.75)),
    ]
    assert skipped == ["lenet, 1 thread: other: its first losses differ from minidl's by 0.1: other work"]
    blocks = [count for name, *count in sides["minidl"].asked if name == "block"]
    assert blocks == [[2], [5], [5]]  # half a second each
    able = ("minidl", "minidl, compiled", "alike")
    turns = [f"{name}, round {turn} of 2" for turn in (1, 2) for name in able]
    said = [f"{name} prepares" for name in (*able, "other")] + turns
    assert told == [("lenet", f"1 thread: {each}") for each in said]


def test_all_reduces_take_turns_and_the_slowest_rank_counts(monkeypatch):
    with_sides(
        monkeypatch,
        collectives_run,
        minidl={4096: [[(0.01, True), (0.02, True)], [(0.1, True), (0.2, True)]]},
        gloo={4096: [[(0.01, True), (0.02, True)], [(0.4, True), (0.3, True)]]},
    )
    told = []
    found = list(collectives_run.compare(2, [4096], ["gloo"], 1, lambda *said: told.append(said), []))
    assert found == [Comparison("collectives", "4 KiB", "2 nodes", [0.2], "gloo", [0.4])]
    assert told == [("4 KiB", f"2 nodes: {name}, round 1 of 1") for name in ("minidl", "gloo")]
    with_sides(monkeypatch, collectives_run, minidl={4096: [[(0.01, True), (0.02, False)]]})
    with pytest.raises(MeasurementError, match="the all-reduce of minidl gives wrong numbers"):
        list(collectives_run.compare(2, [4096], [], 1, lambda *_: None, []))


def test_a_simulated_message_takes_the_time_of_the_launch_over_the_messages(monkeypatch):
    clock = iter([100.0, 102.4])
    monkeypatch.setattr(simulation_run, "MESSAGES", 130)
    monkeypatch.setattr(simulation_run, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    engine = simulation_run.cluster.Simulation(trace="full")
    assert simulation_run.minidl_seconds(4, engine) == pytest.approx(2.4 / 120)  # 5 all-reduces of 24 messages


def test_what_was_measured_is_kept_if_a_part_fails_or_is_stopped(tmp_path, monkeypatch):
    def launches(*_):
        yield Comparison("launch", "nodes that do nothing", "4 nodes", [0.1])

    def steps(*_):
        raise errors.pop(0)
        yield

    errors = [MeasurementError("the sums are wrong"), KeyboardInterrupt()]
    monkeypatch.setitem(MEASURED, "launch", launches)
    monkeypatch.setitem(MEASURED, "step", steps)
    for code, said in ((1, "python -m benchmarks: step: the sums are wrong\n"), (130, "")):
        done = minidl(tmp_path, "launch", "step", "--out", code)
        assert (done.returncode, done.stderr) == (code, said)
        assert [path.name for path in (tmp_path / str(code)).iterdir()] == ["bench.csv"]


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


def test_on_a_gpu_minidl_does_the_work_that_it_does_on_the_cpu():
    with kernels.use("numpy"):
        ours = StepSide("minidl", 1).prepare("mlp-small")
    with stand_in.installed(), kernels.use("numpy"):  # which the side replaces by cupy
        side = StepSide(GPU, 1)
        assert side.prepare("mlp-small") == pytest.approx(ours)
        assert side.flops() > 0
        assert isinstance(side.training.batches[0][0], stand_in.ndarray)


def test_compressors_draw_their_random_numbers_before_they_are_measured(monkeypatch):
    monkeypatch.setattr(compressors, "SHAPE", (23, 31))
    generator = np.random.default_rng(3)
    monkeypatch.setattr("minidl.random.generator", lambda: generator)
    side, before = compressors.CompressorSide(), generator.bit_generator.state
    with kernels.use("numpy"):
        for method in compressors.METHODS:
            for setting in compressors.SETTINGS:
                side(method, setting)
    assert generator.bit_generator.state == before


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


ALL = {
    "step": ["step", "mlp-small", "1 thread"],
    "memory": ["memory", "mlp-small", "1 thread"],
    "collectives": ["collectives", "4 KB", "2 nodes"],
    "simulation": ["simulation", "a message by messages", "4 ranks"],
    "launch": ["launch", "nodes that do nothing", "2 nodes"],
    "scaling": ["scaling", "mlp-small", "2 nodes"],
    "compiler": ["compiler", "ten operations", "1 thread"],
    "compressors": ["compressors", "fp16", "encode"],
    "start": ["start", "kernels of mlp", "empty cache"],
}
"""The benchmarks, and the first row of each."""


@pytest.mark.parametrize("names", [[*ALL][:-4], *exhaustively(*([name] for name in [*ALL][-4:]))], ids=" ".join)
def test_every_benchmark_measures_minidl_alone(monkeypatch, names):
    monkeypatch.setattr(simulation_run, "MESSAGES", 100)
    small = ("--workload", "mlp-small", "--threads", 1, "--nodes", 2, "--bytes", "4KB", "--ranks", 4, "--rounds", 1)
    said = succeeds(*names, *small, "--against", "none", "--profile", "--out", "out")
    if names == ["scaling"] and cores() == 1:
        return
    rows = [line.split(",")[:3] for line in Path("out", "bench.csv").read_text().splitlines()][1:]
    seconds = {
        "simulation": ["simulation", "a message at once", "4 ranks"],
        "step": ["step", "compiled mlp-small", "1 thread"],
    }
    second = [row for name, row in seconds.items() if name in names]
    assert [row for row in rows if row not in second] == [ALL[name] for name in names]
    assert ("mlp-small, 1 thread" in said) == ("step" in names)
    assert len(rows) == len(names) + len(second)
