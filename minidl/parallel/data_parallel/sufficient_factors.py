"""Sufficient factors: a linear layer's gradient is a sum of outer products, whose vectors are sent instead."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from minidl import functional as F
from minidl import kernels, nn
from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.data.pairs import minibatch
from minidl.grad_mode import no_grad
from minidl.kernels import Array
from minidl.parallel.gradients.buckets import GradientBuckets
from minidl.parallel.job import Job
from minidl.parallel.run.session import Session
from minidl.parallel.strategy import Strategy
from minidl.tensor import Tensor, record


@dataclass(frozen=True)
class SufficientFactors(Strategy):
    """Synchronous SGD in which nodes send, for each linear layer, the two factors of its gradient.

        for each minibatch, on every node:
            forward and backward; for each linear layer and sample keep the input v and the output's gradient u
            send the pairs (u, v) to all other nodes
            gradient of the layer's weights = the sum of u v^T over the samples of all nodes
            all-reduce the other gradients, and update the weights: the same on every node

    Parameters
        hybrid     True: for each layer choose what sends less at the job's first batch size: factors if a minibatch of
                   all nodes has fewer than 2 M N / (M + N) samples. False: factors for all layers
        algorithm  all-reduce of the other gradients, as in `comm.all_reduce`; "ordered" gives the same bits on all
                   engines

    Equal to Synchronous up to rounding.

    Notes
        A gradient of M x N numbers is the sum of u v^T over K samples; for few samples and wide layers, K (M + N)
        numbers are fewer. All nodes get all pairs: each of P nodes with K samples sends K (P - 1) (M + N) numbers per
        layer, which grows with P. A ring all-reduce sends 2 (P - 1) / P M N, which hardly does.
        If a layer's input has more axes, as in a transformer, every position counts as a sample.
        A weight that two modules share, or that does not belong to an `nn.Linear`, is all-reduced.

    References
        Xie et al., Distributed machine learning via sufficient factor broadcasting (arXiv:1511.08486); the choice for
        each layer: Zhang et al., Poseidon (USENIX ATC 2017).
    """

    hybrid: bool = False
    algorithm: AllReduceAlgorithm = "auto"
    broadcasts_weights: ClassVar[bool] = True
    scales_loss: ClassVar[bool] = True
    is_resumable: ClassVar[bool] = True
    resumes_from: ClassVar[str] = "step"

    def __post_init__(self) -> None:
        self.check_algorithm()

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        if not factored_layers(job.build_model()):
            raise ValueError(
                "SufficientFactors needs a model with an nn.Linear whose weight is trained and not shared, this one "
                "has none: use Synchronous()"
            )

    def run(self, session: Session) -> None:
        for parameter in session.parameters:
            parameter.copy_(session.comm.broadcast(parameter.numpy()))
        gradients = FactoredGradients(session, factor(session, self.hybrid), self.algorithm)
        for batch in session.batches():
            session.zero_grad()
            if len(batch.x):  # in the ragged last minibatch a share may be empty
                session.loss(batch).backward()
            gradients.finish()
            session.update()


class FactoredGradients:
    """Sums gradients over the ranks: those of the layers' weights by factors, the others by an all-reduce."""

    def __init__(self, session: Session, layers: list[FactoredLinear], algorithm: AllReduceAlgorithm) -> None:
        self.comm, self.layers = session.comm, layers
        weights = {layer.weight for layer in layers}
        others = [parameter for parameter in session.parameters if parameter not in weights]
        self.others = GradientBuckets(others, session.comm, 1.0, algorithm, overlap=False)

    def finish(self) -> None:
        """After backward: give every parameter its gradient, with the same bits on every rank."""
        gathers = [self.comm.all_gather(layer.factors(), async_op=True, label="factors") for layer in self.layers]
        self.others.finish()
        for layer, gather in zip(self.layers, gathers, strict=True):
            layer.rebuild(np.concatenate(gather.wait()))


