"""The engine of MPI: the same program under mpiexec, on one machine or on many.

`engine.py` asks `minidl.mpiexec` whether this process was started by mpiexec. Outside mpiexec, `launcher.py` starts it,
and `rank.py` is what each process runs. Inside mpiexec, `inside.py` runs the program on the ranks that are there, and
`agreement.py` lets them agree on how the run ended, and on what rank 0 computes for all (`cluster.once`).
`environment.py` has what a process knows of its launches.

A message goes from `comm.send` on one rank to `comm.recv` on another through `mailbox.py`. `reduction.py` leaves
all-reduces to MPI, and `endpoint.py` adds the rest of what a rank needs. If a run ends abnormally, `abort.py` ends the
job, and `cleanup.py` removes what MPI leaves behind.
"""

from minidl.cluster.engines.mpi.engine import MPI

__all__ = ["MPI"]
