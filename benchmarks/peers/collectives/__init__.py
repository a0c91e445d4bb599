"""`python -m benchmarks collectives`: all-reduce on processes, gloo's and MPICH's too; each process runs `ranks.py`."""
