"""What the engines `processes` and `mpi` share: on both, each rank is a process of the operating system.

task              what a rank's process gets to run
worker            the rank's side of a run
rank_process      a rank's process, as the launcher sees it
supervisor        the launcher's side of a run
interrupts        Ctrl-C held back while something must not be interrupted half-way
matching          which receive takes which message
helper_threads    the threads of concurrent operations (`async_op=True`)
shared_arrays     `comm.shared_array`
real_rank         stated work takes real time; planned faults are signals
"""
