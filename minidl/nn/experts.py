"""MixtureOfExperts: a gate sends every token to one or two of many feed-forward networks.

The layer has the weights of all its experts, and the arithmetic of those that a token meets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from minidl import functional as F
from minidl import kernels
from minidl.arguments import real_number, whole_number
from minidl.functional.added_loss import with_loss
from minidl.functional.bind import operand
from minidl.grad_mode import recomputing
from minidl.kernels import Array, shapes
from minidl.nn.container import ModuleList
from minidl.nn.dropout import Dropout
from minidl.nn.feed_forward import FeedForward
from minidl.nn.linear import Linear
from minidl.nn.module import Module
from minidl.nn.parameter import Parameter
from minidl.tensor import Tensor


class Routing(NamedTuple):
    """Which token each expert reads where. Every expert has `capacity` slots; slot s is of expert s // capacity.

    slots     (tokens, top): the slot of each choice of a token; experts * capacity where it is dropped
    tokens    (experts * capacity,): the token in each slot; the number of tokens where it is empty
    load      (experts,): how often each expert was chosen, drops included
    dropped   the choices for which no slot was left
    """

    slots: Array
    tokens: Array
    load: Array
    dropped: int


@dataclass
class RoutingCounts:
    """What a layer has done with the tokens that it has read.

    load      (experts,): how often each expert was chosen, drops included
    dropped   how many of these choices were dropped
    """

    load: Array
    dropped: int = 0

    def __add__(self, other: RoutingCounts) -> RoutingCounts:
        return RoutingCounts(self.load + other.load, self.dropped + other.dropped)


def route(choices: Array, experts: int, capacity: int | None = None) -> Routing:
    """Give every choice a slot of its expert: first choices before second ones, then in the order of the tokens.

    Parameters
        choices   (tokens, top): the experts that each token has chosen, the likeliest first
        experts   their number
        capacity  slots of each expert; None: as many as the most chosen one needs, so that nothing is dropped

    Lepikhin et al., GShard (arXiv:2006.16668), algorithm 1.

    >>> route(np.array([[1], [0], [1], [1]]), experts=2, capacity=2)
    Routing(slots=array([[2],
           [0],
           [3],
           [4]]), tokens=array([1, 4, 0, 2]), load=array([1, 3]), dropped=1)
    """
    count, top = choices.shape
    wanted = choices.T.reshape(-1)
    load = np.bincount(wanted, minlength=experts)
    capacity = int(load.max()) if capacity is None else capacity
    by_expert = np.argsort(wanted, kind="stable")
    place = np.empty(len(wanted), np.int64)
    place[by_expert] = np.arange(len(wanted)) - np.repeat(np.cumsum(load) - load, load)
    fits = place < capacity
    slots = np.where(fits, wanted * capacity + place, experts * capacity)
    tokens = np.full(experts * capacity, count)
    tokens[slots[fits]] = np.tile(np.arange(count), top)[fits]
    return Routing(slots.reshape(top, count).T, tokens, load, int(len(fits) - fits.sum()))


def load_balancing_loss(probabilities: Tensor, first: Array) -> Tensor:
    """How unevenly the experts are used: experts * sum of f_i P_i, which is 1 where all are used alike.

    Parameters
        probabilities  (tokens, experts): the gate's; P_i is their mean
        first          (tokens,): the first choice of each token; f_i is the fraction that chose expert i

    Fedus et al., Switch Transformers (arXiv:2101.03961), equation 4 without its factor alpha.

    >>> load_balancing_loss(Tensor([[0.75, 0.25], [0.5, 0.5]]), np.array([0, 0])).item()
    1.25
    """
    count, experts = probabilities.shape
    fractions = np.bincount(first, minlength=experts) * (experts / count**2)
    module = kernels.array_module(probabilities.data)
    return (probabilities.sum(axis=0) * module.asarray(fractions, dtype=probabilities.dtype)).sum()


class MixtureOfExperts(Module):
    """A gate sends every token to `top` of the experts, feed-forward networks; their outputs are added up, weighted.

        p = softmax(gate(x))                               a probability for each expert
        y = sum of g_i expert_i(x) over the top likeliest experts
        g_i = p_i with top=1; p_i / (sum of the p of those chosen) with more

    Each expert reads at most `capacity` = ceil(capacity_factor * top * tokens / experts) tokens of a forward pass. What
    exceeds that is dropped: this expert adds nothing to the token's output, which is zero if no other does. So a layer
    is used with a skip connection around it, as in `nn.models.GPT`. Evaluation drops nothing.

    Parameters
        width            numbers of a token
        hidden           numbers between the two layers of an expert
        experts          their number
        top              experts that each token meets: 1 as in Switch Transformers, 2 as in GShard (whose second expert
                         is drawn by chance; here it is the second likeliest)
        capacity_factor  slots of the experts for each choice of a token. 1 suffices if all experts are used alike;
                         experts / top suffices always
        balance          factor of the load-balancing loss, alpha in the paper; larger values even out the experts' load
        dropout          probability of dropping an element of the output
        bias             whether the experts' layers have a bias; the gate has none

    Shapes: x (..., width) -> (..., width).

    In training the layer adds balance * `load_balancing_loss` to the loss that backward differentiates; the value of
    the model's loss does not change. A loss that you multiply by a factor goes with `functional.added_loss`.

    Attributes
        counts   what training has done since the last `take_counts`, where what is recomputed counts once: `load`, how
                 often each expert was chosen, and `dropped`, how many of these choices were dropped

    Raises
        TypeError, ValueError   a number that is not whole or out of range, more `top` than experts

    References
        Fedus et al., Switch Transformers (arXiv:2101.03961), section 2; Lepikhin et al., GShard (arXiv:2006.16668),
        section 2.2.

    >>> from minidl import random
    >>> _ = random.manual_seed(0)
    >>> layer = MixtureOfExperts(width=4, hidden=8, experts=3)
    >>> layer(np.ones((2, 5, 4), np.float32)).shape
    (2, 5, 4)
    >>> layer.counts
    RoutingCounts(load=array([ 0, 10,  0]), dropped=5)
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        experts: int,
        top: int = 1,
        capacity_factor: float = 1.25,
        balance: float = 0.01,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        sizes = {"width": width, "hidden": hidden, "experts": experts}
        width, hidden, experts = (whole_number(f"MixtureOfExperts: {n}", size, at_least=1) for n, size in sizes.items())
        hint = "a token meets each expert at most once"
        self.top = whole_number("MixtureOfExperts: top", top, at_least=1, at_most=experts, hint=hint)
        self.capacity_factor = real_number("MixtureOfExperts: capacity_factor", capacity_factor, above=0)
        self.balance = real_number("MixtureOfExperts: balance", balance, at_least=0)
        self.gate = Linear(width, experts, bias=False)
        self.experts = ModuleList(FeedForward(width, hidden, bias=bias) for _ in range(experts))
        self.dropout = Dropout(dropout)
        self.counts = RoutingCounts(np.zeros(experts, np.int64))

    def take_counts(self) -> RoutingCounts:
        """Return the counts, and begin to count anew."""
        counts, self.counts = self.counts, RoutingCounts(np.zeros_like(self.counts.load))
        return counts

    def capacity(self, tokens: int) -> int | None:
        """The slots of each expert in a forward pass of that many tokens; None in evaluation, which drops nothing."""
        if not self.training:
            return None
        # exact: 1.1 * 10 is more than 11 in floating-point numbers
        return min(ceil(Fraction(str(self.capacity_factor)) * self.top * tokens / len(self.experts)), tokens)

    def forward(self, x: Any) -> Tensor:
        x = operand(x)
        tokens = x.reshape(-1, x.shape[-1])
        probabilities = F.softmax(self.gate(tokens), axis=-1)
        choices = _likeliest(probabilities.data, self.top)
        routing = route(choices, len(self.experts), self.capacity(len(choices)))
        y = self._combined(self.compute(self._dispatched(tokens, routing)), probabilities, choices, routing)
        if self.training and not recomputing.get():
            self.counts.load += routing.load
            self.counts.dropped += routing.dropped
        if self.training and self.balance and len(choices):
            y = with_loss(y, self.balance * load_balancing_loss(probabilities, choices[:, 0]))
        return self.dropout(y.reshape(x.shape))

    def compute(self, slots: Tensor) -> Tensor:
        """The experts' outputs for what is in their slots: (experts, capacity, width) -> the same shape."""
        return applied(self.experts, slots)

    def _dispatched(self, tokens: Tensor, routing: Routing) -> Tensor:
        """The tokens in their slots, (experts, capacity, width); empty slots are zero."""
        capacity = len(routing.tokens) // len(self.experts)
        return _with_zeros(tokens)[routing.tokens].reshape(len(self.experts), capacity, tokens.shape[-1])

    def _combined(self, outputs: Tensor, probabilities: Tensor, choices: Array, routing: Routing) -> Tensor:
        """For each token, the weighted sum of what the slots of its choices hold."""
        gates = F.gather(probabilities, 1, choices)
        if self.top > 1:
            gates = gates / gates.sum(axis=1, keepdims=True)
        chosen = _with_zeros(outputs.reshape(-1, outputs.shape[-1]))[routing.slots]  # (tokens, top, width)
        return (chosen * gates.reshape(*choices.shape, 1)).sum(axis=1)


