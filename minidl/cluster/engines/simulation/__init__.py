"""Simulated ranks on a virtual clock: `engine.py` begins a run, `scheduler.py` says whose turn it is.

`deadline.py` ends a rank that computes without end. `process_wide.py` and `output.py` change the process while
simulations run, several at once if need be, and change it back.

Networks: `ports.py` (alpha and beta) and `flows.py` (trees of racks), over the interface in `transport.py`.
"""

from minidl.cluster.engines.simulation.engine import Simulation
from minidl.cluster.engines.simulation.node import Node

__all__ = ["Node", "Simulation"]
