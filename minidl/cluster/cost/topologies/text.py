"""Topologies as text: "racks:8x8", "torus:4x4x2", "fat_tree:8x8:1x4", "dragonfly:9x2x4x2"."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import NamedTuple

from minidl.arguments import one_of
from minidl.cluster.cost.topologies.dragonfly import Dragonfly
from minidl.cluster.cost.topologies.fat_tree import FatTree
from minidl.cluster.cost.topologies.topology import Link, Topology
from minidl.cluster.cost.topologies.torus import Torus
from minidl.cluster.cost.topologies.tree import Tree


class Form(NamedTuple):
    """How a kind is typed: an example, what its numbers mean, the most lists and links, and what makes it of them."""

    example: str
    meaning: str
    lists: int
    links: int
    make: Callable[..., Topology]


FORMS = {
    "racks": Form(
        "racks:8x8", "racks, nodes in each", 1, 2, lambda links, sizes: Tree(sizes[0], sizes[1], links[0], links[-1])
    ),
    "torus": Form("torus:4x4x2", "nodes along each dimension", 1, 1, lambda links, sizes: Torus(sizes, *links)),
    "fat_tree": Form(
        "fat_tree:8x8:1x4:1x1",
        "from the nodes to the top: below a switch; above it (by default as many cables as below); parallel cables",
        3,
        1,
        lambda links, *sizes: FatTree(*sizes, link=links[0]),
    ),
    "dragonfly": Form(
        "dragonfly:9x2x4x2:1x1x1",
        "groups, chassis, routers, nodes at each; cables between groups, chassis, routers (by default one)",
        2,
        1,
        lambda links, *sizes: Dragonfly(*sizes, link=links[0]),
    ),
}
_SIZES = re.compile(r"\d{1,9}(x\d{1,9})*", re.ASCII)


def parse(text: str, links: Sequence[Link]) -> Topology:
    """Return the topology `KIND:SIZES`, all of whose links are like `links[0]`; racks' uplinks are like `links[-1]`.

    Raises
        ValueError  an unknown kind, or sizes that it cannot have

    >>> parse("torus:4x2", [(1e-6, 1e9)])
    Network.torus(dimensions=(4, 2), link=(1e-06, 1000000000.0))
    """
    kind, *lists = text.lower().replace(" ", "").replace("\N{MULTIPLICATION SIGN}", "x").split(":")
    form = FORMS[one_of("the kind of a topology", kind.replace("-", "_"), FORMS)]
    if not 1 <= len(lists) <= form.lists or not all(map(_SIZES.fullmatch, lists)):
        raise ValueError(f"{text!r} is no topology: write {kind} as in {form.example}: {form.meaning}")
    if len(links) > form.links:
        counted = "one link" if form.links == 1 else "two links"
        raise ValueError(f"{text}: {kind} takes at most {counted} after @, got {len(links)}")
    sizes = [tuple(map(int, one.split("x"))) for one in lists]
    if kind == "racks" and len(sizes[0]) != 2:
        raise ValueError(f"{text}: racks takes two numbers, as in {form.example}: {form.meaning}")
    try:
        return form.make(links, *sizes)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{text}: {error}") from None


def written(topology: Topology) -> str:
    """The text of a topology whose links are all alike.

    >>> written(FatTree((4, 3), link=(1e-6, 1e9)))
    'fat_tree:4x3:1x4:1x1'
    """
    lists = [getattr(topology, field.name) for field in fields(topology) if field.name != "link"]  # type: ignore[arg-type]
    return ":".join([topology.maker, *("x".join(map(str, sizes)) for sizes in lists)])
