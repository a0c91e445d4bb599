"""GradScaler: a factor on the loss that keeps small gradients above the smallest number of float16."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from minidl.kernels import array_module
from minidl.kernels.sixteen_bit import is_sixteen_bit
from minidl.optim import Optimizer
from minidl.tensor import Tensor

SMALLEST, LARGEST = 2.0**-126, 2.0**127
"""Between them the factor and 1 / factor are normal numbers in float32."""


class GradScaler:
    """Multiplies the loss by a large factor, so that small gradients survive float16, and divides the gradients again.

        scale(loss)        loss * factor, for backward: all gradients come out `factor` times as large
        step(optimizer)    gradients / factor; if one is infinite or not a number the step is left out
        update()           such a step: factor *= backoff_factor; growth_interval steps without: factor *= growth_factor

    The factor stays between 2**-126 and 2**127, the normal numbers of float32: a run whose gradients are never finite
    leaves out every step, and one whose gradients are all 0 goes on.

    Parameters
        init_scale       the first factor
        growth_factor    by how much it grows, above 1
        backoff_factor   by how much it shrinks, below 1
        growth_interval  steps in a row without infinities until it grows
        enabled          False: scale and update do nothing, step calls optimizer.step()

    To clip gradients, call `unscale_(optimizer)` before clipping, then `step`.
    Errors: RuntimeError for calls out of order.
    Source: Micikevicius et al., Mixed precision training (arXiv:1710.03740), section 3.2; the dynamic factor is
    PyTorch's.

    >>> scaler = GradScaler(init_scale=4.0)
    >>> w = Tensor([1.0], requires_grad=True)
    >>> scaler.scale((w * w).sum()).backward()
    >>> w.grad
    array([8.], dtype=float32)
    """

    def __init__(
        self,
        device: str = "cpu",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if device != "cpu":
            raise ValueError(f"GradScaler: the first argument is the device, 'cpu', not {device!r}: name the others")
        if not (init_scale > 0 and growth_factor > 1 and 0 < backoff_factor < 1 and growth_interval >= 1):
            raise ValueError(
                "GradScaler: init_scale > 0, growth_factor > 1, 0 < backoff_factor < 1 and growth_interval >= 1 "
                f"expected, got {init_scale}, {growth_factor}, {backoff_factor} and {growth_interval}"
            )
        self._scale, self._enabled = float(init_scale), enabled
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval, self._growth_tracker = growth_interval, 0
        self._is_finite: dict[int, bool] = {}  # of the optimizers whose gradients are divided, by id
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """The loss, or each of a list or tuple of losses, times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(output) for output in outputs)
        return outputs * self._scale

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of the optimizer's parameters by the factor, in place, unless `step` shall do it."""
        if not self._enabled:
            return
        if id(optimizer) in self._stepped:
            raise RuntimeError("GradScaler: unscale_() comes before step(), not after it")
        if id(optimizer) in self._is_finite:
            raise RuntimeError("GradScaler: unscale_() was already called for this optimizer since the last update()")
        gradients = [p.grad for p in _parameters(optimizer) if p.grad is not None]
        if any(is_sixteen_bit(gradient.dtype) for gradient in gradients):
            raise ValueError("GradScaler: gradients in 16 bits: keep the weights in float32, and use amp.autocast")
        is_finite = True
        for gradient in gradients:
            gradient *= 1 / self._scale
            is_finite = is_finite and bool(array_module(gradient).isfinite(gradient).all())
        self._is_finite[id(optimizer)] = is_finite

    def step(self, optimizer: Optimizer) -> None:
        """Divide the gradients by the factor, if `unscale_` has not done it; step if all gradients are finite."""
        if not self._enabled:
            optimizer.step()
            return
        if id(optimizer) in self._stepped:
            raise RuntimeError(
                "GradScaler: step() was already called for this optimizer: call update() after each step"
            )
        if not any(parameter.grad is not None for parameter in _parameters(optimizer)):
            raise RuntimeError("GradScaler: no parameter has a gradient: call scale(loss).backward() before step()")
        if id(optimizer) not in self._is_finite:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        if self._is_finite[id(optimizer)]:
            optimizer.step()

    def update(self, new_scale: float | None = None) -> None:
        """Adapt the factor to what the steps since the last update have met; or set it to `new_scale`."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._is_finite:
            raise RuntimeError("GradScaler: update() without a step: call step(optimizer) before it")
        elif not all(self._is_finite.values()):
            self._scale = max(self._scale * self._backoff_factor, SMALLEST)
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale = min(self._scale * self._growth_factor, LARGEST)
                self._growth_tracker = 0
        self._is_finite.clear()
        self._stepped.clear()

    def get_scale(self) -> float:
        """The factor; 1 if the scaler is not enabled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether it scales at all."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The factor, its options and the steps since it last changed, under PyTorch's names; {} if not enabled."""
        names = ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker")
        return {name: getattr(self, "_" + name.lstrip("_")) for name in names} if self._enabled else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict()` gave, here or in PyTorch."""
        if not self._enabled:
            return
        missing = [name for name in self.state_dict() if name not in state]
        if missing:
            raise ValueError(f"this is no state of an enabled GradScaler: it lacks {', '.join(missing)}")
        for name in self.state_dict():
            setattr(self, "_" + name.lstrip("_"), state[name])


def _parameters(optimizer: Optimizer) -> Iterable[Tensor]:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"GradScaler: an optimizer is expected here, not {type(optimizer).__name__}")
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
