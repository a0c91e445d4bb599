"""What if the model is too large for one rank?

Cut it between layers, into stages, through which slices of a minibatch (micro-batches) go; or cut each weight matrix.
"""

import numpy as np

from minidl.mini.cluster import simulate
from minidl.mini.collectives import all_reduce
from minidl.mini.data_parallel import gradient_at
from minidl.mini.nn import Layer, Sequential
from minidl.mini.tensor import Tensor, cross_entropy, operation, relu


def gpipe(stage, stages, micro_batches):
    """What a stage does, in order: all forwards F, then all backwards B. It keeps what B needs of all micro-batches."""
    return [(kind, m) for kind in "FB" for m in range(micro_batches)]


def one_f_one_b(stage, stages, micro_batches):
    """1F1B: first a forward for each later stage, then F and B in turn. It keeps at most `stages - stage`."""
    warmup = min(stages - 1 - stage, micro_batches)
    actions = [("F", m) for m in range(warmup)]
    for m in range(warmup, micro_batches):
        actions += [("F", m), ("B", m - warmup)]
    return actions + [("B", m) for m in range(micro_batches - warmup, micro_batches)]


def execute(comm, actions, compute, flops):
    """Do what a schedule says: receive what an action needs, compute it, send the result on."""
    for kind, m in actions:
        src, dst = (comm.rank - 1, comm.rank + 1) if kind == "F" else (comm.rank + 1, comm.rank - 1)
        received = comm.recv(src) if 0 <= src < comm.size else None
        result = compute[kind](m, received)
        comm.compute(flops=flops if kind == "F" else 2 * flops, label=f"{kind}{m}")
        if 0 <= dst < comm.size:
            comm.isend(result, dst)  # not send: in 1F1B two neighbours send to each other, and both would wait for ever


def pipeline(comm, model, optimizer, batches, schedule, micro_batches):
    """Train: a rank has a slice of the layers, with weights of its own, and updates them after all micro-batches."""
    mine = np.array_split(range(len(model.layers)), comm.size)[comm.rank]  # each with weights, none of them tied
    layers = Sequential([model.layers[i] for i in mine])
    weights = layers.weights()
    for x, y in batches:
        layers.set_weights(weights)
        xs, ys, kept = np.array_split(x, micro_batches), np.array_split(y, micro_batches), {}

        def forward(m, received):
            inputs = Tensor(xs[m] if received is None else received)
            kept[m] = inputs, layers(inputs)
            return kept[m][1].data

        def backward(m, gradient):
            inputs, outputs = kept.pop(m)
            if gradient is None:  # the last stage has the loss, and divides it by the size of the whole minibatch
                outputs, gradient = cross_entropy(outputs, labels=ys[m], count=y.size), 1.0
            outputs.backward(gradient)  # adds to the gradients of the weights
            return inputs.grad  # inputs is a leaf; the stage before needs its gradient

        actions, flops = schedule(comm.rank, comm.size, micro_batches), 2 * weights.size * y.size / micro_batches
        execute(comm, actions, {"F": forward, "B": backward}, flops)
        weights = optimizer.step(weights, layers.gradient())
    return weights


def picture(schedule, stages, micro_batches):
    """A schedule as text, one column a second: `execute` on the virtual clock; F takes 1 s, B 2 s."""

    def program(comm):
        nothing = dict.fromkeys("FB", lambda m, received: None)
        execute(comm, schedule(comm.rank, stages, micro_batches), nothing, flops=1)

    run = simulate(program, stages, alpha=0, beta=0, speeds=[1] * stages)
    rows = [["  "] * int(run.seconds) for _ in range(stages)]
    for rank, action, start, end in run.work:
        rows[rank][int(start) : int(end)] = [action] * int(end - start)
    return "\n".join(f"stage {stage}  {' '.join(row)}".rstrip() for stage, row in enumerate(rows))


# Two rules more. copied: all ranks have the same x, and p paths lead from it to the one loss, so their gradients add up
copied = operation(lambda x, comm: x, lambda g, z, x, comm: (all_reduce(comm, g.reshape(-1)).reshape(x.shape),))
# summed: z = the sum of all x; p ranks compute the same loss, but it is one loss, and dz/dx = 1: x has z's gradient
summed = operation(lambda x, comm: all_reduce(comm, x.reshape(-1)).reshape(x.shape), lambda g, z, x, comm: (g,))


class CutPair(Layer):
    """relu(x A^T + a) B^T + b as b + the sum over ranks i of relu(x A_i^T + a_i) B_i^T: A_i rows, B_i columns."""

    def __init__(self, comm, first, second):  # two Linear layers
        self.comm = comm
        self.first = Tensor(np.array_split(first.weight.data, comm.size, axis=0)[comm.rank])
        self.first_bias = Tensor(np.array_split(first.bias.data, comm.size)[comm.rank])
        self.second = Tensor(np.array_split(second.weight.data, comm.size, axis=1)[comm.rank])
        self.second_bias = second.bias  # whole on every rank, and added once

    def __call__(self, x):
        x = copied(x, comm=self.comm) if x.vjp else x  # without vjp x is data, whose gradient nobody needs
        hidden = relu(x @ self.first.mT + self.first_bias)
        return summed(hidden @ self.second.mT, comm=self.comm) + self.second_bias


def tensor_parallel(comm, model, optimizer, batches):
    """Train: every rank reads all samples, and has its share of every weight matrix."""
    linear = model.layers[::2]  # every other layer is ReLU; an odd number of Linears would lose the last one
    pairs = [CutPair(comm, first, second) for first, second in zip(linear[::2], linear[1::2])]
    model = Sequential([layer for pair in pairs for layer in (pair, relu)][:-1])
    weights = model.weights()
    for x, y in batches:
        weights = optimizer.step(weights, gradient_at(comm, model, weights, x, y, y.size))
    return weights


# The workshop: minidl/parallel/pipeline (five more schedules), minidl/parallel/tensor (whole GPTs). Lectures 10a, 11a.
