"""The engine of MPI: the same program under mpiexec, on one machine or on many.

`engine.py` asks `environment.py` whether mpiexec has started this process. Outside mpiexec, `launcher.py` starts it,
and `rank.py` is what each process runs; `started.py` is such a process as the launcher sees it. Inside mpiexec,
`inside.py` runs the program on the ranks that are there, `agreement.py` lets them agree on how the run ended,
`abrupt_exit.py` handles a rank that calls os._exit, and `first_rank.py` computes a value once for all ranks.

A message goes from `comm.send` on one rank to `comm.recv` on another through `mailbox.py`; `calls.py` is the lock
around calls of MPI. `reduction.py` leaves all-reduces to MPI, `memory.py` has the file of shared arrays, and
`endpoint.py` puts these together. If a run ends abnormally, `abort.py` ends the job, and `leftovers.py` cleans up after
MPI.
"""

from minidl.cluster.engines.mpi.engine import MPI

__all__ = ["MPI"]
