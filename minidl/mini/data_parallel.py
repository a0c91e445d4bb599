"""What if every rank has the whole model, and its share of the data?

Each function is a way to train. All ranks run it with equal models and the same minibatches (x, y). The ways differ in
what travels, gradients or weights, and in who waits: all, neighbours or nobody.
"""

import numpy as np

from minidl.mini.cluster import ANY
from minidl.mini.collectives import all_gather, all_reduce, broadcast, reduce_scatter
from minidl.mini.tensor import Tensor, cross_entropy


def gradient_at(comm, model, weights, x, y, count):
    """The gradient, at these weights, of the sum of the losses of all labels y, divided by `count`."""
    model.set_weights(weights)
    loss = cross_entropy(model(Tensor(x)), labels=y, count=count)
    loss.backward()
    comm.compute(flops=6 * weights.size * y.size, label="gradient")  # a weight: 2 (times, plus), and 4 for both vjps
    return model.gradient()


def shares(comm, batches):
    """Every p-th sample of each minibatch, and the number of labels in the whole minibatch."""
    for x, y in batches:
        yield x[comm.rank :: comm.size], y[comm.rank :: comm.size], y.size


def synchronous(comm, model, optimizer, batches):
    """The gradients of all ranks are added up in every step: p ranks do what one would."""
    weights = broadcast(comm, model.weights())  # ranks may have drawn different ones
    for x, y, count in shares(comm, batches):
        gradient = gradient_at(comm, model, weights, x, y, count)  # divided by the whole count: their sum is the mean
        weights = optimizer.step(weights, all_reduce(comm, gradient))
    return weights


def sharded_states(comm, model, optimizer, batches):
    """The same, but a rank updates one p-th of the weights, and has the optimizer's state of these alone (ZeRO 1)."""
    weights = broadcast(comm, model.weights())
    for x, y, count in shares(comm, batches):
        gradient = reduce_scatter(comm, gradient_at(comm, model, weights, x, y, count))  # half of an all-reduce
        mine = optimizer.step(np.array_split(weights, comm.size)[comm.rank], gradient)
        weights = np.concatenate(all_gather(comm, mine))  # the other half: as many bytes as `synchronous`
    return weights


def compressed(comm, model, optimizer, batches, density):
    """The same, but only the largest entries of the gradient are sent; what is left out is added to the next one."""
    weights = broadcast(comm, model.weights())
    residual, k = np.zeros_like(weights), int(np.ceil(density * weights.size))
    for x, y, count in shares(comm, batches):
        residual += gradient_at(comm, model, weights, x, y, count)
        top = np.argpartition(np.abs(residual), -k)[-k:]  # where the k largest are, in any order
        message = np.rec.fromarrays([top.astype(np.uint32), residual[top]], names="index,value")  # 4 + 4 bytes each
        residual[top] = 0  # error feedback: the rest waits until it is among the largest
        gradient = np.zeros_like(weights)
        for each in all_gather(comm, message):
            gradient[each.index] += each.value  # an index is there once in each
        weights = optimizer.step(weights, gradient)
    return weights


def local_sgd(comm, model, optimizer, batches, period):
    """Each rank trains alone; every `period` steps, all take the plain mean of their weights."""
    weights = model.weights()
    for step, (x, y, _) in enumerate(shares(comm, batches), 1):
        weights = optimizer.step(weights, gradient_at(comm, model, weights, x, y, y.size))
        if step % period == 0:
            weights = all_reduce(comm, weights / comm.size)
    return weights


def gossip(comm, model, optimizer, batches):
    """In every step, each rank takes the mean of its weights and its neighbours' on a ring. No step makes all equal."""
    p, me, weights = comm.size, comm.rank, model.weights()
    shifts = sorted({1 % p, -1 % p} - {0})  # to the right and to the left: of two ranks it is the same one
    for x, y, count in shares(comm, batches):
        gradient = gradient_at(comm, model, weights, x, y, count / p)  # so that their mean over ranks is the whole's
        for shift in shifts:
            comm.isend(weights, (me + shift) % p)  # sendrecv would wait, too, for whom it sends to
        others = [comm.recv((me - shift) % p) for shift in shifts]
        weights = optimizer.step((weights + sum(others)) / (1 + len(others)), gradient)  # at its own weights
    return weights


def parameter_server(comm, model, optimizer, batches, updates):
    """The last rank has the weights. Each worker fetches them and sends a gradient, and waits for no other worker."""
    server = comm.size - 1
    if comm.rank == server:
        return serve(comm, model.weights(), optimizer, updates)
    comm.send(None, server)  # the first request; later each gradient is one
    while (weights := comm.recv(server)) is not None:
        x, y = next(batches)  # of its own: a fast worker reads more
        comm.send(gradient_at(comm, model, weights, x, y, y.size), server)


def serve(comm, weights, optimizer, updates):
    """Update by each gradient as it comes. Its staleness: the updates since its worker's fetch, about workers - 1."""
    version, fetched, staleness, workers = 0, {}, [], comm.size - 1
    while workers:
        gradient, worker = comm.recv(ANY), comm.last_source
        if gradient is not None and version < updates:
            staleness.append(version - fetched[worker])
            weights = optimizer.step(weights, gradient)
            version += 1
        fetched[worker] = version
        comm.isend(weights if version < updates else None, worker)  # None: stop; a later gradient is dropped
        workers -= version == updates  # True counts 1: it has been told to stop
    return weights, staleness


# The workshop: minidl/parallel (overlap, bounded staleness, dead ranks), minidl/compress. Lectures 05a, 06a, 07a, 09a.
