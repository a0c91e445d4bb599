"""Checkpoints: the state from which a run goes on to the same bits, in one file that is either complete or absent.

The file is numpy's .npz: arrays, and one JSON text for everything else. It contains no pickles, so opening a stranger's
file is safe.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from minidl import kernels
from minidl.atomic_files import remove_unfinished, written_whole
from minidl.kernels.sixteen_bit import bfloat16_from_void
from minidl.optim.master_weights import MASTER
from minidl.optim.named_state import by_name, load_named_state
from minidl.optim.state_dict import check_keys
from minidl.parallel.run.history import HistoryRow

CHECKPOINT_FILE = "checkpoint.npz"  # in a run folder
FORMAT = 2  # format 1 had the optimizer's parameters by number


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or of another run."""


@dataclass
class Checkpoint:
    """The state of a run after `epoch` epochs.

    epoch         epochs done
    model         its `state_dict()`: whole arrays, however the model was split
    optimizer     its state and groups, with the names of parameters where `Optimizer.state_dict()` has numbers
    schedule      its `state_dict()`, or None
    scaler        `state_dict()` of the `amp.GradScaler` of a run in float16; else empty
    history       one row per epoch
    config        kept for the caller, such as the options of the command line; JSON
    data          what `data.Splits.outline` says of the data, so that new samples can be prepared without it
    within_epoch  where in its next epoch the run stood, with the losses of each rank; empty between two epochs
    format        version of the file: 2; 1, which can still be read, has numbers in `optimizer`
    """

    epoch: int
    model: dict[str, Any]
    optimizer: dict[str, Any]
    schedule: dict[str, Any] | None = None
    history: list[HistoryRow] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    within_epoch: dict[str, Any] = field(default_factory=dict)
    scaler: dict[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    def save(self, path: str | Path) -> None:
        """Write to `path` atomically: to a temporary file in the same folder, flushed to the disk, then renamed.

        Raises OSError without space or permission; the previous checkpoint is then still there.
        """
        path = Path(path)
        arrays: dict[str, Any] = {}
        tree = {name: _pack(value, name, arrays) for name, value in vars(self).items()}
        with written_whole(path) as file:
            np.savez(file, tree=np.frombuffer(json.dumps(tree).encode(), np.uint8), **arrays)
            file.flush()
            os.fsync(file.fileno())

    @staticmethod
    def remove_unfinished(path: str | Path) -> None:
        """Remove the temporary files of processes that were killed while they saved to `path`."""
        remove_unfinished(Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Checkpoint:
        """Read a checkpoint, or that of a run's folder.

        Raises CheckpointError if it is missing or damaged (every array has a checksum).
        """
        path = Path(path)
        path = path / CHECKPOINT_FILE if path.is_dir() else path
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: bfloat16_from_void(file[name]) for name in file.files}
            if arrays and "tree" not in arrays:
                raise CheckpointError(
                    f"{path} is no run, but arrays such as {next(iter(arrays))}: give the folder of a run, or pass the "
                    "arrays to model.load_state_dict"
                )
            tree = json.loads(arrays.pop("tree").tobytes())
            if (version := tree["format"]) not in (1, FORMAT):
                raise CheckpointError(
                    f"the checkpoint {path} has format {version}, but this version reads 1 and {FORMAT}: "
                    "read it with the version of minidl that wrote it"
                )
            return cls(**{name: _unpack(value, arrays) for name, value in tree.items()})._checked()
        except CheckpointError:
            raise
        except FileNotFoundError:
            raise CheckpointError(f"there is no checkpoint at {path}") from None
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EIO):
                raise  # not the file's fault
            raise _damaged(path, error) from error
        except Exception as error:  # errors of a zip file, an array's header and JSON have no common class
            raise _damaged(path, error) from error

    def _checked(self) -> Self:
        """Raise TypeError or KeyError if the file has other contents than a checkpoint's."""
        kinds = {"epoch": int, "model": dict, "optimizer": dict, "history": list, "within_epoch": dict}
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} is a {type(getattr(self, name)).__name__}")
        if not isinstance(self.optimizer["state"], dict) or not isinstance(self.optimizer["param_groups"], list):
            raise TypeError("optimizer has no state and groups")
        return self

    def restore(self, model: Any, optimizer: Any, schedule: Any, names: Mapping[Any, str] | None = None) -> None:
        """Load the state into the three; if the model is split, only the parameters and shards that this rank holds.

        The weights are the optimizer's float32 masters, where it has them.
        model: or its partition. names: of what the optimizer updates; None: that is the model's parameters.
        The learning rate and the other options of the optimizer's groups become those of the checkpoint, not the job's.
        Raises CheckpointError if the checkpoint is of another model, optimizer or schedule: it lists all names and
        shapes that differ.
        """
        names = names or {parameter: name for name, parameter in model.named_parameters()}
        problems = []
        try:
            check_keys(self.optimizer)
        except ValueError as error:
            raise CheckpointError(f"the checkpoint is of another optimizer: {error}") from error
        states = {name: state for name, state in self.optimizer["state"].items() if name in self.model}
        masters = {name: state[MASTER] for name, state in states.items() if MASTER in state}
        try:
            model.load_state_dict(self.model | masters)
        except ValueError as error:
            problems.append(f"the checkpoint is of another model: {error}")
        try:
            saved = by_name(optimizer, names, self.optimizer) if self.format == 1 else self.optimizer
            load_named_state(optimizer, names, saved)
        except ValueError as error:
            problems.append(f"the checkpoint is of another optimizer: {error}")
        if (schedule is None) != (self.schedule is None):
            has, job = ("a", "has none") if schedule is None else ("no", "has one")
            problems.append(
                f"the checkpoint has {has} learning-rate schedule, the job {job}: give the schedule of the saved run"
            )
        elif self.schedule is not None:
            try:
                schedule.load_state_dict(self.schedule)
                if others := sorted(self.schedule.keys() - schedule.state_dict().keys()):
                    raise ValueError(f"its state has {', '.join(others)}, which a {type(schedule).__name__} has not")
            except ValueError as error:
                problems.append(f"the checkpoint is of another learning-rate schedule: {error}")
        if problems:
            raise CheckpointError("\n".join(problems))


def _damaged(path: Path, error: Exception) -> CheckpointError:
    return CheckpointError(f"{path} is damaged, or no checkpoint ({error or type(error).__name__}); take another one")


def _pack(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """`value` as JSON, its arrays moved to `arrays` and replaced by {"array": name}."""
    if isinstance(value, dict):
        pairs = [[key, _pack(item, f"{name}.{key}", arrays)] for key, item in value.items()]
        return {"pairs": pairs}  # pairs: as keys of a JSON object, a schedule's integer keys would become strings
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
