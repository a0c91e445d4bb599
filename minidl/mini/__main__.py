"""Do they all learn the same? Train the digits in every way, on processes and on a clock: python -m minidl.mini"""

from functools import partial

import numpy as np

from minidl import data
from minidl.mini import data_parallel, model_parallel
from minidl.mini.cluster import processes, simulate
from minidl.mini.nn import SGD, mlp

WAYS = {
    "synchronous SGD": data_parallel.synchronous,
    "sharded optimizer states": data_parallel.sharded_states,
    "pipeline, GPipe": partial(model_parallel.pipeline, schedule=model_parallel.gpipe, micro_batches=8),
    "pipeline, 1F1B": partial(model_parallel.pipeline, schedule=model_parallel.one_f_one_b, micro_batches=8),
    "tensor parallelism": model_parallel.tensor_parallel,
    "1 % of each gradient": partial(data_parallel.compressed, density=0.01),
    "local SGD": partial(data_parallel.local_sgd, period=4),
    "gossip": data_parallel.gossip,
}


def train(way, comm):
    seed = 0 if way in WAYS.values() else comm.rank  # a server's workers read in orders of their own
    loader, rng = data.DataLoader(data.digits().train, 64, shuffle=True, seed=seed), np.random.default_rng(0)
    batches = ((x.reshape(len(x), -1), y) for _ in range(2) for x, y in loader)
    return way(comm, mlp(64, 60, 60, 60, 10, rng=rng), SGD(lr=0.05, momentum=0.9), batches)


one = simulate(partial(train, data_parallel.synchronous), 1, alpha=0, beta=0).results[0]
print(f"{'four ranks train by':26}last biases from one rank's   processes, clock   at 1 Gbit/s")
for name, way in WAYS.items():
    run, last = simulate(partial(train, way), 4, alpha=50e-6, beta=8e-9), processes(partial(train, way), 4)[-1]
    same = "equal to the bit" if (last == run.results[-1]).all() else "different"
    print(f"{name:26}{abs(last[-10:] - one[-10:]).max():27.0e}   {same}   {run.seconds:9.2f} s")
weights, staleness = processes(partial(train, partial(data_parallel.parameter_server, updates=40)), 5)[-1]
print(f"parameter server          staleness: {np.mean(staleness):.1f} in the mean, {max(staleness)} at most")
