"""What if the model is too large for one rank?

Cut it between layers, into the stages of a pipeline; or cut the layers: each rank has rows or columns of every matrix.
"""

import numpy as np

from minidl.mini.cluster import simulate
from minidl.mini.collectives import all_reduce
from minidl.mini.data_parallel import gradient_at
from minidl.mini.nn import Layer, Sequential
from minidl.mini.tensor import Tensor, cross_entropy, operation, relu, transpose


def gpipe(stage, stages, micro_batches):
    """What a stage does, in order: all forwards F, then all backwards B. It keeps what B needs of all micro-batches."""
    return [(kind, m) for kind in "FB" for m in range(micro_batches)]


def one_f_one_b(stage, stages, micro_batches):
    """1F1B: each backward as soon as its gradient comes. A stage keeps at most `stages - stage` micro-batches."""
    ahead = min(stages - 1 - stage, micro_batches)  # forwards of this stage until the last stage begins with backward
    forwards, backwards = [("F", m) for m in range(micro_batches)], [("B", m) for m in range(micro_batches)]
    alternating = [action for pair in zip(forwards[ahead:], backwards) for action in pair]
    return forwards[:ahead] + alternating + backwards[micro_batches - ahead :]


def execute(comm, actions, compute, flops):
    """Do what a schedule says: receive what an action needs, compute it, send the result on."""
    for kind, m in actions:
        src, dst = (comm.rank - 1, comm.rank + 1) if kind == "F" else (comm.rank + 1, comm.rank - 1)
        received = comm.recv(src) if 0 <= src < comm.size else None
        result = compute[kind](m, received)
        comm.compute(flops if kind == "F" else 2 * flops, f"{kind}{m}")
        if 0 <= dst < comm.size:
            comm.isend(result, dst)  # not send: in 1F1B two neighbours send to each other, and both would wait for ever


def pipeline(comm, model, optimizer, batches, schedule, micro_batches):
    """Train: every rank holds a slice of the layers, and updates its weights after all micro-batches of a minibatch."""
    layers = Sequential(list(np.array_split(np.array(model.layers, object), comm.size)[comm.rank]))
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
            outputs.backward(gradient)
            return inputs.grad

        actions, flops = schedule(comm.rank, comm.size, micro_batches), 2 * weights.size * y.size / micro_batches
        execute(comm, actions, {"F": forward, "B": backward}, flops)
        weights = optimizer.step(weights, layers.gradient())
    return weights


def picture(schedule, stages, micro_batches):
    """A schedule as text, one column a second: the interpreter above on the virtual clock; F takes 1 s, B 2 s."""

    def program(comm):
        execute(
            comm, schedule(comm.rank, stages, micro_batches), dict.fromkeys("FB", lambda m, received: None), flops=1
        )

    run = simulate(program, stages, alpha=0, beta=0, speeds=[1] * stages)
    rows = [["  "] * int(run.seconds) for _ in range(stages)]
    for rank, action, start, end in run.work:
        rows[rank][int(start) : int(end)] = [action] * int(end - start)
    return "\n".join(f"stage {stage}  {' '.join(row)}".rstrip() for stage, row in enumerate(rows))


def copied(comm, x):
    """x, which is the same on all ranks. Each makes something else of it, so its gradient is the sum of theirs."""
    return operation(lambda x: x, lambda g, z, x: (all_reduce(comm, g.reshape(-1)).reshape(x.shape),))(x)


def summed(comm, x):
    """The sum of the x of all ranks; the gradient of the sum is that of each x."""
    return operation(lambda x: all_reduce(comm, x.reshape(-1)).reshape(x.shape), lambda g, z, x: (g,))(x)


class CutPair(Layer):
    """relu(x A^T + a) B^T + b, of which a rank computes some of the hidden units: rows of A, columns of B."""

    def __init__(self, comm, first, second):
        self.comm = comm
        self.first = Tensor(np.array_split(first.weight.data, comm.size, axis=0)[comm.rank])
        self.first_bias = Tensor(np.array_split(first.bias.data, comm.size)[comm.rank])
        self.second = Tensor(np.array_split(second.weight.data, comm.size, axis=1)[comm.rank])
        self.second_bias = second.bias  # whole on every rank, and added once

    def __call__(self, x):
        hidden = relu(copied(self.comm, x) @ transpose(self.first, axes=(1, 0)) + self.first_bias)
        return summed(self.comm, hidden @ transpose(self.second, axes=(1, 0))) + self.second_bias


def tensor_parallel(comm, model, optimizer, batches):
    """Train: every rank reads all samples, and has its share of every weight matrix."""
    pairs = [(CutPair(comm, *model.layers[i : i + 3 : 2]), relu) for i in range(0, len(model.layers), 4)]
    model = Sequential([layer for pair in pairs for layer in pair][:-1])
    weights = model.weights()
    for x, y in batches:
        weights = optimizer.step(weights, gradient_at(comm, model, weights, x, y, y.size))
    return weights


# The workshop: minidl/parallel/pipeline (five more schedules), minidl/parallel/tensor (whole GPTs). Lectures 10a, 11a.
