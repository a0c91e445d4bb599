"""train: run a job by a strategy on an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from minidl import cluster
from minidl.arguments import whole_number
from minidl.cluster.comm import Communicator
from minidl.cluster.cost.network import Network
from minidl.cluster.engines.protocol import Engine
from minidl.cluster.faults import FaultPlan
from minidl.cluster.run import Run
from minidl.nn import Module
from minidl.parallel.data_parallel.serial import Serial
from minidl.parallel.job import Job, built_once
from minidl.parallel.launches import Launched, check_elastic, launch_to_the_end
from minidl.parallel.plan import ParallelPlan
from minidl.parallel.run.checkpoint import Checkpoint
from minidl.parallel.run.divergence import NonFiniteLoss
from minidl.parallel.run.elastic_restart import Elastic, Leg
from minidl.parallel.run.history import HistoryRow, Progress
from minidl.parallel.run.rank_record import RankRecord
from minidl.parallel.run.report import Report
from minidl.parallel.run.run_files import RunFolder
from minidl.parallel.run.saving import Saving
from minidl.parallel.run.session import Session
from minidl.parallel.run.snapshots import evaluated
from minidl.parallel.strategy import Strategy, check_strategy

_T = TypeVar("_T")


def train(
    job: Job,
    strategy: Strategy | None = None,
    nodes: int = 1,
    on: str | Engine = "processes",
    network: str | Network | None = None,
    folder: str | Path | None = None,
    resume: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    config: dict[str, Any] | None = None,
    timeout: float = 60.0,
    deadline: float | None = None,
    on_failure: str = "raise",
    faults: FaultPlan | None = None,
    elastic: bool | Elastic = False,
    saving: Saving | None = None,
) -> Report:
    """Train `job` by `strategy` on `nodes` nodes and return the Report.

    Parameters
        job         what to train
        strategy    how to train it; None: `Serial()`
        nodes       ranks that train, those of the strategy's plan; a strategy's servers are additional ranks
        on          engine, as in `cluster.launch`: "processes", "simulation", "mpi" or an object
        network     cost of messages, as in `cluster.launch`
        folder      where checkpoint, config.json and metrics.csv are written; None: nowhere. A run that is stopped
                    leaves config.json (`config`, seed, versions, commit) and the rows of its epochs. Serial,
                    Synchronous, Sharded, SufficientFactors, Pipeline and Hybrid write the checkpoint at the start and
                    after every epoch, the others at the end. In a script under mpiexec rank 0 reads and writes
        resume      checkpoint to go on from, to the same bits as a run that was never stopped; None: from the start.
                    See the notes for another number of nodes
        progress    called in the caller's process, up to ten times in a real second and after every epoch
        config      kept in the checkpoint for the caller; JSON
        timeout     seconds that a rank may wait in one operation
        deadline    real seconds after which the run ends with a `CommTimeout`, as in `cluster.launch`, even where a
                    layer loops for ever, which no timeout sees; an elastic run has as many after each restart. None: no
                    limit
        on_failure  "raise" or "continue", as in `cluster.launch`
        faults      planned faults, as in `cluster.launch`
        elastic     True, or an `Elastic` with settings: when nodes die, the run goes on as `resumes_from` of the
                    strategy says (`run/elastic_restart.py`), and `report.restarts` lists it. A node dies if its process
                    ends without raising, as by SIGKILL or a planned `kill`; an exception, a loss that is not finite and
                    a node that hangs end the run. A fault plan counts the calls of each launch; nodes keep their faults
                    but not their numbers
        saving      `parallel.Saving(every=..., asynchronous=...)`: checkpoints within epochs, and while training goes
                    on; None: as `folder` says

    Notes
        A run can be resumed on another number of nodes, and by another strategy that can be resumed: weights, optimizer
        (with the learning rate and the other options of its groups, whatever the job's are), schedule and history are
        those of the checkpoint, to the bit. From there on the run has the numbers of one that always had that many
        nodes, within rounding, except where these depend on the number of nodes: dropout masks, which are drawn for
        each replica; batch norm that is not synchronised; and with shards="fixed" or "by_label" the samples of a
        minibatch.

    Raises
        ValueError       job, strategy and nodes do not fit
        CheckpointError  the checkpoint is missing, damaged or of another model
        NonFiniteLoss    the loss is infinite or nan
        OSError          the folder cannot be written
        cluster.DeviceError   a device of `cluster.Memory` has too few bytes, or there is no host to offload to
        ClusterError     a rank failed for another reason

    >>> from minidl import data, nn, optim, parallel
    >>> job = parallel.Job(
    ...     model=lambda: nn.models.MLP(2, 16, 3),
    ...     data=lambda: data.spirals(n=100),
    ...     optimizer=lambda parameters: optim.SGD(parameters, lr=0.1),
    ...     epochs=2,
    ... )
    >>> report = parallel.train(job, parallel.Synchronous(), nodes=2)
    >>> [row["epoch"] for row in report.history], len(set(report.digests))
    ([1, 2], 1)
    """
    strategy = Serial() if strategy is None else strategy
    check_strategy("strategy", strategy)
    nodes = whole_number("nodes", nodes, at_least=1)
    here = built_once(job)  # the ranks get the job itself
    here.check_labels()
    plan = plan_of(strategy, here, nodes)
    if getattr(on, "memory", None) is not None and not strategy.counts_device:
        raise ValueError(
            f"{type(strategy).__name__} does not count the bytes of a device: leave out the memory of the "
            "simulation, or train by Sharded(stage=1), which on one node does what Serial does"
        )
    timed = here if deadline is None else job  # what is built once cannot be copied to a rank
    _by_the_deadline(deadline, partial(strategy.check, timed, nodes))
    strategy = cluster.once(partial(_by_the_deadline, deadline, partial(strategy.prepared, job, nodes)), on)
    survival = check_elastic(strategy, plan, elastic, nodes, on_failure, on)
    _check_saving(saving, strategy, folder)
    checkpoint = None if resume is None else _resumed(resume, strategy, here, on)

    config, is_writer = config or {}, cluster.is_first(on)
    files = RunFolder(folder, is_writer)
    files.begin(config, job.seed, () if checkpoint is None else checkpoint.history)
    start = partial(
        cluster.launch,
        _node,
        on=on,
        network=network,
        timeout=timeout,
        deadline=deadline,
        on_failure="continue" if survival else on_failure,
        seed=job.seed,
        listener=None if progress is None and folder is None else partial(_listen, files, progress),
    )

    def launch(nodes: int, leg: Leg, faults: FaultPlan | None) -> Run:
        args = (job, strategy, nodes, files.path, config, leg, saving)
        return start(args, nodes=nodes + strategy.servers, faults=faults)

    first = Leg(checkpoint, is_elastic=survival is not None)
    with files, _errors_as_they_are():
        ended = launch_to_the_end(launch, here, strategy, nodes, first, faults, survival, files.path)
        final = _state_evaluated_in_run(ended)
    if final is None:
        readings = strategy.readings(ended.nodes)
        shares = ended.run.trace.shares(0)

        def tell(row: HistoryRow) -> None:
            if progress is not None:
                progress(Progress.of_row(row, job.epochs, shares))

        evaluation = partial(evaluated, timed, strategy.combine, ended.records, config, readings)
        final = _by_the_deadline(deadline, evaluation, tell)
        files.save(final)
    return Report(
        job, strategy, ended.nodes, final.history, ended.seconds, ended.run.trace, final, ended.run.results,
        ended.run.failures, ended.restarts, is_writer,
    )  # fmt: skip


def _listen(files: RunFolder, progress: Callable[[Progress], None] | None, rank: int, message: Progress) -> None:
    """Write the row at the end of an epoch, and pass the message on to the caller."""
    if message.row is not None:
        files.add(message.row)
    if progress is not None:
        progress(message)


@contextmanager
def _errors_as_they_are() -> Iterator[None]:
    """Raise errors of the job, the device or the disk as they are, not as the failure of a rank."""
    try:
        yield
    except cluster.ClusterError as error:
        if isinstance(error.cause, (NonFiniteLoss, OSError, cluster.DeviceError)):
            raise error.cause from error
        raise


def _by_the_deadline(
    deadline: float | None, function: Callable[..., _T], *listener: Callable[[HistoryRow], None]
) -> _T:
    """What the function returns, which may run the model in this process; a layer may loop for ever in it.

    listener: at most one, which the function can call with rows; it is called in this process.
    """
    if deadline is None:
        return function(*listener)
    count = len(listener)  # the program is copied to a process of its own, where no listener could go

    def program(comm: Communicator) -> _T:
        return function(*[comm.tell] * count)

    def hear(rank: int, row: HistoryRow) -> None:
        listener[0](row)

    try:
        run = cluster.launch(program, nodes=1, on="simulation", deadline=deadline, listener=hear)
    except cluster.ClusterError as error:
        if error.cause is not None:
            raise error.cause from error
        raise
    returned: _T = run.results[0]
    return returned


def _node(
    comm: Communicator,
    job: Job,
    strategy: Strategy,
    nodes: int,
    folder: Path | None,
    config: dict[str, Any],
    leg: Leg,
    saving: Saving | None,
) -> RankRecord:
    """The program that runs on every rank."""
    of_losses = "ordered" if strategy.algorithm == "ordered" else "auto"  # few numbers: a ring would only cost time
    session = Session(job, strategy, comm, nodes, folder, config, of_losses, leg, saving)
    with np.errstate(all="ignore"):  # an overflow ends as a loss that is not finite, which is reported once
        try:
            if comm.rank < nodes:
                strategy.run(session)
            else:
                strategy.serve(session)
        except (cluster.RankFailed, cluster.Deadlock) as error:  # a rank that gave up has returned: a deadlock
            if leg.is_elastic:
                return session.unfinished(error)
            raise
        finally:
            session.finish_saving()
    return session.result()


def plan_of(strategy: Strategy, job: Job, nodes: int) -> ParallelPlan:
    """The strategy's plan for that number of nodes.

    Raises ValueError if it has none, and if it splits a model of which every rank has a copy; TypeError if `plan`
    returns something else.
    """
    try:
        plan = strategy.plan(job, nodes)
    except ValueError as error:
        raise ValueError(f"{type(strategy).__name__} has no plan for nodes={nodes}: {error}") from error
    if not isinstance(plan, ParallelPlan):
        raise TypeError(f"{type(strategy).__name__}: plan must return a parallel.ParallelPlan, got {plan!r}")
    if plan.world != nodes:
        raise ValueError(f"the strategy's plan has {plan.world} ranks, {plan}, but the run has {nodes} nodes")
    if plan.is_split and isinstance(job.model, Module):
        raise ValueError(
            "this strategy splits the model, so no rank may hold the whole: give Job a function that makes the model, "
            "model=lambda: ..., rather than a model"
        )
    return plan


def _state_evaluated_in_run(ended: Launched) -> Checkpoint | None:
    """The last state, where the nodes evaluated their model together; None where snapshots are evaluated after the run.

    Raises the failure that lost the weights: that of a server, which alone has its slice, or that of all nodes.
    """
    for record in ended.records:
        if record.state is not None and record.state.history:
            return replace(record.state, within_epoch={})
    failures, nodes = ended.run.failures, ended.nodes
    if any(rank >= nodes for rank in failures) or all(rank in failures for rank in range(nodes)):
        causes = (failure for failure in failures.values() if not isinstance(failure.cause, cluster.ClusterError))
        raise next(causes, next(iter(failures.values())))
    return None


def _check_saving(saving: Saving | None, strategy: Strategy, folder: str | Path | None) -> None:
    """Raise TypeError or ValueError if this strategy cannot save so."""
    if saving is None:
        return
    if not isinstance(saving, Saving):
        raise TypeError(f"saving must be a parallel.Saving, such as Saving(every=100), got {saving!r}")
    if folder is None:
        raise ValueError(f"saving={saving} needs a folder to write to: give folder=...")
    if not strategy.is_resumable:
        raise ValueError(f"saving={saving}: {strategy} cannot go on from a checkpoint: leave out saving")
    if saving.every is not None and not strategy.saves_within_epoch:
        raise ValueError(f"saving={saving}: {strategy} cannot go on within an epoch to the same bits: leave out every")


def _resumed(resume: str | Path, strategy: Strategy, job: Job, on: str | Engine) -> Checkpoint:
    """The checkpoint from which the strategy goes on with the job."""
    if not strategy.is_resumable:
        raise ValueError(
            f"{type(strategy).__name__} cannot go on from a checkpoint, which lacks some of its ranks' state: "
            "to begin with the weights of an earlier run, give Job(model=report.model())"
        )
    checkpoint = cluster.once(partial(_matching_checkpoint, resume, job), on)
    if checkpoint.within_epoch and not strategy.saves_within_epoch:
        raise ValueError(
            f"the checkpoint {resume} stands within an epoch, where {strategy} cannot go on to the same bits: "
            "resume by another strategy"
        )
    return checkpoint


def _matching_checkpoint(path: str | Path, job: Job) -> Checkpoint:
    """Read the checkpoint; CheckpointError or ValueError if it does not fit the job, whose model is overwritten."""
    checkpoint = Checkpoint.load(path)
    optimizer = job.build_optimizer(model := job.build_model())
    checkpoint.restore(model, optimizer, job.build_schedule(optimizer, 1))
    if checkpoint.epoch >= job.epochs:
        raise ValueError(
            f"the checkpoint {path} has {checkpoint.epoch} epochs already: ask for more, got epochs={job.epochs}"
        )
    size, saved = job.batch_size_of(checkpoint.epoch), checkpoint.within_epoch.get("batch_size")
    if saved not in (None, size):
        raise ValueError(
            f"the checkpoint {path} stands within an epoch of minibatches of {saved} samples: resume with "
            f"batch_size={saved}, got {size}"
        )
    return checkpoint
