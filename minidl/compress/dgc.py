"""DGC: deep gradient compression, which sends one entry in a thousand and keeps momentum right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from minidl.compress.message import Message
from minidl.compress.sparse import Sparse, check_density, count, pack
from minidl.compress.top_k import largest
from minidl.kernels import Array
from minidl.optim import Optimizer

WARM_UP = (0.25, 0.0625, 0.015625, 0.004)  # densities of the first epochs: sparsity 75, 93.75, 98.4375 and 99.6 %


@dataclass
class DGC(Sparse):
    """Deep gradient compression: momentum is applied before compression, and what is left out is kept.

        gradient    = gradient min(1, clip / (sqrt(nodes) |whole gradient|))        local clipping
        velocity    = momentum velocity + gradient                                  momentum correction
        accumulated = accumulated + velocity
        chosen      = the `density` n entries of largest |accumulated|
        send accumulated[chosen]
        accumulated[chosen] = 0;  velocity[chosen] = 0                              momentum factor masking

    An entry that waits for T steps moves as far as momentum SGD would have moved it; momentum in the optimizer, applied
    to what arrives late, would not know of the steps between. So the optimizer must have no momentum of its own (its
    weight decay, applied to the sums, has none either).

    Parameters
        density     fraction of the entries of each parameter that is sent after the warm-up, above 0 and at most 1;
                    their number is rounded up
        momentum    at least 0 and below 1
        clip        2-norm above which the sum of all nodes' gradients would be clipped. Each node clips its own
                    gradient of all parameters at clip / sqrt(nodes), the norm that such a part has if the parts are
                    independent noise. Nothing is sent before backward is done, since the norm must be known. None: no
                    clipping
        warmup      densities of the first epochs, as far as they are above `density`; () for none
        momentum_correction
                    False: the node adds up gradients, as `ErrorFeedback(TopK(density))` does, and the optimizer may
                    have momentum
        masking     False: velocities go on where entries are sent
        all_reduce  as in `Sparse`

    Message: that of TopK.
    Limits: density = 1 without masking and warm-up equals SGD with that momentum. With masking it forgets the velocity
    of what it sends, that is of everything: plain SGD.

    Raises
        ValueError    for a density, momentum or clip out of range, an optimizer with momentum
        RuntimeError  if `clip` is given and the norm is not

    References
        Lin et al., Deep gradient compression (arXiv:1712.01887), section 3 (equations 4 to 7).

    Examples
        >>> c = DGC(0.5, momentum=0.5, warmup=())
        >>> for _ in range(2):
        ...     c.decode(c.encode(np.array([3.0, 2.0])))
        array([3., 0.])
        array([0., 5.])
    """

    density: float
    momentum: float = 0.9
    clip: float | None = None
    warmup: Sequence[float] = WARM_UP
    momentum_correction: bool = True
    masking: bool = True
    accumulated: Array | None = field(default=None, init=False, repr=False, compare=False)
    velocity: Array | None = field(default=None, init=False, repr=False, compare=False)
    _epoch: int = field(default=0, init=False, repr=False, compare=False)
    _scale: float | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for density in (self.density, *self.warmup):
            check_density("DGC", density)
        if not 0 <= self.momentum < 1:
            raise ValueError(f"DGC: momentum must be at least 0 and below 1, got {self.momentum}")
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"DGC: clip must be above 0, or None for no clipping, got {self.clip}")

    @property
    def is_stateful(self) -> bool:
        return True

    @property
    def keeps_errors(self) -> bool:
        return True

    @property
    def needs_norm(self) -> bool:
        return self.clip is not None

    @property
    def present_density(self) -> float:
        """The density in this epoch."""
        return max(self.density, self.warmup[self._epoch]) if self._epoch < len(self.warmup) else self.density

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        self.accumulated, self.velocity, self._scale, self._epoch = None, None, None, 0

    def begin_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def begin_step(self, norm: float, nodes: int) -> None:
        if self.clip is not None:
            limit = self.clip / nodes**0.5
            self._scale = limit / norm if norm > limit else 1.0

    def encode(self, array: Array) -> Message:
        self.check(array.shape, array.dtype)
        gradient = self._clipped(np.ascontiguousarray(array).reshape(-1))
        if self.accumulated is None or self.velocity is None:
            self.accumulated, self.velocity = np.zeros_like(gradient), np.zeros_like(gradient)
        if self.momentum_correction:
            self.velocity *= self.momentum
            self.velocity += gradient
            self.accumulated += self.velocity
        else:
            self.accumulated += gradient
        chosen = self.choose(self.accumulated)
        message = pack(chosen, self.accumulated, array.shape)
        self.accumulated[chosen] = 0
        if self.masking:
            self.velocity[chosen] = 0
        return message

    def pairs(self, size: int) -> int:
        return count(self.present_density, size)

    def choose(self, flat: Array) -> Array:
        return largest(flat, self.pairs(flat.size))

    def check_optimizer(self, optimizer: Optimizer) -> None:
        if self.momentum_correction and any(
            group.get("momentum") or "betas" in group for group in optimizer.param_groups
        ):
            raise ValueError(
                f"DGC has momentum of its own, and so has the optimizer {type(optimizer).__name__}: "
                "give momentum to DGC alone, as in optim.SGD(parameters, lr=0.1)"
            )

    def _clipped(self, gradient: Array) -> Array:
        if self.clip is None:
            return gradient
        if self._scale is None:
            raise RuntimeError(
                "DGC with clip must know the norm of the whole gradient: call begin_step(norm, nodes) first"
            )
        scale, self._scale = self._scale, None
        return gradient * gradient.dtype.type(scale)
