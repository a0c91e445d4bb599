"""`python -m benchmarks simulation`: the real seconds of a simulated all-reduce, and SimGrid's (`simgrid_ring.py`)."""
