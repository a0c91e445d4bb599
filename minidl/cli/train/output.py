"""The output of `minidl train`: for a person, for a program (JSON), and for TensorBoard."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from minidl import parallel
from minidl.parallel.run.tensorboard import summary_writer

Listener = Callable[[parallel.Progress], None]


@dataclass(frozen=True)
class Output:
    """quiet: nothing but errors; as_json: one JSON document; tensorboard: files for TensorBoard in the run folder."""

    quiet: bool = False
    as_json: bool = False
    tensorboard: bool = False

    @property
    def is_quiet(self) -> bool:
        """Whether neither progress nor results are shown to a person."""
        return self.quiet or self.as_json

    def check(self) -> None:
        """Raise ModuleNotFoundError if files for TensorBoard are wanted and cannot be written."""
        if self.tensorboard:
            summary_writer()

    def board(self, folder: Path, is_first: bool) -> AbstractContextManager[Listener | None]:
        """TensorBoard's file, if it is wanted; only the first of several ranks writes."""
        return parallel.TensorBoard(folder) if self.tensorboard and is_first else nullcontext()


def together(*listeners: Listener | None) -> Listener:
    """A listener that calls all of these."""

    def call_all(now: parallel.Progress) -> None:
        for listener in filter(None, listeners):
            listener(now)

    return call_all
