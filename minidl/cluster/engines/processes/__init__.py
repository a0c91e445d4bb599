"""Real processes, one for each node.

To start them: `engine.py` runs a program, `start.py` starts the processes, `preload.py` warms the fork server, and
`rank.py` has the first function of a rank's process.

A message goes from `comm.send` on one rank to `comm.recv` on another through `mailbox.py`: as a frame on a socket
(`frames.py`) and, if it is large, in a segment of shared memory. `emulated_network.py` delays it, and `peers.py` knows
which messages can never come. `links.py` has the sockets to all other ranks and the poll in which a blocked rank
sleeps. `endpoint.py` adds the rest of what a rank needs.

In memory that all ranks share, `shared_reduction.py` does all-reduces (its arrays are in `slots.py`),
`shared_fingerprints.py` compares the ranks' collectives, and `shared_page.py` finds deadlocked ranks.
`memory_barrier.py` keeps data before the flags that announce them.
"""

from minidl.cluster.engines.processes.engine import Processes

__all__ = ["Processes"]
