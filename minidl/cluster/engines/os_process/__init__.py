"""What the engines `processes` and `mpi` share: on both, each rank is a process of the operating system."""
