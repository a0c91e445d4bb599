"""DGC: deep gradient compression, sparse gradients with corrected momentum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from minidl.arguments import real_number
from minidl.compress.compressor import Message, refuse_momentum
from minidl.compress.exchange import Exchange, GradientNorm
from minidl.compress.sparse import Sparse, check_density, count, pack
from minidl.compress.top_k import largest
from minidl.kernels import Array
from minidl.kernels.counterparts import compiled_in
from minidl.optim import Optimizer

WARM_UP = (0.25, 0.0625, 0.015625, 0.004)  # densities: sparsity 75, 93.75, 98.4375 and 99.6 %


@dataclass
class DGC(Sparse):
    """Deep gradient compression: sends the largest entries of a sum of velocities and keeps the others for later.

        gradient    = gradient min(1, clip / (sqrt(nodes) |whole gradient|))        local clipping
        velocity    = momentum velocity + gradient                                  momentum correction
        accumulated = accumulated + velocity
        chosen      = the density n entries of largest |accumulated|
        send accumulated[chosen]
        accumulated[chosen] = 0;  velocity[chosen] = 0                              momentum factor masking

    An entry that is sent after T steps has moved as far as in T steps of momentum SGD. Momentum in the optimizer would
    be applied to the late sum only and would miss the steps in between. The optimizer must therefore have no momentum.
    Its weight decay gets no momentum either, since the optimizer applies it after the sum.

    Parameters
        density     fraction of each parameter's entries that is sent after the warm-up, 0 < density <= 1; their number
                    is rounded up
        momentum    factor of the old velocity, 0 <= momentum < 1
        clip        2-norm at which the sum of all nodes' gradients would be clipped; None (default) switches clipping
                    off. Each node clips its own gradient of all parameters at clip / sqrt(nodes), since independent
                    noise on the nodes adds up to sqrt(nodes) times the norm. Sending begins after backward, when the
                    norm is known
        warmup      densities of the first epochs, where they are above `density`; () for none
        momentum_correction
                    False: the node adds up gradients, as `ErrorFeedback(TopK(density))` does, and the optimizer may
                    have momentum
        masking     False: the velocity of an entry is kept when it is sent
        all_reduce  "gather" (default), "recursive_doubling" or "split", as in `Sparse`

    Message: that of TopK.
    Limits: with density 1 and no warm-up, SGD with this momentum if masking is False, plain SGD if it is True.

    Raises
        ValueError    for a density, momentum or clip out of range, an optimizer with momentum
        RuntimeError  if `clip` is set and the norm of the whole gradient is not known

    References
        Lin et al., Deep gradient compression (arXiv:1712.01887), section 3 (equations 4 to 7).

    Examples
        >>> c = DGC(0.5, momentum=0.5, warmup=())
        >>> for _ in range(2):
        ...     c.decode(c.encode(np.array([3.0, 2.0])))
        array([3., 0.])
        array([0., 5.])
    """

    is_stateful, keeps_errors = True, True
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
        self.momentum = real_number("DGC: momentum", self.momentum, at_least=0, below=1)
        if self.clip is not None:
            real_number("DGC: clip", self.clip, above=0, at_most=math.inf, hint="None switches clipping off")

    @property
    def present_density(self) -> float:
        """The density in the current epoch."""
        return max(self.density, self.warmup[self._epoch]) if self._epoch < len(self.warmup) else self.density

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        self.accumulated, self.velocity, self._scale, self._epoch = None, None, None, 0

    def begin_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def begin_step(self, norm: float, nodes: int) -> None:
        """Clip the next gradient, given the 2-norm of this node's whole gradient and the number of nodes."""
        if self.clip is not None:
            limit = self.clip / nodes**0.5
            self._scale = limit / norm if norm > limit else 1.0

    def add_up(self, array: Array, nodes: int, rank: int) -> Exchange:
        if self.clip is not None and self._scale is None:
            norm: float | None = yield GradientNorm()
            if norm is not None:
                self.begin_step(norm, nodes)
        return (yield from super().add_up(array, nodes, rank))

    def encode(self, array: Array) -> Message:
        self.check(array.shape, array.dtype)
        gradient = np.ascontiguousarray(array).reshape(-1)
        if self.clip is not None:
            if self._scale is None:
                raise RuntimeError(
                    "DGC with clip must know the norm of the whole gradient: call begin_step(norm, nodes) first"
                )
            gradient = gradient * gradient.dtype.type(self._scale)
            self._scale = None
        if self.accumulated is None or self.velocity is None:
            self.accumulated, self.velocity = np.zeros_like(gradient), np.zeros_like(gradient)
        if self.momentum_correction:
            add_velocity(self.accumulated, self.velocity, gradient, self.momentum)
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
        if self.momentum_correction:
            refuse_momentum("DGC", optimizer, lr=0.1)


@compiled_in("few_entries")
def add_velocity(accumulated: Array, velocity: Array, gradient: Array, momentum: float) -> None:
    """velocity = momentum velocity + gradient; accumulated += velocity; both in place."""
    velocity *= momentum
    velocity += gradient
    accumulated += velocity
