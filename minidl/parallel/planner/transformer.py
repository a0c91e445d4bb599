"""Transformer: a GPT from its sizes alone; what its blocks and its head cost and keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from minidl.arguments import flag, whole_number
from minidl.cluster.cost import formulas
from minidl.parallel.planner.arrangement import Arrangement
from minidl.parallel.planner.costs import Passes, Seconds, StageMemory
from minidl.parallel.planner.machine import Machine

NUMBER = 2
"""Bytes of a weight, an activation and a gradient: 16 bits."""


class Product(NamedTuple):
    """`times` products of m x k by k x n; moved: whether all three are read from or written to memory."""

    m: float
    k: float
    n: float
    times: float = 1
    moved: bool = True

    def forward(self, machine: Machine) -> float:
        """Seconds, at the speed of computing or of memory, whichever takes longer."""
        return self._seconds(machine, self.m, self.k, self.n)

    def input(self, machine: Machine) -> float:
        """Seconds of the gradient of the left factor."""
        return self._seconds(machine, self.m, self.n, self.k)

    def weight(self, machine: Machine) -> float:
        """Seconds of the gradient of the right factor."""
        return self._seconds(machine, self.k, self.m, self.n)

    def _seconds(self, machine: Machine, m: float, k: float, n: float) -> float:
        nbytes = NUMBER * (self.m * self.k + self.k * self.n + self.m * self.n) * self.times if self.moved else 0.0
        return max(machine.product_seconds(m, k, n, self.times), machine.memory_seconds(nbytes))


@dataclass(frozen=True)
class Transformer:
    """A GPT as `nn.models.GPT` builds it, in 16 bits.

    Parameters
        layers, width, heads  blocks; features of a position; attention heads of a block
        context               positions of a sequence
        vocabulary            different tokens, filled up to a multiple of the shards
        experts, top          of the feed-forward network of a block, and to how many of them a token goes
        dropout               whether there is dropout, whose masks are kept
        fused                 whether attention keeps no matrix of context x context, as of long sequences in minidl
        adds_apart            whether micro-batches' gradients of weights are added up in a pass of their own, as
                              Megatron-LM did before 2022 (NVIDIA/apex#1297), not by the product that computes them

    Raises
        TypeError, ValueError for numbers that are not whole; heads that do not divide the width

    >>> Transformer(layers=12, width=768, heads=12, context=1024, vocabulary=50257).parameters
    124439808
    """

    layers: int
    width: int
    heads: int
    context: int
    vocabulary: int = 51200
    experts: int = 1
    top: int = 1
    dropout: bool = False
    fused: bool = True
    adds_apart: bool = False

    def __post_init__(self) -> None:
        for each in fields(self):
            name, value = f"Transformer: {each.name}", getattr(self, each.name)
            if each.name in ("dropout", "fused", "adds_apart"):
                flag(name, value)
            else:
                whole_number(name, value, at_least=1)
        if self.width % self.heads:
            raise ValueError(
                f"Transformer: the heads share the width equally: width={self.width} is no multiple of "
                f"heads={self.heads}"
            )
        whole_number("Transformer: top", self.top, at_least=1, at_most=self.experts)

    @property
    def parameters(self) -> int:
        """All numbers of its parameters; embedding and head share a matrix."""
        tables = (self.vocabulary + self.context) * self.width
        return self.layers * (self._attention + self.experts * self._expert) + tables + 2 * self.width

    @property
    def _attention(self) -> int:
        """Parameters of a block without its feed-forward networks."""
        gate = self.experts * self.width if self.experts > 1 else 0
        return 4 * self.width**2 + 8 * self.width + gate

    @property
    def _expert(self) -> int:
        """Parameters of a feed-forward network."""
        return 8 * self.width**2 + 5 * self.width

    def flops(self, samples: int) -> float:
        """Of forward and backward, a product of m x k by k x n as 2 m k n, without recomputation.

        Narayanan et al. (arXiv:2104.04473), equation 3, without its recomputed forward pass.
        """
        h, s = self.width, self.context
        block = 8 * h * h + 4 * s * h + 16 * h * h * self.top
        return 3.0 * samples * s * (self.layers * block + 2 * h * self.vocabulary)

    def check(self, arrangement: Arrangement) -> None:
        """Raise ValueError unless layers, heads, positions and experts can be divided so."""
        tp, chunks = arrangement.tp, arrangement.pp * arrangement.chunks
        if self.layers % chunks:
            raise ValueError(f"{self.layers} layers cannot be divided equally over {chunks} chunks of the model")
        if self.heads % tp or (4 * self.width) % tp:
            raise ValueError(f"{self.heads} heads cannot be divided equally over tp={tp}")
        if arrangement.sequence and (tp == 1 or self.context % tp):
            raise ValueError(f"sequence=True divides {self.context} positions over tp={tp}: give a divisor above 1")
        if arrangement.recompute == "selective" and self.fused and not arrangement.sequence:
            raise ValueError('recompute="selective" is for matrices that attention keeps: fused=True keeps none')
        if self.experts % arrangement.ep:
            raise ValueError(f"{self.experts} experts cannot be divided equally over ep={arrangement.ep}")

    # ---- seconds ----

    def passes(self, arrangement: Arrangement, machine: Machine) -> list[Passes]:
        """The passes of a micro-batch, by stage of the pipeline: blocks, and on the last one the head."""
        layers = Passes().plus(self.block(arrangement, machine), self.layers // arrangement.pp)
        return [layers] * (arrangement.pp - 1) + [layers.plus(self.head(arrangement, machine))]

    def block(self, arrangement: Arrangement, machine: Machine) -> Passes:
        """The passes of a micro-batch through one block."""
        h, t, tokens = self.width, arrangement.tp, arrangement.micro_batch * self.context
        s, size = self.context, h // self.heads
        layers = [Product(tokens, h, 3 * h / t), Product(tokens, h / t, h)]
        share = tokens * self.top / self.experts  # of an expert, whose ranks bring it their tokens
        mlp = [(share * arrangement.ep, h, 4 * h / t), (share * arrangement.ep, 4 * h / t, h)]
        layers += [Product(*each, self.experts / arrangement.ep) for each in mlp]
        count = arrangement.micro_batch * self.heads / t
        core = [Product(s, size, s, count, not self.fused), Product(s, s, size, count, not self.fused)]

        # Bytes that elementwise operations read and write, 2 for each number and 1 for each mask of dropout
        mask, hidden = int(self.dropout), self.top
        everywhere, divided = tokens * h / (t if arrangement.sequence else 1), tokens * h / t
        norms = everywhere * 2 * (2 + 2)
        added = everywhere * 2 * (2 + 2 + 2 + mask)
        active = divided * 4 * hidden * (2 + 2)
        matrix = 0 if self.fused else s * tokens * self.heads / t * ((2 + 2) + mask * (2 + 2 + 1))
        back = everywhere * 2 * ((2 + 2 + 2) + (2 + 2) + 2 + mask * (2 + 1 + 2))  # norm, sum, bias, dropout
        back += divided * (4 * hidden * ((2 + 2 + 2) + 2) + 3 * 2)  # GELU and bias; bias of query, key, value
        matrix_back = 0 if self.fused else s * tokens * self.heads / t * ((2 + 2 + 2) + mask * (2 + 1 + 2))
        seconds = machine.memory_seconds
        tensor, experts = self._messages(arrangement, machine, tokens)

        def products(of: Sequence[Product], kind: str) -> float:
            return sum(getattr(each, kind)(machine) for each in of)

        forward = Seconds(
            products([*layers, *core], "forward"), seconds(norms + added + active + matrix), tensor, experts
        )
        again = {
            "none": Seconds(),
            "full": forward,
            "selective": Seconds(products(core, "forward"), seconds(matrix)),
        }[arrangement.recompute]
        if self.fused and arrangement.recompute != "full":  # its backward computes the scores again
            again = Seconds(core[0].forward(machine))
        inputs = products([*layers, *core], "input") + products(core, "weight")  # both factors are activations
        gathered = 0.5 * tensor * self._gathers(arrangement)
        backward = Seconds(inputs, seconds(back + matrix_back), tensor + gathered, experts)
        added_apart = self.adds_apart * seconds((2 + 2 + 2) * sum(each.k * each.n * each.times for each in layers))
        return Passes(forward, again, backward, Seconds(products(layers, "weight"), added_apart))

    def head(self, arrangement: Arrangement, machine: Machine) -> Passes:
        """The passes of a micro-batch through the last norm, the head and the loss."""
        h, t, tokens = self.width, arrangement.tp, arrangement.micro_batch * self.context
        logits = Product(tokens, h, self.vocabulary / t)
        loss = machine.memory_seconds(tokens * self.vocabulary / t * (2 + 4))  # read in 16 bits, written in 32
        tensor, _ = self._messages(arrangement, machine, tokens)
        return Passes(
            Seconds(logits.forward(machine), loss, tensor / 2),
            Seconds(),
            Seconds(logits.input(machine), loss, tensor / 2),
            Seconds(logits.weight(machine)),
        )

    @staticmethod
    def _gathers(arrangement: Arrangement) -> bool:
        """Whether a block keeps slices of the positions alone, and gathers them again for the weights' gradients."""
        return arrangement.sequence and arrangement.recompute != "none"

    def _messages(self, arrangement: Arrangement, machine: Machine, tokens: int) -> tuple[float, float]:
        """Seconds of the messages of one pass through a block: two all-reduces; tokens to experts, and back."""
        nbytes, t = NUMBER * tokens * self.width, arrangement.tp
        tensor = 2 * formulas.ring(t, nbytes, *machine.link(arrangement.stride["tp"], t), gamma=0.0, itemsize=1)
        if arrangement.ep == 1:
            return tensor, 0.0
        link = machine.exchange(arrangement.stride["dp"], arrangement.ep)
        return tensor, 2 * formulas.all_to_all(arrangement.ep, self.top * nbytes // t, *link, itemsize=1)

    def traffic(self, arrangement: Arrangement) -> dict[str, float]:
        """Bytes that a rank of the middle sends of one micro-batch, along "tp" and "ep"."""
        t, ep = arrangement.tp, arrangement.ep
        nbytes = NUMBER * arrangement.micro_batch * self.context * self.width
        layers = self.layers / arrangement.pp
        times = layers * (3 if arrangement.recompute == "full" else 2)
        return {
            "tp": (times + 0.5 * layers * self._gathers(arrangement)) * 2 * 2 * nbytes * (t - 1) / t,
            "ep": times * 2 * self.top * nbytes / t * (ep - 1) / ep,
        }

    def message(self, arrangement: Arrangement) -> float:
        """Bytes between two stages, of all shards together."""
        return NUMBER * arrangement.micro_batch * self.context * self.width

    def tied(self, arrangement: Arrangement) -> float:
        """Bytes of the gradient of the embedding, whose weights are the head's."""
        return NUMBER * self.vocabulary * self.width / arrangement.tp

    # ---- memory ----

    def stages(self, arrangement: Arrangement) -> list[StageMemory]:
        """What a rank of each stage of the pipeline needs: the first has the embedding, the last the head."""
        t, pp = arrangement.tp, arrangement.pp
        layers, nbytes = self.layers // pp, self.message(arrangement)
        kept, core = self.activations(arrangement), self._core(arrangement)
        position = nbytes / (t if arrangement.sequence else 1)
        again = {"none": 0.0, "selective": core}.get(arrangement.recompute)
        if again is None:
            again = self.activations(arrangement, is_whole=True)
        whole = 5 * self.width  # norms, and the bias that is added to a sum over the shards
        dense, expert = whole + (self._attention - whole) / t, self.width + (self._expert - self.width) / t
        dense, experts = (dense, self.experts / arrangement.ep * expert) if self.experts > 1 else (dense + expert, 0.0)
        table, positions = self.vocabulary * self.width / t, self.context * self.width
        logits = self.message(arrangement) / self.width * self.vocabulary / t
        loss = logits * (1 if t == 1 else 2)  # of a sharded vocabulary, in 32 bits

        def stage(tables: float, more: float, once: float) -> StageMemory:
            unit = max(dense + experts, tables)
            return StageMemory(layers * dense + tables, layers * experts, unit, layers * kept + more, again + once)

        first, head, norm = nbytes if t > 1 else 0.0, 2 * position + loss, 2 * self.width
        if pp == 1:
            return [stage(table + positions + norm, first, head)]
        received = 0.0 if arrangement.recompute == "full" else position  # else the first block keeps it
        others = [stage(0.0, received, 0.0)] * (pp - 2)
        return [stage(table + positions, first, 0.0), *others, stage(table + norm, received, head)]

    def activations(self, arrangement: Arrangement, *, is_whole: bool = False) -> float:
        """Bytes that a block keeps of a micro-batch; is_whole: with what is recomputed.

        s b h (10 + 24 / t + 5 a s / (h t)) with dropout and matrices of context x context; Korthikanti et al.
        (arXiv:2205.05198), section 4, whose sequence parallelism divides all of it.
        """
        t, nbytes = arrangement.tp, self.message(arrangement)
        divided = t if arrangement.sequence else 1
        if arrangement.recompute == "full" and not is_whole:
            return nbytes / divided
        whole = nbytes * (4 + int(self.dropout) + 8 / self.width) / divided  # with two numbers of each norm, 32 bits
        if arrangement.sequence and not self._gathers(arrangement):
            whole += 2 * nbytes * (1 - 1 / t)  # the gathered inputs of both sharded layers
        core = 0.0 if arrangement.recompute == "selective" and not is_whole else self._core(arrangement)
        return whole + nbytes * 12 / t * (1 + (self.top - 1) * 8 / 12) + core

    def _core(self, arrangement: Arrangement) -> float:
        """Bytes that attention keeps of a micro-batch: its softmax, and with dropout the mask and the product."""
        positions = arrangement.micro_batch * self.context * self.heads / arrangement.tp
        return positions * (4 if self.fused else self.context * (2 + 3 * int(self.dropout)))
