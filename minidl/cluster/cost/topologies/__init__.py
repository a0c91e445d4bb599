"""Topologies: which links a message uses on its way from one rank to another, one file each.

`topology.py` says what they have in common, `text.py` reads them as they are typed. `tree.py` has racks under one
switch, `torus.py` grids that are closed to rings, `fat_tree.py` levels of switches with several ways up, `dragonfly.py`
groups of routers with a cable between any two groups.
"""

from minidl.cluster.cost.topologies.dragonfly import Dragonfly
from minidl.cluster.cost.topologies.fat_tree import FatTree
from minidl.cluster.cost.topologies.topology import Link, Topology
from minidl.cluster.cost.topologies.torus import Torus
from minidl.cluster.cost.topologies.tree import Tree

__all__ = ["Dragonfly", "FatTree", "Link", "Topology", "Torus", "Tree"]
