"""Where a training step of minidl spends its time: forward and backward of every operation, measured in the tape."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from minidl import tensor
from minidl.tensor import Tensor


class Times:
    """Seconds by operation: `forward` and `backward`, and how often each was called."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = defaultdict(int)
        self.forward: dict[str, float] = defaultdict(float)
        self.backward: dict[str, float] = defaultdict(float)

    def names(self) -> list[str]:
        """The operations, the slowest first."""
        return sorted({*self.forward, *self.backward}, key=lambda name: -self.forward[name] - self.backward[name])


def time_by_operation(training: Any, steps: int) -> Times:
    """Run `steps` training steps with clocks in them; times are a step's, in seconds.

    forward    from the end of the previous operation to the end of this one, the modules' own time included
    backward   inside each vector-Jacobian product; "(walk)" is the rest of the backward pass

    In the table of backward, "(optimizer)" is the update. Both tables' "(all)" together are the whole step.
    """
    times = Times()
    with _clocked_record(times) as restart:
        for _ in range(steps):
            began = restart()
            loss = training.forward()
            forward_end = time.perf_counter()
            loss.backward()
            backward_end = time.perf_counter()
            training.optimizer.step()
            times.calls["(optimizer)"] += 1
            times.backward["(optimizer)"] += time.perf_counter() - backward_end
            times.backward["(walk)"] += backward_end - forward_end
            times.forward["(all)"] += forward_end - began
    times.backward["(all)"] = times.backward["(walk)"]
    times.backward["(walk)"] -= sum(seconds for name, seconds in times.backward.items() if not name.startswith("("))
    times.backward["(all)"] += times.backward["(optimizer)"]
    for table in (times.forward, times.backward):
        for name in table:
            table[name] /= steps
    for name in times.calls:
        times.calls[name] //= steps
    return times


@contextmanager
def _clocked_record(times: Times) -> Iterator[Callable[[], float]]:
    """Replace `record` in every module of functional by one that reads the clock, and that clocks the vjp."""
    last = [0.0]

    def restart() -> float:
        last[0] = time.perf_counter()
        return last[0]

    def record(data: Any, parents: tuple[Tensor, ...], vjp: Any, *args: Any, **kwargs: Any) -> Tensor:
        code = sys._getframe(1).f_code  # of the operation that calls, or of a part of it
        name = Path(code.co_filename).stem if code.co_name.startswith("_") else code.co_name

        def clocked(g: Any, needs: Any) -> Any:
            began = time.perf_counter()
            gradients = vjp(g, needs)
            times.backward[name] += time.perf_counter() - began
            return gradients

        out = tensor.record(data, parents, clocked, *args, **kwargs)
        now = time.perf_counter()
        times.calls[name] += 1
        times.forward[name] += now - last[0]
        last[0] = now
        return out

    modules = [module for name, module in sys.modules.items() if name.startswith("minidl.functional.")]
    changed = [module for module in modules if getattr(module, "record", None) is tensor.record]
    for module in changed:
        module.record = record  # type: ignore[attr-defined]
    try:
        yield restart
    finally:
        for module in changed:
            module.record = tensor.record  # type: ignore[attr-defined]
