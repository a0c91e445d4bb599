"""Local SGD and its variants: every node trains its own model for some steps, then the models are averaged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from minidl import optim
from minidl.arguments import real_number
from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.nn import Parameter
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.run.session import Session
from minidl.parallel.strategy import Strategy


@dataclass(frozen=True)
class LocalSGD(Strategy):
    """SGD on p nodes that average their models after every H steps, rather than their gradients after every step.

        give every node the same weights
        for each minibatch, on every node:
            gradient of the mean loss over this node's share
            update this node's own weights
            after every H-th step, and after the last: replace the weights by their mean over all nodes (all-reduce)

    Parameters
        period      H, local steps per round; T steps make ceil(T/H) rounds; default 8
        algorithm   algorithm of the all-reduce, as in `comm.all_reduce`

    Variants are subclasses: `PostLocalSGD`, `SlowMo`, `DiLoCo`. They override `is_round_over` or `after_mean`.
    Limits, for H = 1 and SGD without momentum: Synchronous.

    Notes
        batch_size is global. The mean weights each node by the number of samples it has seen since the last mean.
        State of the optimizer, such as momentum, stays on its node. Batch-norm running statistics are averaged with the
        weights.
        The model that is evaluated when an epoch ends between two rounds is the plain mean of the nodes' models.
        `report.recorded["rounds"]` has the steps after which a round ended.

    References
        Stich, Local SGD Converges Fast and Communicates Little (arXiv:1805.09767), algorithm 1.
    """

    period: int = 8
    algorithm: AllReduceAlgorithm = "auto"
    resumes_from: ClassVar[str] = "mean"

    def __post_init__(self) -> None:
        self.check_whole(period=1)
        self.check_algorithm()

    def is_round_over(self, session: Session, steps: int) -> bool:
        """Whether the round ends after this number of steps; the last step of a run always ends one."""
        return steps == self.period

    def after_mean(self, session: Session) -> Callable[[], None]:
        """Called once, before the first round; returns what is called after each mean: here nothing."""
        return lambda: None

    def run(self, session: Session) -> None:
        steps, last = 0, session.job.steps_after(session.samples_of_run, len(session.train))
        mine = whole = 0.0  # weight in the losses since the last round: of this node, of all nodes
        after_mean = self.after_mean(session)
        for batch in session.local_batches():
            session.zero_grad()
            if len(batch.x):  # in the ragged last minibatch a share may be empty
                session.local_loss(batch).backward()
            session.update()
            steps, mine, whole = steps + 1, mine + batch.counted, whole + batch.counted_of_all
            if self.is_round_over(session, steps) or session.steps == last:
                self._average(session, mine / whole if whole else 1 / session.nodes)
                after_mean()
                steps, mine, whole = 0, 0.0, 0.0

    def _average(self, session: Session, weight: float) -> None:
        """Replace the model by the mean of all nodes' models, in which `weight` is this node's weight."""
        session.comm.mark("average")
        buffers = [buffer for buffer in session.model.buffers() if is_floating_point(buffer.dtype)]
        tensors = [parameter for parameter in session.parameters if parameter.requires_grad] + buffers
        mean = session.comm.all_reduce(vector.weights(tensors) * weight, algorithm=self.algorithm)
        vector.set_weights(tensors, mean)
        session.record("rounds", session.steps)
        session.comm.mark("data")


@dataclass(frozen=True)
class PostLocalSGD(LocalSGD):
    """Local SGD that begins with rounds of one step, for the first epochs, in which models change fastest.

    Parameters
        period, algorithm  as for LocalSGD
        post_local_after   number of initial epochs with H = 1; default 1

    References
        Lin, Stich, Patel and Jaggi, Don't Use Large Mini-Batches, Use Local SGD (arXiv:1808.07217), section 3.
    """

    post_local_after: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_whole(post_local_after=0)

    def is_round_over(self, session: Session, steps: int) -> bool:
        return session.epoch < self.post_local_after or super().is_round_over(session, steps)


@dataclass(frozen=True)
class SlowMo(LocalSGD):
    """Local SGD with an outer step of SGD with momentum: each change of the mean model is used as a gradient.

        x0   = weights at the start of the round, the same on all nodes
        mean = mean of the nodes' weights at its end
        u    = outer_momentum u + (x0 - mean) / gamma
        x    = x0 - outer_lr gamma u

    gamma is the mean of the learning rates of the round's local steps, for each group of parameters.

    Parameters
        period, algorithm  as for LocalSGD
        outer_lr           learning rate of the outer step, alpha; default 1
        outer_momentum     beta, at least 0 and below 1; default 0.5; 0 with outer_lr=1: local SGD

    Limits, for H = 1 and inner SGD without momentum at rate lr: Synchronous with SGD(lr=outer_lr lr,
    momentum=outer_momentum, momentum_form="u").

    Notes
        The outer step does not change batch norm's running statistics. The schedule sets the inner rate, step by step;
        the outer rate is constant. Memory: x0 and u, two arrays for each parameter.
        The tests run outer_lr=1 with outer_momentum from 0.4 to 0.8. The weights stay bounded on a quadratic wherever
        the inner steps of a round bring every direction closer to the optimum without overshooting it.

    References
        Wang, Tantia, Ballas and Rabbat, SlowMo (arXiv:1910.00643), algorithm 1.
    """

    outer_lr: float = 1.0
    outer_momentum: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        real_number("SlowMo: outer_lr", self.outer_lr, above=0)
        real_number("SlowMo: outer_momentum", self.outer_momentum, at_least=0, below=1)

    def after_mean(self, session: Session) -> Callable[[], None]:
        return OuterStep(session.optimizer, self.outer_lr, self.outer_momentum, by_rate=True).make


@dataclass(frozen=True)
class DiLoCo(LocalSGD):
    """Local SGD with an outer step of SGD with Nesterov's momentum, made for language models on machines far apart.

        x0   = weights at the start of the round, the same on all nodes
        mean = mean of the nodes' weights at its end
        u    = outer_momentum u + (x0 - mean)
        x    = x0 - outer_lr (outer_momentum u + (x0 - mean))

    Parameters
        period, algorithm  as for LocalSGD
        outer_lr           learning rate of the outer step; default 0.7
        outer_momentum     momentum of the outer step, above 0 and below 1; default 0.9

    Limits, for H = 1 and inner SGD without momentum at rate lr: Synchronous with SGD(lr=outer_lr lr,
    momentum=outer_momentum, nesterov=True, momentum_form="v").

    Notes
        As for SlowMo, but a change of the inner rate leaves the momentum of earlier rounds unchanged.

    References
        Douillard et al., DiLoCo (arXiv:2311.08105), algorithm 1.
    """

    outer_lr: float = 0.7
    outer_momentum: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        real_number("DiLoCo: outer_lr", self.outer_lr, above=0)
        real_number("DiLoCo: outer_momentum", self.outer_momentum, above=0, below=1)

    def after_mean(self, session: Session) -> Callable[[], None]:
        return OuterStep(session.optimizer, self.outer_lr, self.outer_momentum, nesterov=True).make


class OuterStep:
    """The outer step of SlowMo and DiLoCo, by `optim.SGD`; every node makes it, with the same bits.

    Parameters
        inner      the optimizer of the local steps; its parameters are those of the outer step, group by group
        lr         learning rate of the outer step
        momentum   momentum of the outer step, at least 0 and below 1
        nesterov   True: Nesterov's form of this momentum
        by_rate    True: divide the change of the mean by the round's mean inner rate, and multiply the outer rate by it
    """

    def __init__(
        self, inner: optim.Optimizer, lr: float, momentum: float, nesterov: bool = False, by_rate: bool = False
    ) -> None:
        self.groups, self.lr, self.by_rate = inner.param_groups, lr, by_rate
        starts = [[Parameter(parameter.data.copy()) for parameter in group["params"]] for group in self.groups]
        self._outer = optim.SGD([{"params": each} for each in starts], lr, momentum, nesterov=nesterov)
        self._rates: list[list[float]] = [[] for _ in self.groups]  # of the round's local steps
        if by_rate:
            inner.after_step.append(self._note_rates)

    def make(self) -> None:
        """Make the outer step: the parameters hold the nodes' mean before it, and the new weights after it."""
        for group, outer, rates in zip(self.groups, self._outer.param_groups, self._rates, strict=True):
            gamma = sum(rates) / len(rates) if self.by_rate else 1.0
            rates.clear()
            outer["lr"] = self.lr * gamma
            for parameter, start in zip(group["params"], outer["params"], strict=True):
                moved = start.data - parameter.data
                start.grad = moved / gamma if gamma else moved * 0
        self._outer.step()
        for group, outer in zip(self.groups, self._outer.param_groups, strict=True):
            for parameter, start in zip(group["params"], outer["params"], strict=True):
                parameter.copy_(start.numpy())

    def _note_rates(self) -> None:
        for group, rates in zip(self.groups, self._rates, strict=True):
            rates.append(group["lr"])
