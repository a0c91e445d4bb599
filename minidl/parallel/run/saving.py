"""How often a run saves its state, and whether training waits until that is written."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from minidl.arguments import flag, whole_number
from minidl.parallel.run.checkpoint import Checkpoint


@dataclass(frozen=True)
class Saving:
    """When `train(folder=..., saving=...)` writes the checkpoint, in addition to the start and the end of each epoch.

    Parameters
        every         minibatches of an epoch between two checkpoints; None: no more than those
        asynchronous  True: training stops only until the state is copied; a thread writes the copy while it goes on,
                      and the next checkpoint waits until the last one is written. The copy needs memory on rank 0

    A death then costs at most `every` minibatches, or fewer than twice as many if it comes while a thread writes. The
    file is replaced when the new one is whole. If a thread cannot write, the next checkpoint or the end of the run
    raises its error. What training waits for checkpoints counts in `report.seconds`, not in the history.

    References
        Mohan, Phanishayee, Chidambaram, CheckFreq: frequent, fine-grained DNN checkpointing (FAST 2021), for copies
        that are written while training goes on.
    """

    every: int | None = None
    asynchronous: bool = False

    def __post_init__(self) -> None:
        if self.every is not None:
            whole_number("Saving: every", self.every, at_least=1)
        flag("Saving: asynchronous", self.asynchronous)


class CheckpointWriter:
    """Writes the checkpoints of a run to `path`, one at a time; each is not to be changed any more."""

    def __init__(self, path: Path, asynchronous: bool) -> None:
        self._path, self._asynchronous = path, asynchronous
        self._written: Future[None] | None = None

    def write(self, state: Checkpoint) -> None:
        """Write the state, or begin to. Raises OSError, also that of the last one."""
        self.finish()
        if not self._asynchronous:
            state.save(self._path)
            return
        thread = ThreadPoolExecutor(1)
        self._written = thread.submit(state.save, self._path)
        thread.shutdown(wait=False)

    def finish(self) -> None:
        """Return when the last checkpoint is written. Raises OSError if it could not be."""
        written, self._written = self._written, None
        if written is not None:
            written.result()
