"""The commands under mpiexec: the copies join or refuse, and rank 0 alone speaks and saves."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minidl.cli import mpi_job
from minidl.parallel import Checkpoint
from tests.cli.command import QUICK, assert_same_bits, environment, minidl
from tests.cluster import process_census
from tests.tiers import exhaustively

pytest.importorskip("mpi4py", reason="needs the extra mpi")
launcher = pytest.importorskip("minidl.cluster.engines.mpi.launcher")

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="launch starts mpiexec on Linux only"),
]


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


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A run on two ranks that mpiexec has started: its folder, and what it said."""
    folder = tmp_path_factory.mktemp("mpi")
    return folder, command(folder, 2, "train", *QUICK, "--on", "mpi")


def test_the_copies_are_the_nodes_of_one_run_which_is_told_and_saved_once(joined):
    folder, result = joined
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "2 nodes" in result.stdout
    assert result.stdout.count("  2/2") == 1
    assert result.stdout.count("test accuracy") == 1
    (run,) = (folder / "runs").iterdir()
    assert "checkpoint.npz" in [path.name for path in run.iterdir()]


def test_the_run_has_the_bits_of_processes(joined, tmp_path):
    (run,) = (joined[0] / "runs").iterdir()
    assert minidl(tmp_path, "train", *QUICK, "--nodes", 2, "--out", "processes").returncode == 0
    assert_same_bits(run, tmp_path / "processes")


def test_a_run_of_mpi_goes_on_from_its_checkpoint(joined):
    folder, _ = joined
    (run,) = (folder / "runs").iterdir()
    result = command(folder, 2, "train", "--resume", run, "--epochs", 3)
    assert result.returncode == 0, result.stderr
    assert Checkpoint.load(run / "checkpoint.npz").epoch == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--nodes", 2), "mpiexec has started this command 2 times: give --on mpi"),
        *exhaustively(
            (("--nodes", 3, "--on", "mpi"), "--nodes 3 needs 3 ranks, and mpiexec has started 2: give mpiexec -n 3"),
            (("--on", "mpi", "--network", "1gbe"), "--network 1gbe and --on mpi: MPI's messages cross a real network"),
            (("--on", "mpi", "--data", "nothing"), "--data must be"),
            (("--on", "mpi", "--elastic"), "--elastic and --on mpi"),
            (("--on", "mpi", "--out", __file__), "it is a file"),
            (("--on", "mpi", "--lr", 1e9), "the loss is"),
        ),
    ],
)
def test_what_cannot_be_ends_in_one_sentence_that_is_said_once(arguments, sentence, tmp_path):
    result = command(tmp_path, 2, "train", *QUICK, *arguments)
    assert result.returncode != 0
    lines = [line for line in result.stderr.splitlines() if line.startswith("minidl train:")]
    assert len(lines) == 1
    assert sentence in lines[0]
    assert "Traceback" not in result.stderr
    assert process_census.wait_until_gone(process_census.ranks(os.getpid())) == []


def test_a_comparison_on_mpi_is_written_once_and_trains_serial_on_one_node(tmp_path):
    result = command(tmp_path, 2, "compare", "--strategies", "serial", "synchronous", "--epochs", 1, "--on", "mpi")
    assert result.returncode == 0, result.stderr
    assert "2 nodes" in result.stdout
    assert "ranks of MPI" in result.stdout
    (folder,) = (tmp_path / "runs").iterdir()
    assert len((folder / "runs.csv").read_text().splitlines()) == 3


SCRIPT = """
from minidl import data, nn, optim, parallel

job = parallel.Job(
    model=lambda: nn.models.MLP(2, 16, 3), data=lambda: data.spirals(n=100),
    optimizer=lambda parameters: optim.SGD(parameters, lr=0.1), epochs=1,
)
report = parallel.train(job, parallel.LocalSGD(2), nodes=2, on="mpi", folder="run")
print("is_writer", report.is_writer, flush=True)
report.save("saved")
"""


def test_a_report_is_saved_once_by_a_script(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    result = under_mpiexec(tmp_path, 2, "script.py")
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.split()) == ["False", "True", "is_writer", "is_writer"]
    assert (tmp_path / "saved" / "checkpoint.npz").exists()
    assert (tmp_path / "run" / "checkpoint.npz").exists()


@pytest.mark.parametrize(
    ("variables", "on", "sentence"),
    [
        ({"PMI_RANK": "1", "PMI_SIZE": "4"}, "processes", "started this command 4 times"),
        ({"PMIX_RANK": "0"}, "simulation", "started this command several times"),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, "processes", "give --on mpi"),
        ({"SLURM_STEP_NUM_TASKS": "3"}, "mpi", "srun --mpi=pmi2"),
    ],
)
def test_the_copies_notice_each_other_by_the_variables_of_their_launcher(variables, on, sentence, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=sentence):
        mpi_job.check(on)


def test_a_command_that_is_started_once_is_not_asked_for_anything(monkeypatch):
    mpi_job.check("processes")
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "1")
    mpi_job.check("processes")
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "1")
    mpi_job.check("simulation")


def test_the_ranks_of_mpiexec_calibrate_and_measure_once(tmp_path):
    result = command(tmp_path, 2, "calibrate", "--on", "mpi", "--repetitions", 2, "-o", "net.json")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("4 MiB") == 1
    measured = ("simulate", "--measured", "--on", "mpi", "--algorithm", "ring", "--bytes", 4096, "--out", "out")
    result = command(tmp_path, 2, *measured, "--network", "net.json")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("ratio: measured / simulated") == 1
    (row,) = csv.DictReader((tmp_path / "out/times.csv").open(newline=""))
    assert (row["nodes"], row["network"]) == ("2", "net.json")
    assert float(row["measured_seconds_median"]) > 0
