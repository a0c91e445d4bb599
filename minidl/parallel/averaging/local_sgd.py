"""Local SGD: in each round, every node trains its own model for some steps; then the models are averaged."""

from __future__ import annotations

from dataclasses import dataclass

from minidl.arguments import flag, one_of, real_number, whole_number
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.parallel.averaging.outer_momentum import OUTER_FORMS, OuterMomentum
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
            with outer momentum: step from the weights before the round, with the change of the mean as gradient

    Parameters
        period            H, local steps per round; T steps make ceil(T/H) rounds; default 8
        post_local_after  number of initial epochs with H = 1 and no outer step (post-local SGD); default 0
        algorithm         algorithm of the all-reduce, as in `comm.all_reduce`
        outer_lr          learning rate of the outer step, alpha; default 1
        outer_momentum    beta, at least 0 and below 1; default 0: with outer_lr=1, the plain mean
        outer_nesterov    Nesterov's momentum in the outer step; default False
        outer_form        "u"   default: the change of the mean is divided by the inner rate (SlowMo)
                          "v"   the change of the mean is used directly (DiLoCo)
                          Both are the same while the inner rate is constant; see `outer_momentum.py`

    Limits, for H = 1 and inner SGD without momentum at rate lr: Synchronous with SGD; with outer momentum, Synchronous
    with SGD(lr=outer_lr lr, momentum=outer_momentum, nesterov=outer_nesterov), momentum_form="u" or "v" as outer_form.

    Notes
        batch_size is global. The mean weights each node by the number of samples it has seen since the last mean.
        State of the inner optimizer, such as momentum, stays on its node. Batch-norm running statistics are averaged
        with the weights; the outer step does not change them.
        The schedule sets the inner rate, step by step; the outer rate is constant.
        The model that is evaluated when an epoch ends between two rounds is the plain mean of the nodes' models.
        `report.recorded["rounds"]` has the steps after which a round ended.
        Settings that the tests run: SlowMo with outer_lr=1 and outer_momentum from 0.4 to 0.8; DiLoCo with
        outer_lr=0.7, outer_momentum=0.9, outer_nesterov=True, outer_form="v". Both stay bounded on a quadratic wherever
        the inner steps of a round bring every direction closer to the optimum without overshooting it.

    References
        Stich, Local SGD Converges Fast and Communicates Little (arXiv:1805.09767), algorithm 1; post-local: Lin et al.,
        Don't Use Large Mini-Batches, Use Local SGD (arXiv:1808.07217); outer momentum: Wang, Tantia, Ballas and Rabbat,
        SlowMo (arXiv:1910.00643), algorithm 1; Douillard et al., DiLoCo (arXiv:2311.08105), algorithm 1.
    """

    period: int = 8
    post_local_after: int = 0
    algorithm: str = "auto"
    outer_lr: float = 1.0
    outer_momentum: float = 0.0
    outer_nesterov: bool = False
    outer_form: str = "u"

    def __post_init__(self) -> None:
        for name, at_least in {"period": 1, "post_local_after": 0}.items():
            object.__setattr__(self, name, whole_number(f"LocalSGD: {name}", getattr(self, name), at_least))
        real_number("LocalSGD: outer_lr", self.outer_lr, above=0)
        real_number("LocalSGD: outer_momentum", self.outer_momentum, at_least=0, below=1)
        flag("LocalSGD: outer_nesterov", self.outer_nesterov)
        one_of("LocalSGD: outer_form", self.outer_form, OUTER_FORMS, hint="'u' is SlowMo's, 'v' DiLoCo's")
        self.check_algorithm()
        if self.outer_nesterov and not self.outer_momentum:
            raise ValueError("LocalSGD: outer_nesterov needs an outer_momentum above 0")

    @property
    def goes_on_from(self) -> str:
        return "mean"

    def run(self, session: Session) -> None:
        steps, last = 0, session.job.steps_after(session.total_samples, len(session.train))
        mine = whole = 0.0  # weight in the losses since the last round: of this node, of all nodes
        outer = self._outer(session)
        for batch in session.parts():
            is_local = session.epoch >= self.post_local_after
            if outer is not None and steps == 0:
                outer.begin_round()
            session.zero_grad()
            if len(batch.x):  # in the ragged last minibatch a share may be empty
                session.local_loss(batch).backward()
            if outer is not None:
                outer.begin_local_step()
            session.update()
            steps, mine, whole = steps + 1, mine + batch.counted, whole + batch.counted_of_all
            if steps >= (self.period if is_local else 1) or session.steps == last:
                self._average(session, mine / whole if whole else 1 / session.nodes)
                if outer is not None and is_local:
                    outer.step()
                steps, mine, whole = 0, 0.0, 0.0

    def _outer(self, session: Session) -> OuterMomentum | None:
        """The outer step; None if the plain mean is used."""
        if self.outer_lr == 1 and self.outer_momentum == 0:
            return None
        groups = session.optimizer.param_groups
        return OuterMomentum(groups, self.outer_lr, self.outer_momentum, self.outer_nesterov, self.outer_form)

    def _average(self, session: Session, weight: float) -> None:
        """Replace the model by the mean of all nodes' models, in which `weight` is this node's weight."""
        session.comm.mark("average")
        buffers = [buffer for buffer in session.model.buffers() if is_floating_point(buffer.dtype)]
        tensors = [parameter for parameter in session.parameters if parameter.requires_grad] + buffers
        mean = session.comm.all_reduce(vector.weights(tensors) * weight, algorithm=self.algorithm)
        vector.set_weights(tensors, mean)
        session.record("rounds", session.steps)
        session.comm.mark("data")
