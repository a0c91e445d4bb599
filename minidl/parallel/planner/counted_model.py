"""CountedModel: a model of any kind for the planner, counted stage by stage without contents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from minidl.kernels import shapes
from minidl.nn import Module
from minidl.nn.counts import without_contents
from minidl.parallel.pipeline.costs import UnitCost, costs_of_units
from minidl.parallel.pipeline.cuts import balanced_cuts
from minidl.parallel.planner.arrangement import Arrangement
from minidl.parallel.planner.costs import Passes, Seconds, StageMemory
from minidl.parallel.planner.machine import Machine


@dataclass(frozen=True)
class CountedModel:
    """A model whose stages were counted for one sample: its layers are not divided, but replicated and pipelined.

    Products reach the machine's efficiency for large ones; everything that is kept is written and read once a pass. In
    16 bits.

    Parameters
        rows        the costs of its stages for one sample, in 32 bits
        parameters  numbers of its parameters

    >>> import numpy as np
    >>> from minidl import nn
    >>> model = CountedModel.of(nn.models.LeNet(), np.zeros((1, 1, 28, 28), np.float32))
    >>> model.parameters, model.layers
    (61706, 5)
    """

    rows: tuple[UnitCost, ...]
    parameters: int

    @classmethod
    def of(cls, model: Module, sample: Any) -> CountedModel:
        """Count a model, which computes no number.

        Parameters
            sample  as the model takes it, alone in its minibatch

        Raises
            ValueError  the model has no stages
        """
        try:
            stages = model.stages()
        except NotImplementedError:
            name = type(model).__name__
            raise ValueError(f"{name} has no stages, which are counted: give it the method `stages`") from None
        with without_contents(model):
            x = shapes.empty(sample.shape, sample.dtype)
            costs = costs_of_units(((model, stage) for stage in stages), x, "flops")
            return cls(costs.rows, sum(parameter.size for parameter in model.parameters()))

    @property
    def layers(self) -> int:
        """Stages, which a pipeline can cut."""
        return len(self.rows)

    heads = experts = 1  # neither shards nor experts

    def flops(self, samples: int) -> float:
        """Of forward and backward of that number of samples."""
        return samples * sum(row.forward + row.backward for row in self.rows)

    def check(self, arrangement: Arrangement) -> None:
        """Raise ValueError for shards, experts and attention, which were not counted."""
        if arrangement.tp > 1 or arrangement.ep > 1 or arrangement.sequence:
            raise ValueError("only a GPT's layers are planned in shards: choose tp=1, ep=1, sequence=False")
        if arrangement.recompute == "selective":
            raise ValueError('recompute="selective" is for attention: choose "full" or "none"')
        if arrangement.pp * arrangement.chunks > self.layers:
            raise ValueError(f"{self.layers} stages are fewer than {arrangement.pp * arrangement.chunks} chunks")

    def _cut(self, arrangement: Arrangement) -> list[list[Sequence[UnitCost]]]:
        """The rows of each chunk of each stage of the pipeline."""
        made = arrangement.made_schedule()
        cuts = balanced_cuts([row.forward + row.backward for row in self.rows], made.chunks)
        chunks = [self.rows[a:b] for a, b in zip([0, *cuts], [*cuts, self.layers], strict=True)]
        return [[chunks[chunk] for chunk in made.chunks_of(stage)] for stage in range(arrangement.pp)]

    def passes(self, arrangement: Arrangement, machine: Machine) -> list[Passes]:
        """The passes of a micro-batch, by stage of the pipeline."""
        found, samples = [], arrangement.micro_batch
        speed = machine.flops_per_s * machine.efficiency
        for stage in self._cut(arrangement):
            rows = [row for chunk in stage for row in chunk]
            forward, backward = (samples * sum(getattr(row, name) for row in rows) for name in ("forward", "backward"))
            once = machine.memory_seconds(samples * sum(row.kept for row in rows) / 2)
            first = Seconds(forward / speed, 2 * once)
            half = Seconds(backward / 2 / speed, once)
            found.append(Passes(first, first if arrangement.recompute == "full" else Seconds(), half, half))
        return found

    def message(self, arrangement: Arrangement) -> float:
        """Bytes between two stages: the largest output of a stage where the model is cut."""
        chunks = [chunk for stage in self._cut(arrangement) for chunk in stage]
        inner = [chunk[-1].output for chunk in chunks if chunk[-1] is not self.rows[-1]]
        return arrangement.micro_batch * max(inner, default=0) / 2

    def tied(self, arrangement: Arrangement) -> float:
        """None: what stages share is counted in each of them."""
        return 0.0

    def stages(self, arrangement: Arrangement) -> list[StageMemory]:
        """What a rank of each stage of the pipeline needs."""
        found, samples = [], arrangement.micro_batch
        for stage in self._cut(arrangement):
            rows = [row for chunk in stage for row in chunk]
            kept, once = samples * sum(row.kept for row in rows) / 2, 0.0
            if arrangement.recompute == "full":
                kept, once = samples * sum(row.output for row in rows) / 2, samples * max(row.kept for row in rows) / 2
            numbers = [row.parameters / 4 for row in rows]
            found.append(StageMemory(sum(numbers), 0.0, max(numbers), kept, once))
        return found

    def traffic(self, arrangement: Arrangement) -> dict[str, float]:
        """Nothing along "tp" and "ep"."""
        return {}
