"""What all topologies have in common: numbered links, and for each pair of ranks the route of its messages."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar

from minidl.arguments import real_number, whole_number

Link = tuple[float, float]
"""The latency of a link in seconds, and its bytes per second."""


class Topology(ABC):
    """Ranks, and the links between them.

    A cable is two links, one for each direction. Messages that are in flight at the same time share the links of their
    routes (`engines/simulation/flows.py`). Routes are fixed: no message avoids a link because others use it. Switches
    take no time, and only their links limit them.
    """

    maker: ClassVar[str]
    """The method of Network that makes a network of it."""

    @property
    @abstractmethod
    def ranks(self) -> int:
        """Number of ranks."""

    @property
    @abstractmethod
    def neighbours(self) -> int:
        """Ranks 0 to neighbours - 1, and so on, are close together: the groups of a hierarchical all-reduce."""

    @property
    @abstractmethod
    def links(self) -> Sequence[Link]:
        """Latency in seconds and bytes per second of each link."""

    @abstractmethod
    def route(self, src: int, dst: int) -> tuple[int, ...]:
        """The numbers of the links from rank `src` to another rank, in their order."""

    @cached_property
    def capacities(self) -> tuple[float, ...]:
        """Bytes per second of each link."""
        return tuple(speed for _, speed in self.links)

    def path(self, src: int, dst: int) -> tuple[float, tuple[int, ...]]:
        """The latency of a message in seconds and the links of its route; none from a rank to itself."""
        route = self.route(src, dst) if src != dst else ()
        links = self.links
        return math.fsum(links[link][0] for link in route), route

    def __repr__(self) -> str:
        settings = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self))  # type: ignore[arg-type]
        return f"Network.{self.maker}({settings})"


def checked_link(name: str, value: Any) -> Link:
    """The link as two floats; TypeError or ValueError names it."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError(f"{name} must be a pair (latency in seconds, bytes per second), got {value!r}")
    latency = real_number(f"the latency of {name} (seconds)", value[0], at_least=0)
    return latency, real_number(f"the speed of {name} (bytes per second)", value[1], above=0)


def checked_sizes(name: str, value: Any, count: int | None = None) -> tuple[int, ...]:
    """The sizes as a tuple of `count` whole numbers of at least 1; TypeError or ValueError names them."""
    if not isinstance(value, tuple | list) or not value:
        raise TypeError(f"{name} must be a tuple of whole numbers, got {value!r}")
    if count is not None and len(value) != count:
        raise ValueError(f"{name} must have {count} numbers, got {len(value)}: {value}")
    return tuple(whole_number(f"each of {name}", size, at_least=1) for size in value)
