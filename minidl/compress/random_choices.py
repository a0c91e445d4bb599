"""Random numbers for compressors: streams depend on the position in the run, so a resumed run draws the same ones."""

from __future__ import annotations

import numpy as np

from minidl import random


class RandomChoices:
    """A mix-in for a `Compressor` that draws random numbers, either per node or the same on all nodes."""

    _run: tuple[int, str, int] | None = None  # seed, name of the parameter, rank
    _epoch: int = 0
    _draws: int = 0  # common draws in this epoch
    _own: np.random.Generator | None = None

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        self._run = seed, name, rank
        self.begin_epoch(0)

    def begin_epoch(self, epoch: int) -> None:
        self._epoch, self._draws, self._own = epoch, 0, None

    @property
    def choices(self) -> np.random.Generator:
        """This node's generator: one stream per parameter, rank and epoch; outside a run `random.generator()`."""
        if self._run is None:
            return random.generator()
        if self._own is None:
            seed, name, rank = self._run
            self._own = random.stream(random.Purpose.ROUNDING, seed, self._epoch, rank, name)
        return self._own

    def _next_draw(self) -> tuple[int, int]:
        """Epoch, and number of the draw in it: the coordinates of a common choice, which all nodes make."""
        draw, self._draws = self._draws, self._draws + 1
        return self._epoch, draw

    def _common_choices(self, purpose: random.Purpose, seed: int, epoch: int, draw: int) -> np.random.Generator:
        """The generator of a common choice: the same numbers on all nodes, for this parameter, epoch and draw."""
        run_seed, name, _ = self._run or (0, "", 0)
        return random.stream(purpose, run_seed, seed, epoch, name, draw)
