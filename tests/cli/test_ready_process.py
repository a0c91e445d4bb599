"""The command in a copy of a ready process: what comes of it is what comes of it in a new process."""

from pathlib import Path

import pytest

from tests.cli.command import minidl, run_anew

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("words", [("networks",), ("trian",), ("train", "--model", "nope")], ids=" ".join)
def test_a_copy_prints_and_returns_what_a_new_process_does(tmp_path: Path, words: tuple[str, ...]) -> None:
    copied, new = minidl(tmp_path, *words), run_anew(tmp_path, *words)
    assert (copied.returncode, copied.stdout, copied.stderr) == (new.returncode, new.stdout, new.stderr)


def test_a_copy_writes_into_its_own_folder_and_ends(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        done = minidl(tmp_path / name, "train", "--model", "mlp", "--epochs", 1, "--on", "simulation", "--out", "out")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name / "out" / "checkpoint.npz").is_file()
