"""Checkpoints are whole or not there, come back to the bit, and are refused when damaged."""

import numpy as np
import pytest

from minidl import nn, optim
from minidl.parallel import Checkpoint, CheckpointError


def example() -> Checkpoint:
    return Checkpoint(
        epoch=3,
        model={"fc.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "steps": np.asarray(7)},
        optimizer={
            "state": {"fc.bias": {"momentum_buffer": np.ones(3)}},
            "param_groups": [{"lr": 0.1, "params": ["fc.weight", "fc.bias"]}],
        },
        schedule={"last_epoch": 3, "milestones": {2: 1}},
        within_epoch={"step": 5},
        history=[{"epoch": 1, "loss": 0.5}],
        config={"model": "lenet", "lr": 0.1},
    )


def test_a_checkpoint_comes_back_as_it_was_saved(tmp_path):
    example().save(tmp_path / "checkpoint.npz")
    loaded = Checkpoint.load(tmp_path / "checkpoint.npz")
    assert loaded.epoch == 3
    assert loaded.history == [{"epoch": 1, "loss": 0.5}]
    assert loaded.config == {"model": "lenet", "lr": 0.1}
    assert loaded.schedule == {"last_epoch": 3, "milestones": {2: 1}}  # an integer key, not "2"
    assert loaded.optimizer["param_groups"] == [{"lr": 0.1, "params": ["fc.weight", "fc.bias"]}]
    np.testing.assert_array_equal(loaded.optimizer["state"]["fc.bias"]["momentum_buffer"], np.ones(3))
    assert (loaded.within_epoch, loaded.format) == ({"step": 5}, 2)
    np.testing.assert_array_equal(loaded.model["fc.weight"], example().model["fc.weight"])
    assert loaded.model["fc.weight"].dtype == np.float32
    assert loaded.model["steps"].shape == ()


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"no checkpoint at .*gone\.npz"):
        Checkpoint.load(tmp_path / "gone.npz")


def test_a_failed_save_leaves_the_former_checkpoint_and_no_other_file(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.npz"
    example().save(path)
    before = path.read_bytes()

    def no_space(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", no_space)
    with pytest.raises(OSError, match="No space"):
        example().save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.npz"]


def test_a_flipped_bit_anywhere_is_noticed_or_changes_nothing(tmp_path):
    path = tmp_path / "checkpoint.npz"
    example().save(path)
    content, expected = path.read_bytes(), repr(Checkpoint.load(path))
    rng = np.random.default_rng(0)
    noticed = 0
    for position, bit in zip(rng.integers(0, len(content), 150), rng.integers(0, 8, 150), strict=True):
        damaged = bytearray(content)
        damaged[position] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            assert repr(Checkpoint.load(path)) == expected  # a date in the zip directory, say
        except CheckpointError:
            noticed += 1
    assert noticed > 75


def test_a_file_that_is_no_whole_checkpoint_is_refused(tmp_path):
    path = tmp_path / "checkpoint.npz"
    example().save(path)
    for content in (path.read_bytes()[:-100], b"", b"not a checkpoint", b"PK\x03\x04"):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="damaged"):
            Checkpoint.load(path)
    np.savez(path, tree=np.array([print], dtype=object))  # a pickle in disguise
    with pytest.raises(CheckpointError, match="damaged"):
        Checkpoint.load(path)


@pytest.mark.parametrize(
    "tree",
    [
        b"[]",
        b"{}",
        b'{"format": 1, "epoch": 1, "model": {"array": "gone"}}',
        b'{"format": 1, "x": 2}',
        b'{"format": 2, "epoch": 1, "model": {"pairs": []}, "optimizer": []}',
        b'{"format": 2, "epoch": 1, "model": {"pairs": []}, "optimizer": {"pairs": []}}',
        b'{"format": 2, "epoch": "1", "model": {"pairs": []}, "optimizer": {"pairs": [["state", {"pairs": []}]]}}',
    ],
)
def test_a_file_with_another_content_is_refused(tmp_path, tree):
    np.savez(tmp_path / "checkpoint.npz", tree=np.frombuffer(tree, np.uint8))
    with pytest.raises(CheckpointError, match="damaged"):
        Checkpoint.load(tmp_path / "checkpoint.npz")


def test_a_checkpoint_of_another_format_is_refused(tmp_path):
    np.savez(tmp_path / "checkpoint.npz", tree=np.frombuffer(b'{"format": 99}', np.uint8))
    with pytest.raises(CheckpointError, match="has format 99, but this version reads 1 and 2"):
        Checkpoint.load(tmp_path / "checkpoint.npz")


@pytest.mark.parametrize("number", [1, 2])
def test_an_optimizer_state_of_another_form_is_refused(number):
    model = nn.Linear(3, 2)
    for optimizer in (None, {"state": {}}, {"state": None, "param_groups": []}, {"state": {}, "param_groups": 3}):
        checkpoint = Checkpoint(epoch=1, model=model.state_dict(), optimizer=optimizer, format=number)
        with pytest.raises(CheckpointError, match="another optimizer"):
            checkpoint.restore(model, optim.SGD(model.parameters(), lr=0.1), None)


def test_a_save_that_the_disk_refuses_names_the_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory") as caught:
        example().save(tmp_path / "file/checkpoint.npz")
    assert caught.value.filename == str(tmp_path / "file/checkpoint.npz")


def test_what_a_killed_process_left_behind_is_removed_and_nothing_else(tmp_path):
    for name in (".checkpoint.npz.123.tmp", ".other.npz.123.tmp", "checkpoint.npz"):
        (tmp_path / name).write_text("")
    Checkpoint.remove_unfinished(tmp_path / "checkpoint.npz")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other.npz.123.tmp", "checkpoint.npz"]
