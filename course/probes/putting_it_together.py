"""Probes for the answers of chapter 14: a model and a cluster, for which plans are compared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """A transformer of equal layers.

    Attributes
        layers    L
        width     h; a layer has 12 h h weights
        heads     of attention in a layer; they divide the width
        context   tokens of a sample
    """

    layers: int
    width: int
    heads: int
    context: int


@dataclass(frozen=True)
class Cluster:
    """Ranks on nodes, with one kind of link within a node and another kind between nodes.

    Attributes
        ranks      of the whole cluster
        per_node   ranks of a node: ranks 0 to per_node - 1 are on the first one, and so on
        flops      floating-point operations of a rank in a second
        memory     bytes of a rank
        inside     link within a node: (seconds a message, seconds a byte)
        between    link between nodes: the same
    """

    ranks: int
    per_node: int
    flops: float
    memory: int
    inside: tuple[float, float]
    between: tuple[float, float]
