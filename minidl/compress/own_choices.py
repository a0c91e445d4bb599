"""Random numbers of a compressor's own: a node rounds up or down, or chooses entries, without the other nodes."""

from __future__ import annotations

import numpy as np

from minidl import random


class OwnChoices:
    """A compressor that draws random numbers by itself; a mix-in for `Compressor`.

    Within a run they come from a stream of this parameter on this rank, begun anew in every epoch, so that a run that
    is resumed has the same bits. Outside a run they come from `minidl.random.generator()`.
    """

    _place: tuple[int, str, int] | None = None  # seed, name and rank of the run
    _epoch_of_choices: int = 0
    _stream: np.random.Generator | None = None

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        self._place, self._stream = (seed, name, rank), None

    def begin_epoch(self, epoch: int) -> None:
        self._epoch_of_choices, self._stream = epoch, None

    @property
    def choices(self) -> np.random.Generator:
        """Where the next random number comes from."""
        if self._place is None:
            return random.generator()
        if self._stream is None:
            seed, name, rank = self._place
            self._stream = random.stream(random.Purpose.ROUNDING, seed, self._epoch_of_choices, rank, name)
        return self._stream
