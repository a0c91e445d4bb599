"""Simulated ranks: greenlets in this process, on a virtual clock.

`engine.py` runs a program, `rank.py` is one rank, `scheduler.py` moves the clock and decides whose turn it is, and
`world.py` holds what all ranks share. `node.py` turns work into seconds.

A message goes from `comm.send` on one rank to `comm.recv` on another in four steps: `endpoint.py` posts both halves
(`message.py`) and matches them; the model of the network takes the transfer (`ports.py` for alpha and
beta, `flows.py` for topologies); the scheduler moves the clock to the end of the transfer; `deliver` in
`world.py` gives the contents to the receive and wakes the task that waits for it (`task.py`).

`deadline.py` ends a rank that computes forever. `process_wide.py` changes this process while simulations run, several
at once if need be, and changes it back.
"""

from minidl.cluster.engines.simulation.engine import Simulation
from minidl.cluster.engines.simulation.node import Node

__all__ = ["Node", "Simulation"]
