"""Report: the outcome of a training run, and the folder that keeps it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import chain, pairwise
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.trace.trace import Trace
from minidl.nn import Module
from minidl.nn.experts import RoutingCounts
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.job import Job, built_once
from minidl.parallel.plan import AXES
from minidl.parallel.run.checkpoint import CHECKPOINT_FILE, Checkpoint
from minidl.parallel.run.elastic_restart import Restart
from minidl.parallel.run.fault_record import Death, deaths_of, launches_of, waited_for
from minidl.parallel.run.history import HistoryRow
from minidl.parallel.run.rank_record import RankRecord
from minidl.parallel.run.run_files import write_config, write_metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass
class Report:
    """The outcome of `parallel.train`.

    job         what was trained
    strategy    how it was trained
    nodes       number of ranks that trained; the servers' ranks come after theirs
    history     one row per epoch, a dict with epoch, loss, test_loss, accuracy, seconds, samples_per_second, bytes, lr,
                steps, samples: `minidl/parallel/run/history.py` has their meaning and units
    seconds     of the whole run, evaluation included; measured, or virtual in a simulation
    trace       who computed, sent, received and waited
    checkpoint  the last state
    results     by rank, what it recorded; None for a rank that failed
    failures    by rank, the error that ended it, with `on_failure="continue"`; with `elastic`, of nodes that died after
                the others had finished
    restarts    with `elastic`: each time that the run went on with other nodes; `nodes`, `trace`, `results` and
                `failures` are then those of the last launch
    is_writer   whether `save` writes: in a script under mpiexec only that of rank 0 does, since all ranks have a report
    """

    job: Job = field(repr=False)
    strategy: Any  # a Strategy, whose file stands above this one
    nodes: int
    history: list[HistoryRow]
    seconds: float
    trace: Trace = field(repr=False)
    checkpoint: Checkpoint = field(repr=False)
    results: list[RankRecord | None] = field(repr=False)
    failures: dict[int, ClusterError] = field(default_factory=dict)
    restarts: list[Restart] = field(default_factory=list)
    is_writer: bool = field(default=True, repr=False)

    @property
    def accuracy(self) -> float:
        """Fraction of the test set's labels that are the likeliest class after the last epoch; nan without classes."""
        return float(self.history[-1]["accuracy"])

    @property
    def digests(self) -> list[str]:
        """A hash of the weights of each replica whose nodes all survived; all equal for synchronous strategies."""
        plan = self.strategy.plan(self.job, self.nodes)
        places = [plan.coordinates(rank) for rank in range(self.nodes)]
        ranks = sorted(range(self.nodes), key=lambda rank: [places[rank][axis] for axis in AXES])
        results, size = [self.results[rank] for rank in ranks], plan.ranks_of_replica
        replicas = [results[first : first + size] for first in range(0, self.nodes, size)]
        return [vector.joint_digest([r.digest for r in each if r]) for each in replicas if None not in each]

    @property
    def recorded(self) -> dict[str, list[list[Any]]]:
        """By name, what the strategy recorded with `session.record`: one list per rank."""
        names = sorted({name for result in self.results if result is not None for name in result.recorded})
        return {name: [[] if r is None else r.recorded.get(name, []) for r in self.results] for name in names}

    @property
    def staleness(self) -> Counter[int]:
        """By age in updates, the number of gradients applied at that age; empty for synchronous strategies."""
        return Counter(chain.from_iterable(self.recorded.get("staleness", ())))

    @property
    def deaths(self) -> list[Death]:
        """The nodes that died while the run went on."""
        return deaths_of(self._launches, self.restarts, self.failures)

    @cached_property
    def waited_for(self) -> dict[int, float]:
        """By node, servers after the nodes: the seconds that others waited because of it. A straggler has most."""
        traces = [restart.trace for restart in self.restarts if restart.trace is not None]
        return waited_for(self._launches, [*traces, self.trace])

    def name(self, node: int) -> str:
        """What pictures and tables call a node, or a server, of `deaths` and `waited_for`."""
        is_server = self.strategy.servers and node >= self.nodes
        return f"server {node - self.nodes}" if is_server else f"node {node}"

    @property
    def _launches(self) -> list[list[int]]:
        replaces = self.strategy.resumes_from == "checkpoint"
        return launches_of(self.nodes, self.strategy.servers, self.restarts, replaces)

    @property
    def routing(self) -> list[dict[str, RoutingCounts]]:
        """For each epoch of this run, by the name of a mixture of experts: what all ranks together sent to each expert.

        That is in training, first and second choices alike; `dropped` are those for which no slot was left. A restart
        loses what dead ranks had counted, and what all had in its epoch; from a checkpoint, all before it.
        """
        ranks = [result.routing for result in self.results if result and result.routing]
        return [
            {
                name: reduce(add, (counts[name] for counts in epoch if name in counts))
                for name in dict.fromkeys(chain.from_iterable(epoch))
            }
            for epoch in zip(*ranks, strict=False)  # an asynchronous worker may have made more passes
        ]

    def model(self) -> Module:
        """The trained model."""
        model = built_once(self.job).build_model()  # changes no layer that was made outside the job's function
        model.load_state_dict(self.checkpoint.model)
        return model

    def timeline(self, path: str | Path | None = None, steps: int = 3) -> Figure:
        """The Gantt picture of `steps` consecutive steps of median duration; saved to `path` if given."""
        first = ("forward", "F0", "0F0")  # the last two: the first micro-batch of a pipeline
        computed = [e for e in self.trace.events if e.rank == 0 and e.kind == "compute" and e.lane == 0]
        begins = [  # a forward pass that waits, such as for weights, is several events
            now.start
            for before, now in pairwise([None, *computed])
            if now is not None and now.label in first and (before is None or before.label != now.label)
        ]
        spans = sorted(zip(begins, begins[steps:], strict=False), key=lambda span: span[1] - span[0])
        start, end = spans[len(spans) // 2] if spans else (0.0, None)
        title = f"{steps if spans else len(begins)} steps on {self.nodes} node{'s' * (self.nodes > 1)}"
        return self.trace.plot(path, start, end, title)

    def curves(self, path: str | Path | None = None) -> Figure:
        """Loss and accuracy against epochs and seconds, deaths marked, and who was waited for; saved to `path`."""
        from minidl.plots import curves

        deaths = [(self.name(death.node), death.seconds) for death in self.deaths if death.seconds is not None]
        waits = {self.name(node): seconds for node, seconds in self.waited_for.items()}
        figure = curves.draw(self.history, source=self.trace.source, deaths=deaths, waits=waits)
        if path is not None:
            figure.savefig(path)
        return figure

    def save(self, folder: str | Path) -> Path:
        """Write config.json, metrics.csv, checkpoint.npz, loss.png, timeline.png, run.html and trace.json.gz.

        run.html plays the trace in a browser (`Trace.player`); Perfetto opens trace.json.gz.

        In a script under mpiexec rank 0 writes, and the others do nothing. Raises OSError if the folder cannot be
        written.
        """
        folder = Path(folder)
        if not self.is_writer:
            return folder
        folder.mkdir(parents=True, exist_ok=True)
        write_config(folder, self.checkpoint.config, self.job.seed)
        write_metrics(folder, self.history)
        self.checkpoint.save(folder / CHECKPOINT_FILE)
        self.trace.to_chrome(folder / "trace.json.gz")
        self.curves(folder / "loss.png")
        self.timeline(folder / "timeline.png")
        self.trace.to_html(folder / "run.html", f"{folder.name}: {self.nodes} node{'s' * (self.nodes > 1)}")
        return folder