class FactoredLinear(nn.Linear):
    """A linear layer that keeps the factors of its weight's gradient: each row v of its input, and the gradient u of
    that row of its output.

    Parameters
        layer  the linear layer whose weight and bias it takes over
    """

    def __init__(self, layer: nn.Linear) -> None:
        vars(self).update(vars(layer))  # the same parameters
        self.pairs: list[Array] = []  # rows of u followed by v, from every backward since the last `factors`
        self.rows = 0  # of all inputs so far
        # A first layer without bias has nothing else that needs a gradient; without the leaf, backward would skip it
        self.leaf = Tensor(np.zeros((), layer.weight.dtype), requires_grad=True)

    def forward(self, x: Any) -> Tensor:
        """The layer's output; backward keeps u and v and computes no gradient of the weights."""
        x = x if isinstance(x, Tensor) else Tensor(x)
        self.rows += prod(x.shape[:-1])
        out = F.linear(x, self.weight.detach(), self.bias)

        def vjp(g: Array, needs: Any) -> tuple[Array, Array]:
            u = kernels.to_numpy(g).reshape(-1, self.out_features)
            self.pairs.append(np.hstack([u, kernels.to_numpy(x.data).reshape(-1, self.in_features)]))
            return g, kernels.array_module(g).zeros((), g.dtype)

        return record(out.data, (out, self.leaf), vjp, view_of=out)

    def sends_less(self, rows: int) -> bool:
        """Whether the factors of `rows` rows are smaller than two copies of the gradient, as a ring sends."""
        return rows * (self.in_features + self.out_features) < 2 * self.in_features * self.out_features

    def factors(self) -> Array:
        """This rank's pairs, one per row; none if it had no samples or did not use the layer."""
        pairs, self.pairs = self.pairs, []
        return np.concatenate([np.empty((0, self.out_features + self.in_features), self.weight.dtype), *pairs])

    def rebuild(self, pairs: Array) -> None:
        """Set the gradient of the weights from all ranks' pairs; without pairs there is none, as on one node."""
        weight, m = self.weight, self.out_features
        if weight.grad is not None:
            raise ValueError(
                f"SufficientFactors: the model uses the weight of a Linear layer ({self.extra_repr()}) outside of "
                "it, where no factors can be taken: use Synchronous()"
            )
        if len(pairs):
            u, v = map(kernels.array_module(weight.data).asarray, (pairs[:, :m], pairs[:, m:]))
            weight.grad = kernels.current().matmul(u.T, v)


def factored_layers(model: nn.Module) -> list[nn.Linear]:
    """The linear layers whose weight is trained and belongs to no other module."""
    owners = [value for module in model.modules() for value in vars(module).values() if isinstance(value, nn.Parameter)]
    return [
        layer
        for layer in model.modules()
        if type(layer) is nn.Linear
        and layer.weight.requires_grad
        and sum(owner is layer.weight for owner in owners) == 1
    ]


def factor(session: Session, hybrid: bool) -> list[FactoredLinear]:
    """Replace linear layers of the model by factored ones, with `hybrid` those that send less; return the new ones."""
    linears = factored_layers(session.model)
    factored: dict[nn.Module, FactoredLinear] = {linear: FactoredLinear(linear) for linear in linears}
    session.model = nn.replace_layers(session.model, lambda name, module: factored.get(module))
    layers = list(factored.values())
    if not hybrid:
        return layers
    session.model.eval()
    with no_grad():
        session.model(minibatch(session.train, np.arange(1))[0])  # each layer counts the rows of its input
    samples = min(session.job.batch_size_of(0), len(session.train))
    plain: dict[nn.Module, nn.Module] = {
        layer: linear for linear, layer in factored.items() if not layer.sends_less(samples * layer.rows)
    }
    session.model = nn.replace_layers(session.model, lambda name, module: plain.get(module))
    return [layer for layer in layers if layer not in plain]
