"""Real processes, one a node: `engine.py` starts them, `mailbox.py` moves their messages.

`shared_reduction.py` is the all-reduce in memory that they share, `shared_board.py` compares their collectives,
`deadlock.py` finds those that wait for each other, `emulated_network.py` slows their messages down.
"""

from minidl.cluster.engines.processes.engine import Processes

__all__ = ["Processes"]
