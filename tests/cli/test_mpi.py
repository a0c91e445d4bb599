"""The commands under mpiexec: the copies join or refuse, and rank 0 alone speaks and saves."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minidl.cli import mpi_job
from tests.cli.command import assert_same_bits, environment, succeeds, without_progress
from tests.cluster import process_census
from tests.tiers import exhaustively

pytest.importorskip("mpi4py", reason="needs the extra mpi")
launcher = pytest.importorskip("minidl.cluster.engines.mpi.launcher")

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="launch starts mpiexec on Linux only"),
]

TRAIN = ("--model", "mlp", "--data", "spirals")


def under_mpiexec(folder: Path, ranks: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a script or a module on so many ranks, to its end."""
    mpiexec = launcher.find_mpiexec()
    return subprocess.run(
        [mpiexec, *launcher._options(mpiexec), "-n", str(ranks), sys.executable, *map(str, arguments)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=200,
    )


def command(folder: Path, ranks: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    return under_mpiexec(folder, ranks, "-m", "minidl", *arguments)


SCRIPT = """
from minidl import data, nn, optim, parallel

job = parallel.Job(
    model=lambda: nn.models.MLP(2, 16, 3), data=lambda: data.spirals(n=50),
    optimizer=lambda parameters: optim.SGD(parameters, lr=0.1), epochs=2,
)
report = parallel.train(job, parallel.LocalSGD(2), nodes=2, on="mpi", folder="run")
print("is_writer", report.is_writer, flush=True)
report.save("saved")
"""

MEASURE = ("simulate", "--measured", "--algorithm", "ring", "--bytes", 4096, "--out", "out")
COMPARE = ("compare", "--strategies", "serial", "synchronous", *TRAIN, "--epochs", 1, "--out", "out")


@pytest.mark.parametrize(
    ("words", "said", "file"),
    [
        (("train", *TRAIN, "--epochs", 2, "--out", "out"), "  2/2", "out/metrics.csv"),
        *exhaustively(
            (("train", "--resume", "out", "--epochs", 2), "  2/2", "out/metrics.csv"),
            (MEASURE, "ratio: measured / simulated", "out/times.csv"),
            (COMPARE, "ranks of MPI", "out/runs.csv"),
            (("calibrate", "--repetitions", 2, "-o", "net.json"), "4 MiB", "net.json"),
            (("script.py",), "is_writer True", "saved/metrics.csv"),
        ),
    ],
    ids=["train", "resume", "simulate", "compare", "calibrate", "script"],
)
def test_copies_under_mpiexec_are_the_nodes_of_one_run_that_prints_and_writes_once(tmp_path, words, said, file):
    """It has the bits of a run on processes."""
    if "--resume" in words:
        assert command(tmp_path, 2, "train", *TRAIN, "--epochs", 1, "--on", "mpi", "--out", "out").returncode == 0
    if words == ("script.py",):
        (tmp_path / "script.py").write_text(SCRIPT)
        result = under_mpiexec(tmp_path, 2, *words)
    else:
        result = command(tmp_path, 2, *words, *(() if "--resume" in words else ("--on", "mpi")))
    assert (result.returncode, without_progress(result.stderr)) == (0, "")
    assert result.stdout.count(said) == 1
    text = (tmp_path / file).read_text()
    if file.endswith(".csv"):
        *_, last = csv.DictReader(text.splitlines())
        assert last.get("nodes", "2") == "2"
        assert len(text.splitlines()) == 1 + (1 if words is MEASURE else 2)
    if words[0] == "train":
        assert result.stdout.count("test accuracy") == 1
        succeeds("train", *TRAIN, "--epochs", 2, "--nodes", 2, "--out", "processes")
        assert_same_bits(tmp_path / "out", tmp_path / "processes")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--nodes", 2), "mpiexec has started this command 2 times: give --on mpi"),
        *exhaustively(
            (("--nodes", 3, "--on", "mpi"), "--nodes 3 needs 3 ranks, and mpiexec has started 2: give mpiexec -n 3"),
            (("--on", "mpi", "--network", "1gbe"), "--network 1gbe and --on mpi: MPI's messages cross a real network"),
            (("--on", "mpi", "--data", "nothing"), "--data must be"),
            (("--on", "mpi", "--elastic"), "--elastic with --on mpi"),
            (("--on", "mpi", "--out", __file__), "it is a file"),
            (("--on", "mpi", "--lr", 1e30), "the loss is"),
        ),
    ],
)
def test_an_error_under_mpiexec_is_printed_once(arguments, sentence, tmp_path):
    result = command(tmp_path, 2, "train", *TRAIN, *arguments)
    assert result.returncode != 0
    lines = [line for line in result.stderr.splitlines() if line.startswith("minidl train:")]
    assert len(lines) == 1
    assert sentence in lines[0]
    assert "Traceback" not in result.stderr
    assert process_census.wait_until_gone(process_census.ranks(os.getpid())) == []


def test_copies_started_by_a_launcher_are_recognized_by_its_environment_variables(monkeypatch):
    for variables, on, sentence in (
        ({"PMI_RANK": "1", "PMI_SIZE": "4"}, "processes", "started this command 4 times"),
        ({"PMIX_RANK": "0"}, "simulation", "started this command several times"),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, "processes", "give --on mpi"),
        ({"SLURM_STEP_NUM_TASKS": "3"}, "mpi", "srun --mpi=pmi2"),
        ({}, "processes", None),
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, "processes", None),
        ({"SLURM_STEP_NUM_TASKS": "1"}, "simulation", None),
    ):
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            if sentence is None:  # started once
                mpi_job.check(on)
            else:
                with pytest.raises(ValueError, match=sentence):
                    mpi_job.check(on)
