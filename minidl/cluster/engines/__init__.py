"""Engines: where ranks live, how their messages travel and what time is. `protocol.py` says what one must offer.

`processes/`, `simulation/` and `mpi/` are the three. Ranks that are processes, under mpiexec too, have much in common:

- to start: `task.py` packs what a rank runs, `worker.py` becomes a rank and runs it, `threads.py` shares the cores out;
- to go on: `supervisor.py` is the launcher's side, which hears all ranks and ends them, `control.py` what the two say
  to each other, `whereabouts.py` where a rank was that was killed or does not answer; `interrupts.py` holds Ctrl-C back
  for moments;
- to work: `real_rank.py` sleeps for stated work, and strikes when a fault is planned;
- messages: `payload.py` makes bytes of objects, `matching.py` says which receive takes which message, `segments.py` is
  memory without a name, `shared_arrays.py` has arrays in it, `helper_threads.py` does what goes on beside a program.

`report.py`, how a rank tells of its end and what error becomes of that, and `printed.py`, how what it prints is kept
and shown, serve all three.
"""