def applied(experts: Iterable[Module], slots: Tensor) -> Tensor:
    """Each expert's outputs for its slots: (number of experts, slots, width) -> the same shape."""
    return F.stack([expert(slots[i]) for i, expert in enumerate(experts)])


def parameters_of_experts(model: Module) -> set[Parameter]:
    """The parameters of all experts in a model; those of the gates are not among them."""
    layers = [layer for layer in model.modules() if isinstance(layer, MixtureOfExperts)]
    return {parameter for layer in layers for parameter in layer.experts.parameters()}


def _likeliest(probabilities: Array, top: int) -> Array:
    """The `top` likeliest experts of each token, the lower index first among equals.

    Where shapes alone are computed, tokens are dealt to the experts in turn.
    """
    if isinstance(probabilities, shapes.Hollow):
        count, experts = probabilities.shape
        return (np.arange(count)[:, None] + np.arange(top)) % experts
    return np.argsort(-kernels.to_numpy(probabilities), axis=1, kind="stable")[:, :top]


def _with_zeros(rows: Tensor) -> Tensor:
    """The rows and a row of zeros, for empty slots and dropped tokens."""
    module = kernels.array_module(rows.data)
    return F.cat([rows, Tensor(module.zeros((1, rows.shape[1]), dtype=rows.dtype))])
