"""The roofline: how fast this machine could run every operation of a training step, and how fast it does.

    machine = roofline.measure_machine()          # flops and bytes per second
    operations = roofline.profile(step)           # what step() does: flops, bytes and seconds of each operation
    roofline.draw(machine, operations)

An operation takes at least flops / flops_per_s, and at least bytes / bytes_per_s. Which of the two is larger depends on
its intensity, the flops for each byte that it reads or writes.

Source: Williams, Waterman, Patterson (2009), Roofline: An Insightful Visual Performance Model, CACM 52(4).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from minidl.arguments import whole_number
from minidl.kernels import counting
from minidl.plots.lines import Line, Panel
from minidl.plots.lines import draw as draw_lines
from minidl.tensor.dependency_graph import operation_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST = 6  # points in a picture, since as many colours remain


class Machine(NamedTuple):
    """How fast a machine computes; `cluster.Node(*machine)` is a simulated node of that speed.

    flops_per_s   floating-point operations per second, those of a large matrix product
    bytes_per_s   bytes per second read from and written to memory by a sum of arrays too large for the caches

    >>> Machine(flops_per_s=1e11, bytes_per_s=1e10).seconds(flops=5e9, nbytes=1e9)
    0.1
    """

    flops_per_s: float
    bytes_per_s: float

    def seconds(self, flops: float, nbytes: float) -> float:
        """The least time of an operation: the larger one of computing and of moving its bytes."""
        return max(flops / self.flops_per_s, nbytes / self.bytes_per_s)


class TimedOperation(NamedTuple):
    """A kernel or an elementwise operation, in the order of execution.

    name     of the kernel; of the operation, if it calls none
    flops    as `kernels.counted` counts them
    nbytes   bytes that it reads and writes
    seconds  from the end of the operation before to its own: with the Python between them
    """

    name: str
    flops: int
    nbytes: int
    seconds: float

    @property
    def intensity(self) -> float:
        """Flops for each byte."""
        return self.flops / self.nbytes if self.nbytes else 0.0


def measure_machine(threads: int = 1, repetitions: int = 30, size: int = 512) -> Machine:
    """Measure this machine: a product of two float32 matrices, and a sum of two arrays of 64 MiB; the best repetition.

    Parameters
        threads  that BLAS may use; numpy's sum uses one
        size     rows and columns of the matrices

    One thread is measured in processor time, several in real time. Other work on the machine, which uses caches and
    memory, too, makes the numbers smaller.
    """
    whole_number("measure_machine: threads", threads, at_least=1)
    whole_number("measure_machine: repetitions", repetitions, at_least=1)
    matrix = np.full((whole_number("measure_machine: size", size, at_least=1),) * 2, 0.37, np.float32)
    a, b = np.full((2, 2**24), 0.73, np.float32)
    out = np.empty_like(a)
    with threadpool_limits(threads):
        clock = time.thread_time if threads == 1 else time.perf_counter
        product = _least_seconds(lambda: np.matmul(matrix, matrix, out=np.empty_like(matrix)), repetitions, clock)
    moved = _least_seconds(lambda: np.add(a, b, out=out), repetitions, time.thread_time)
    return Machine(2 * size**3 / product, 3 * a.nbytes / moved)


def profile(step: Callable[[], object], repetitions: int = 5) -> list[TimedOperation]:
    """Run step() once, then `repetitions` times, and return its operations with the least seconds of each.

    Counted are kernels, differentiable operations, sums of gradients and the optimizer's updates. Arithmetic on plain
    arrays has no entry: its time is in that of the next operation.

    Raises
        RuntimeError  the steps had different operations, so that their times cannot be compared

    >>> from minidl import Tensor
    >>> x = Tensor([[1.0, 2.0]], requires_grad=True)
    >>> [(each.name, each.flops, each.nbytes) for each in profile(lambda: (x @ x.T).sum().backward())][:2]
    [('matmul', 4, 20), ('sum', 1, 8)]
    """
    whole_number("profile: repetitions", repetitions, at_least=1)
    runs = [_events(step) for _ in range(1 + repetitions)][1:]
    kinds = [[event[:3] for event in run] for run in runs]
    if any(kind != kinds[0] for kind in kinds):
        raise RuntimeError(
            "profile: the steps had different operations: let every call of step() do the same work, on minibatches of "
            "one size"
        )
    return [same[0]._replace(seconds=min(event.seconds for event in same)) for same in zip(*runs, strict=True)]


def draw(machine: Machine, operations: Sequence[TimedOperation]) -> Figure:
    """Draw the roof, and below it the six kinds of operations that take most time; both axes are logarithmic.

    Operations of one name are one point, at their mean intensity and speed; its legend has their share of all seconds.
    Those without flops are left out. Operations on arrays that stay in the caches can be above the slanted line, since
    that is the memory's.
    """
    whole = sum(each.seconds for each in operations)
    sums: dict[str, list[float]] = {}
    for name, *work in operations:
        sums[name] = [total + one for total, one in zip(sums.get(name, [0, 0, 0]), work, strict=True)]
    slowest = sorted((item for item in sums.items() if item[1][0]), key=lambda item: -item[1][2])[:MOST]
    shown = [
        Line(f"{name}, {seconds / whole:.0%}", [flops / nbytes], [flops / seconds], "points", tone)
        for tone, (name, (flops, nbytes, seconds)) in enumerate(slowest)
    ]
    ridge = machine.flops_per_s / machine.bytes_per_s
    reached = [line.x[0] for line in shown]
    ends = [min([ridge / 30, *reached]), ridge, max([10 * ridge, *reached])]
    roof = Line("roof", ends, [min(x * machine.bytes_per_s, machine.flops_per_s) for x in ends], tone=MOST)
    panel = Panel([roof, *shown], "flops per byte", "flops per second", log="xy")
    return draw_lines([panel], source="measured", height=4.2)


class _Profiler(counting.Counter):
    """Counts, and notes after each kernel or operation what was added and how long it took."""

    __slots__ = ("_before", "_began", "events")

    def __init__(self) -> None:
        super().__init__()
        self.events: list[TimedOperation] = []
        self._before = counting.Work(0, 0)
        self._began = time.perf_counter()

    def _note(self, name: str) -> None:
        now, before = time.perf_counter(), self._before
        if self.flops > before.flops or self.nbytes > before.nbytes:
            work = self.flops - before.flops, self.nbytes - before.nbytes
            self.events.append(TimedOperation(name, *work, now - self._began))
            self._before = counting.Work(self.flops, self.nbytes)
            self._began = time.perf_counter()

    def kernel(self, name: str, *work: Any) -> None:
        super().kernel(name, *work)
        self._note(name)

    def operation(self, out: Any, inputs: Sequence[Any], moves: bool, made_at: int) -> None:
        super().operation(out, inputs, moves, made_at)
        self._note(sys._getframe(2).f_code.co_name)  # of the function that called `record`

    def vjp(self, vjp: Callable[..., Any], g: Any, needs: Sequence[bool]) -> Sequence[Any]:
        gradients = super().vjp(vjp, g, needs)
        self._note(f"{operation_name(vjp)} backward")
        return gradients

    def sum(self, a: Any, b: Any) -> Any:
        total = super().sum(a, b)
        self._note("sum of gradients")
        return total


def _events(step: Callable[[], object]) -> list[TimedOperation]:
    profiler = _Profiler()
    token = counting.active.set(profiler)
    counting.in_use.set(None)
    try:
        step()
    finally:
        counting.active.reset(token)
        counting.in_use.set(None)
    return profiler.events


def _least_seconds(call: Callable[[], object], repetitions: int, clock: Callable[[], float]) -> float:
    times = []
    for _ in range(1 + repetitions):
        began = clock()
        call()
        times.append(clock() - began)
    return min(times[1:])
