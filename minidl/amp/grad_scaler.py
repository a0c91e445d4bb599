"""GradScaler: scale the loss, so that small gradients stay above the smallest number of float16."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from minidl.arguments import real_number, whole_number
from minidl.kernels import array_module
from minidl.kernels.sixteen_bit import is_sixteen_bit
from minidl.optim import Optimizer
from minidl.tensor import Tensor

SMALLEST, LARGEST = 2.0**-126, 2.0**127
"""Within these bounds the factor and 1 / factor are normal numbers in float32."""


class GradScaler:
    """Scale the loss by a large factor, so that small gradients survive float16; unscale them before the step.

        scale(loss)        return loss * factor; backward then gives gradients that are `factor` times as large
        step(optimizer)    divide the gradients by factor, then step, unless one of them is infinite or nan
        update()           factor *= backoff_factor after a skipped step,
                           factor *= growth_factor after growth_interval steps in a row

    Parameters
        device           "cpu", the only device
        init_scale       initial factor, 2**-126 to 2**127
        growth_factor    multiplies the factor after growth_interval steps, above 1
        backoff_factor   multiplies the factor after a skipped step, above 0 and below 1
        growth_interval  steps in a row, none skipped, before the factor grows
        enabled          False: scale and update do nothing, step calls optimizer.step()
        agree            where several ranks update shares of one model: a function that all of them call, and that
                         returns whether it was given True on all of them; each step is then skipped by all or by none

    The factor stays between 2**-126 and 2**127, where it and its inverse are normal numbers of float32.
    To clip gradients, call `unscale_(optimizer)` before clipping, then `step`. Gradients in 16 bits cannot be unscaled
    in place, since many would become 0: `step` does it where the optimizer widens them to float32. Clip those to
    max_norm * get_scale(), without unscale_.

    Raises
        TypeError       a setting that is not a number
        ValueError      a setting out of range, another device, unscale_ of gradients in 16 bits
        RuntimeError    calls out of order

    References
        Micikevicius et al., Mixed precision training (arXiv:1710.03740), section 3.2; the dynamic factor is PyTorch's.

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
        *,
        agree: Callable[[bool], bool] = bool,
    ) -> None:
        if device != "cpu":
            raise ValueError(
                f"GradScaler: the first argument is the device, 'cpu', not {device!r}: pass the others by name"
            )
        self._enabled, self._growth_tracker, self._agree = enabled, 0, agree
        self._scale = _checked_factor("init_scale", init_scale)
        self._growth_factor = _SETTINGS["growth_factor"](growth_factor)
        self._backoff_factor = _SETTINGS["backoff_factor"](backoff_factor)
        self._growth_interval = _SETTINGS["growth_interval"](growth_interval)
        self._is_finite: dict[int, bool] = {}  # key: id of an optimizer with unscaled gradients
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """Return the loss, or each of a list or tuple of losses, times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, (list, tuple)):
            make = getattr(type(outputs), "_make", type(outputs))  # a named tuple is made by _make
            return make(self.scale(output) for output in outputs)
        return outputs * self._scale

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of the optimizer's parameters by the factor in place; `step` will not divide again."""
        if not self._enabled:
            return
        if id(optimizer) in self._stepped:
            raise RuntimeError("GradScaler: unscale_() comes before step(), not after it")
        if id(optimizer) in self._is_finite:
            raise RuntimeError("GradScaler: unscale_() was already called for this optimizer since the last update()")
        if any(p.grad is not None and is_sixteen_bit(p.grad.dtype) for p in _parameters(optimizer)):
            raise ValueError(
                "GradScaler: gradients in 16 bits would lose their small numbers if they were unscaled in place: leave "
                "out unscale_(), since step() unscales them in float32, and clip to max_norm * scaler.get_scale()"
            )
        self._unscale(optimizer)

    def _unscale(self, optimizer: Optimizer) -> None:
        """Unscale the float32 gradients, and note whether all gradients are finite."""
        is_finite = True
        for gradient in (p.grad for p in _parameters(optimizer) if p.grad is not None):
            if not is_sixteen_bit(gradient.dtype):
                gradient *= 1 / self._scale
            is_finite = is_finite and bool(array_module(gradient).isfinite(gradient).all())
        self._is_finite[id(optimizer)] = self._agree(is_finite)

    def step(self, optimizer: Optimizer) -> None:
        """Divide the gradients by the factor unless `unscale_` did; step if all gradients are finite."""
        if not self._enabled:
            optimizer.step()
            return
        if id(optimizer) in self._stepped:
            raise RuntimeError(
                "GradScaler: step() was already called for this optimizer: call update() after each step"
            )
        if self._agree is bool and not any(parameter.grad is not None for parameter in _parameters(optimizer)):
            raise RuntimeError("GradScaler: no parameter has a gradient: call scale(loss).backward() before step()")
        if id(optimizer) not in self._is_finite:
            self._unscale(optimizer)
        self._stepped.add(id(optimizer))
        if self._is_finite[id(optimizer)]:
            optimizer.grad_scale = self._scale  # of 16-bit gradients
            optimizer.step()
            optimizer.grad_scale = 1.0

    def update(self, new_scale: float | None = None) -> None:
        """Adapt the factor to the steps since the last update, or set it to `new_scale`."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = _checked_factor("new_scale", new_scale)
        elif not self._is_finite:
            raise RuntimeError("GradScaler: update() without a step: call step(optimizer) before it")
        elif not all(self._is_finite.values()):
            self._scale = max(self._scale * self._backoff_factor, SMALLEST)
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker >= self._growth_interval:  # a loaded state may be above
                self._scale = min(self._scale * self._growth_factor, LARGEST)
                self._growth_tracker = 0
        self._is_finite.clear()
        self._stepped.clear()

    def get_scale(self) -> float:
        """Return the factor; 1 if the scaler is not enabled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Return whether the scaler is enabled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the factor, the settings and the steps since its last change under PyTorch's names; {} if disabled."""
        return {name: getattr(self, "_" + name.lstrip("_")) for name in _SETTINGS} if self._enabled else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load the state that `state_dict()` returned, here or in PyTorch."""
        if not self._enabled:
            return
        if not isinstance(state, Mapping):
            raise TypeError(f"GradScaler: a state is a dict, as state_dict() gives, not a {type(state).__name__}")
        missing = [name for name in self.state_dict() if name not in state]
        if missing:
            raise ValueError(f"this is not the state of an enabled GradScaler: it lacks {', '.join(missing)}")
        checked = {name: check(state[name]) for name, check in _SETTINGS.items()}  # all of them, before any is changed
        for name, value in checked.items():
            setattr(self, "_" + name.lstrip("_"), value)


def _checked_factor(name: str, value: Any) -> float:
    hint = "outside of 2**-126 to 2**127 the factor or its inverse is no normal number of float32"
    return real_number(f"GradScaler: {name}", value, at_least=SMALLEST, at_most=LARGEST, hint=hint)


_SETTINGS: dict[str, Callable[[Any], float]] = {
    "scale": lambda value: _checked_factor("scale", value),
    "growth_factor": lambda value: real_number("GradScaler: growth_factor", value, above=1),
    "backoff_factor": lambda value: real_number("GradScaler: backoff_factor", value, above=0, below=1),
    "growth_interval": lambda value: whole_number("GradScaler: growth_interval", value, at_least=1),
    "_growth_tracker": lambda value: whole_number("GradScaler: _growth_tracker", value, at_least=0),
}
"""The entries of a state, and their checks."""


def _parameters(optimizer: Optimizer) -> Iterable[Tensor]:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"GradScaler: an optimizer is expected here, not {type(optimizer).__name__}")
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
