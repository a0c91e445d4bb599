"""Checkpoints: the state from which a run goes on to the same bits, in one file that is either complete or absent.

The file is numpy's .npz: arrays, and one JSON text for everything else. It contains no pickles, so opening a stranger's
file is safe.
"""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from minidl import kernels
from minidl.parallel.run.history import HistoryRow
from minidl.whole_file import remove_unfinished, written_whole

CHECKPOINT_FILE = "checkpoint.npz"  # in a run folder
FORMAT = 1


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or of another run."""


@dataclass
class Checkpoint:
    """The state of a run after `epoch` epochs.

    epoch      epochs done
    model      its `state_dict()`
    optimizer  its `state_dict()`
    schedule   its `state_dict()`, or None
    history    one row per epoch
    config     kept for the caller, such as the options of the command line; JSON
    """

    epoch: int
    model: dict[str, Any]
    optimizer: dict[str, Any]
    schedule: dict[str, Any] | None = None
    history: list[HistoryRow] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)

    def save(self, path: str | Path) -> None:
        """Write to `path` atomically: to a temporary file in the same folder, flushed to the disk, then renamed.

        Raises OSError without space or permission; the previous checkpoint is then still there.
        """
        path = Path(path)
        arrays: dict[str, Any] = {}
        tree = {"format": FORMAT, **{name: _pack(value, name, arrays) for name, value in vars(self).items()}}
        try:
            with written_whole(path) as file:
                np.savez(file, tree=np.frombuffer(json.dumps(tree).encode(), np.uint8), **arrays)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:  # that of a full disk names no file
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error

    @staticmethod
    def remove_unfinished(path: str | Path) -> None:
        """Remove the temporary files of processes that were killed while they saved to `path`."""
        remove_unfinished(Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Checkpoint:
        """Read a checkpoint; raises CheckpointError if it is missing or damaged (every array has a checksum)."""
        path = Path(path)
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            tree = json.loads(arrays.pop("tree").tobytes())
            if (version := tree.pop("format")) != FORMAT:
                raise CheckpointError(f"the checkpoint {path} has format {version}, but this version reads {FORMAT}")
            return cls(**{name: _unpack(value, arrays) for name, value in tree.items()})
        except CheckpointError:
            raise
        except FileNotFoundError:
            raise CheckpointError(f"there is no checkpoint at {path}") from None
        except IsADirectoryError:
            raise CheckpointError(f"{path} is a folder: name the checkpoint file in it") from None
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EIO):
                raise  # not the file's fault
            raise _damaged(path, error) from error
        except Exception as error:  # errors of a zip file, an array's header and JSON have no common class
            raise _damaged(path, error) from error

    def restore(self, model: Any, optimizer: Any, schedule: Any) -> None:
        """Load the state into the three; raises CheckpointError if the checkpoint is of another model or optimizer."""
        try:
            model.load_state_dict(self.model)
            optimizer.load_state_dict(self.optimizer)
        except (KeyError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"the checkpoint is of another model: {error}") from error
        if (schedule is None) != (self.schedule is None):
            raise CheckpointError("the checkpoint and the job differ in whether there is a learning-rate schedule")
        if schedule is not None:
            schedule.load_state_dict(self.schedule)


def _damaged(path: Path, error: Exception) -> CheckpointError:
    return CheckpointError(f"{path} is damaged, or no checkpoint ({error or type(error).__name__}); take another one")


def _pack(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """`value` as JSON, its arrays moved to `arrays` and replaced by {"array": name}."""
    if isinstance(value, dict):
        pairs = [[key, _pack(item, f"{name}.{key}", arrays)] for key, item in value.items()]
        return {"pairs": pairs}  # pairs: as keys of a JSON object, an optimizer's integer keys would become strings
    if isinstance(value, (list, tuple)):
        return [_pack(item, f"{name}.{index}", arrays) for index, item in enumerate(value)]
    if hasattr(value, "dtype"):
        arrays[name] = kernels.to_numpy(value) if not isinstance(value, np.generic) else value
        return {"array": name}
    return value


def _unpack(value: Any, arrays: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        if "array" in value:
            return arrays[value["array"]]
        return {key: _unpack(item, arrays) for key, item in value["pairs"]}
    if isinstance(value, list):
        return [_unpack(item, arrays) for item in value]
    return value
