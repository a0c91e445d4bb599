"""Entrant: a strategy of a comparison, with the job that it trains."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from minidl import compress
from minidl.cluster.cost.network import Network
from minidl.parallel.data_parallel.serial import Serial
from minidl.parallel.job import Job, built_once
from minidl.parallel.strategy import Strategy


@dataclass(frozen=True)
class Entrant:
    """A strategy of a comparison, with the job that it trains.

    name       its name in tables and pictures
    nodes      nodes that train; 1 for Serial
    lr         learning rate of the optimizer's first group
    momentum   momentum of that group; 0 for optimizers without one
    """

    name: str
    strategy: Strategy
    job: Job
    nodes: int
    lr: float
    momentum: float

    @classmethod
    def of(cls, name: str, strategy: Strategy, job: Job, nodes: int) -> Entrant:
        """The strategy with a fair job: an asynchronous gradient is of batch_size / nodes samples.

        Between two messages a node then computes as much under every strategy. Raises ValueError if the batch size is
        not a multiple of the nodes.
        """
        if isinstance(strategy, Serial):
            nodes = 1
        if strategy.is_asynchronous:
            job = replace(
                job,
                batch_size=_share(name, job.batch_size, nodes),
                batch_schedule=job.batch_schedule and partial(_share_of_epoch, name, job.batch_schedule, nodes),
            )
        here = built_once(job)
        group = here.build_optimizer(here.build_model()).param_groups[0]
        return cls(name, strategy, job, nodes, float(group.get("lr", 0)), float(group.get("momentum", 0)))

    def check(self) -> None:
        """Raise ValueError if the strategy cannot train the job on these nodes."""
        try:
            self.strategy.check(built_once(self.job), self.nodes)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from error

    def check_networks(self, networks: Iterable[Network | None]) -> None:
        """Raise ValueError if one of the networks connects fewer ranks than there are nodes and servers."""
        for network in networks:
            if network is not None:
                network.check(self.nodes + self.strategy.servers)

    def with_seed(self, first: int, number: int) -> Entrant:
        """The same with the seed of its run `number`, from `first` on; no two of its runs share a seed."""
        return replace(self, job=replace(self.job, seed=first + number * self.strategy.seeds_of_a_run(self.nodes)))

    @property
    def compresses_for_free(self) -> bool:
        """Whether a compressor works in simulations without being charged for it."""
        compressor = getattr(self.strategy, "compressor", None)
        while compressor is not None:
            if isinstance(compressor, compress.CodingTime):
                return False
            compressor = getattr(inside := compressor, "compressor", None)
            if compressor is None:
                return isinstance(inside, compress.Compressor)
        return False


def _share(name: str, batch_size: int, nodes: int) -> int:
    if batch_size % nodes:
        raise ValueError(
            f"{name} computes gradients of batch_size / nodes samples, but {batch_size} is not a multiple of {nodes}: "
            f"choose a batch size of {max(batch_size // nodes, 1) * nodes}"
        )
    return batch_size // nodes


def _share_of_epoch(name: str, schedule: Callable[[int], int], nodes: int, epoch: int) -> int:
    return _share(name, schedule(epoch), nodes)
