"""Costs of the units of a model, counted in flops or measured in seconds, from which cuts are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

from minidl import kernels
from minidl.arguments import one_of, whole_number
from minidl.kept_arrays import kept_bytes
from minidl.kernels import array_module, shapes
from minidl.nn import Module, Stage
from minidl.parallel.memory_plan import MemoryUnknown
from minidl.parallel.pipeline.handover import separate, tensors_of
from minidl.recomputation import unchanged
from minidl.tape import walk
from minidl.tensor import Tensor

UNITS = ("flops", "seconds")
"""Units of costs: flops are counted, and the same on every machine; seconds are measured on this one."""


class UnitCost(NamedTuple):
    """The cost of one of `model.stages()`.

    name        the names of its modules in the model; of its parameters, if it has no modules
    forward     flops or seconds
    backward    flops or seconds, for the gradients of its input and of its parameters together
    parameters  bytes; a tied parameter counts in every unit that uses it
    kept        bytes that stay from forward until backward, the output included; those of the input, of parameters and
                of buffers do not count. Within a stage the output of a unit stays only if the next unit reads its input
                in backward
    output      bytes of the tensors that pass to the next unit
    """

    name: str
    forward: float
    backward: float
    parameters: int
    kept: int
    output: int


@dataclass(frozen=True)
class Costs:
    """The costs of the units of a model for given samples; `str()` is a table.

    Parameters
        rows  one for each of `model.stages()`, in order
        unit  unit of forward and backward: "flops" or "seconds"
    """

    rows: tuple[UnitCost, ...]
    unit: str = "flops"

    @property
    def totals(self) -> list[float]:
        """Cost of forward plus backward, for each unit."""
        return [row.forward + row.backward for row in self.rows]

    def __str__(self) -> str:
        number = "{:,}" if self.unit == "flops" else "{:.2e}"
        whole = sum(self.totals)
        head = ["", "unit", f"forward [{self.unit}]", f"backward [{self.unit}]", "share"]
        table = [[*head, "parameters [bytes]", "kept [bytes]", "output [bytes]"]]
        for position, (row, total) in enumerate(zip(self.rows, self.totals, strict=True)):
            costs = [number.format(row.forward), number.format(row.backward), f"{total / whole if whole else 0:.0%}"]
            table.append([str(position), row.name, *costs, *map("{:,}".format, row[3:])])
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = (
            "  ".join(
                cell.ljust(width) if column == 1 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in table
        )
        return "\n".join(lines)


def costs_of(model: Module, x: Any, unit: str = "flops", repeats: int = 5) -> Costs:
    """Return the costs of forward and backward of each of `model.stages()` for the samples x, without the loss.

    The model stays in its mode, training or evaluation. Its gradients, running statistics and random numbers do not
    change, and its hooks are not called.

    Parameters
        model    its units are run one after the other
        x        a micro-batch of samples, as the first unit takes them
        unit     "flops" counts, as `kernels.counted`; "seconds" measures on this machine
        repeats  the seconds of a unit are the median of that many runs, after one run to warm up

    Raises
        TypeError            a unit returns something else than a tensor or a tuple of tensors
        ValueError           another unit, or less than one repetition
        NotImplementedError  the model has no stages

    >>> import numpy as np
    >>> from minidl import nn
    >>> costs = costs_of(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4)), np.ones((1, 2), np.float32))
    >>> costs.totals
    [30, 80]
    >>> print(costs)
       unit  forward [flops]  backward [flops]  share  parameters [bytes]  kept [bytes]  output [bytes]
    0  0                  15                15    27%                  36            12              12
    1  1                  28                52    73%                  64            16              16

    Narayanan et al., PipeDream (SOSP 2019), section 3.1, profiles the layers of a model in the same way.
    """
    one_of("costs_of: unit", unit, UNITS)
    whole_number("costs_of: repeats", repeats, at_least=1)
    return costs_of_units(((model, each) for each in model.stages()), x, unit, repeats)


def costs_of_units(units: Iterable[tuple[Module, Stage]], x: Any, unit: str, repeats: int = 5) -> Costs:
    """As `costs_of`, for consecutive units, each with a model that need not hold the others.

    Flops of a unit that is like the one before, with inputs of the same shapes, are those of that one.
    """
    rows: list[UnitCost] = []
    value, inputs = (x.detach() if isinstance(x, Tensor) else x), [x]
    before: Any = None
    named: Module | None = None
    with unchanged():
        for model, stage in units:
            if model is not named:
                named, names = model, names_in(model)
                if unit == "seconds" and any(isinstance(p.data, shapes.Hollow) for p in model.parameters()):
                    raise MemoryUnknown("cuts by seconds need a run", 'use cuts="flops", or give the cuts')
            last, before = before, (unit, stage.kind(), [(each.shape, each.dtype) for each in inputs])
            if before == last and unit == "flops":
                rows.append(rows[-1]._replace(name=name_of(stage, names)))
                continue
            if unit == "flops":
                with kernels.counted() as work:
                    row, output = _run(name_of(stage, names), stage, value, inputs, lambda: work.flops)
            else:
                runs = [_run(name_of(stage, names), stage, value, inputs, perf_counter) for _ in range(repeats + 1)]
                measured, (row, output) = [each for each, _ in runs[1:]], runs[-1]
                row = row._replace(
                    forward=median(each.forward for each in measured),
                    backward=median(each.backward for each in measured),
                )
            rows.append(row)
            value, inputs = separate(output)
    return Costs(tuple(rows), unit)


def _run(name: str, stage: Stage, value: Any, inputs: Sequence[Any], now: Callable[[], float]) -> tuple[UnitCost, Any]:
    """The costs of forward and backward of a unit, and its output; `now` reads the counter or the clock."""
    began = now()
    output = stage(value)
    forward = now() - began
    tensors = tensors_of(output)
    kept = kept_bytes(tensors, [*inputs, *stage.parameters(), *stage.buffers()])
    differentiable = [tensor for tensor in tensors if tensor.requires_grad]
    seeds = [array_module(tensor.data).ones_like(tensor.data) for tensor in differentiable]
    began = now()
    walk(differentiable, seeds, None, False, lambda leaf, gradient: None)  # the `.grad` of the leaves stay
    backward = now() - began
    parameters = sum(parameter.data.nbytes for parameter in stage.parameters())
    sent = sum(tensor.data.nbytes for tensor in tensors)
    return UnitCost(name, forward, backward, parameters, kept, sent), output


def name_of(unit: Stage, names: Mapping[Any, str]) -> str:
    """The names of its modules in the model; of its parameters if it has no modules."""
    used = unit.modules or unit.parameters()
    return ", ".join(names.get(each, type(each).__name__) for each in used) or "(no parameters)"


def names_in(model: Module) -> dict[Any, str]:
    """The name of each module and parameter of the model."""
    names = {module: name or type(model).__name__ for name, module in model.named_modules()}
    return {**names, **{parameter: name for name, parameter in model.named_parameters()}}
