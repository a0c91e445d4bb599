"""Simulated ranks on a virtual clock: `engine.py` begins a run, `scheduler.py` says whose turn it is.

Networks: `ports.py` (alpha and beta) and `flows.py` (trees of racks), over the interface in `transport.py`.
"""

from minidl.cluster.engines.simulation.engine import Simulation
from minidl.cluster.engines.simulation.node import Node

__all__ = ["Node", "Simulation"]
