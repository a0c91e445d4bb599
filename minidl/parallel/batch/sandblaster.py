"""Sandblaster: L-BFGS on the whole training set, in tiny tasks, with weights that stay on servers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from minidl.arguments import flag
from minidl.cluster.collectives.partition import split
from minidl.kernels import Array
from minidl.nn.experts import MixtureOfExperts
from minidl.parallel.batch.lbfgs import LBFGS
from minidl.parallel.batch.tasks import Coordinator, work
from minidl.parallel.job import Job
from minidl.parallel.run.divergence import NonFiniteLoss
from minidl.parallel.run.session import Session
from minidl.parallel.servers.store import Store
from minidl.parallel.strategy import Strategy


@dataclass(frozen=True)
class SandblasterLBFGS(Strategy):
    """L-BFGS by the mean loss over the whole training set: each evaluation is shared by all nodes, in small portions.

        coordinator, a server:
            for each evaluation: hand out the portions of the training set to workers as they become free;
                once all are handed out, the unfinished ones a second time
            direction, line search and update, by commands to the shards: dot, axpy, scale, copy
        worker:
            for each portion: at an evaluation's first, fetch the weights
                push the gradient to the shards; tell the coordinator the loss
        shard, a server: holds its slice of the weights, of the gradients and of the history; adds each portion's
            gradient, in the order of the portions, once

    Parameters
        shards     number of servers that hold the vectors, default 1; the coordinator is one server more
        backups    True: default; unfinished portions are handed out a second time
                   False: the evaluation waits for the slowest worker's last portion
        history    number of last steps from which the inverse of the Hessian is approximated, default 10; each costs
                   the shards two vectors

    Between coordinator and shards only scalars travel. `report.recorded` has, on the coordinator, the "loss" and the
    "length" of every step.
    Limits: one node and one shard is `LBFGS` on the weights; other numbers change only how sums over the shards are
    rounded. Backups, speeds and failures of workers change no bit.

    Notes
        batch_size is the size of a portion. An epoch is one evaluation of loss and gradient, so the run ends after
        `epochs` evaluations, or earlier at a minimum; the weights of an epoch are those accepted by then.
        A loss that is not finite makes the step too long; at the first evaluation it ends the run.
        The job's optimizer and schedule are not used: the line search finds the length of each step.
        Portions are the same in every epoch, with the same dropout masks, since L-BFGS needs one function.
        A shard keeps portions' gradients that are early. The paper's workers send sums over several portions.
        A worker that fails is done without (`on_failure="continue"`); coordinator and shards are needed.

    References
        Dean et al., Large scale distributed deep networks (NIPS 2012), section 4.2 and the appendix.
    """

    shards: int = 1
    backups: bool = True
    history: int = 10
    is_asynchronous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.check_whole(shards=1, history=1)
        object.__setattr__(self, "backups", flag("SandblasterLBFGS: backups", self.backups))
        object.__setattr__(self, "servers", self.shards + 1)

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        model = job.build_model()
        if any(True for _ in model.buffers()):
            raise ValueError(
                "SandblasterLBFGS: running statistics, as of batch norm, would depend on which worker computes which "
                "portion: use a model without, such as one with nn.LayerNorm"
            )
        adds_losses = any(isinstance(layer, MixtureOfExperts) for layer in model.modules())
        if job.clip_norm is not None or job.batch_schedule is not None or adds_losses:
            raise ValueError(
                "SandblasterLBFGS needs one function and its gradient: leave out clip_norm, batch_schedule and layers "
                "that add losses of their own, such as nn.MixtureOfExperts"
            )
        if any(group.get("weight_decay") for group in job.build_optimizer(model).param_groups):
            raise ValueError("SandblasterLBFGS minimises the loss alone: use an optimizer with weight_decay=0")

    def run(self, session: Session) -> None:
        portions, fetched = self._portions(session), -1

        def compute(task: int) -> tuple[float | NonFiniteLoss, float]:
            nonlocal fetched
            epoch, number = divmod(task, portions)
            if epoch != fetched:
                session.set_weights(store.get("trial"))
                fetched = epoch
            batch = session.assigned_batch(epoch, number)
            session.zero_grad()
            result: float | NonFiniteLoss
            try:
                (loss := session.local_loss(batch)).backward()
                result = loss.item() * batch.counted
            except NonFiniteLoss as error:  # the coordinator knows whether the step is too long
                result = error
            store.add("trial g", session.gradient() * batch.counted, turn=task)
            return result, batch.counted

        with Store(session.comm, self.shards) as store:
            work(session.comm, session.nodes, compute)

    def serve(self, session: Session) -> None:
        if session.server:
            self._serve_shard(session)
            return
        coordinator = Coordinator(session.comm, range(session.nodes), self.backups)
        portions, evaluations, steps = self._portions(session), 0, 0

        def note() -> None:
            store.note(evaluations * len(session.train), steps, lbfgs.length)

        def evaluate() -> float:
            nonlocal evaluations
            note()
            store.copy("zeros", "trial g")  # a product with 0.0 would leave what is not finite
            results = coordinator.run(range(evaluations * portions, (evaluations + 1) * portions))
            errors = [loss for loss, _ in results if isinstance(loss, NonFiniteLoss)]
            if errors and not evaluations:
                raise errors[0]
            loss = math.nan if errors else sum(loss for loss, _ in results)
            counted = sum(counted for _, counted in results)
            session.count_epoch(loss, counted)
            store.scale(1 / (counted or 1.0), "trial g")
            evaluations += 1
            return loss / (counted or 1.0)

        with Store(session.comm, self.shards) as store:
            lbfgs = LBFGS(store, evaluate, self.history)
            while evaluations < session.job.epochs and lbfgs.step(session.job.epochs - evaluations):
                steps += 1
                session.record("loss", lbfgs.loss)
                session.record("length", lbfgs.length)
            evaluations = session.job.epochs  # a run that ends at a minimum stays there
            coordinator.close()
            note()

    def _serve_shard(self, session: Session) -> None:
        weights = session.weights()
        weights = weights.astype(np.result_type(weights, np.float32), copy=False)
        slices = split(range(len(weights)), self.shards)
        mine = slices[session.server - 1]
        session.hold(mine.start, mine.stop)

        def noted(vectors: Mapping[str, Array], samples: int, steps: int, length: float) -> None:
            session.set_weights(vectors["w"])
            session.steps = steps
            session.optimizer.param_groups[0]["lr"] = length
            session.processed(samples, session.weights, mine.start)

        Store(session.comm, self.shards).serve({"w": weights, "zeros": np.zeros_like(weights)}, noted)

    @staticmethod
    def _portions(session: Session) -> int:
        return math.ceil(len(session.train) / session.job.batch_size)
