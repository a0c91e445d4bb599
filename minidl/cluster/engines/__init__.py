"""Engines: where ranks live, how their messages travel and what time is. `protocol.py` says what one must offer.

`processes/`, `simulation/` and `mpi/` are the three. Ranks that are processes, under mpiexec too, have much in common:

- starting: `task.py` packs what a rank runs, `worker.py` is a process that becomes a rank, `threads.py` shares the cores;
- going on: `supervisor.py` is the launcher, which hears all ranks and ends them; `control.py` is what the two say to each
  other; `interrupts.py` holds Ctrl-C back for moments;
- messages: `payload.py` makes bytes of objects, `segments.py` is memory without a name, `shared_arrays.py` the arrays in
  it, `helper_threads.py` does what a program leaves to go on beside it.

`report.py`, how a rank tells of its end and what error becomes of that, is for all three.
"""
