"""`python -m benchmarks step`: training steps of minidl, PyTorch (eager, compiled) and JAX, on the course's workloads.

run.py              the sides take turns; losses are compared first
compiled.py         compiled functions; gpu.py: the same steps on a GPU
side.py             the process of one side: prepares a workload, trains blocks of steps
workloads.py        the workloads in minidl, with the data of all sides
torch_models.py     the same models in PyTorch; torch_training.py trains them
jax_models.py       the same models in JAX; jax_training.py trains them
profile.py          where minidl's step goes, operation by operation
"""
