"""Compressed gradients in buckets: as many messages as buckets, the bytes of the parameters' own messages."""

import math
from functools import partial

import numpy as np
import pytest

from minidl import cluster, compress, nn, parallel
from minidl.compress import (
    DGC,
    QSGD,
    ErrorFeedback,
    Half,
    Lossless,
    OneBit,
    PowerSGD,
    QuantizedAllReduce,
    RandomK,
    Sign,
    TernGrad,
    Threshold,
    TopK,
)
from minidl.parallel import Synchronous
from minidl.parallel.gradients.compressed import CompressedGradients
from tests.parallel.jobs import small_job

SHAPES = [(8, 5), (8,), (3, 8), (3,)]  # an MLP of four parameters, 75 numbers
NODES = 4


def one_step(comm, compressor, bucket_mb=1.0, overlap=True):
    """The sums of a step, a gradient a parameter."""
    rng = np.random.default_rng((3, comm.rank))
    parameters = [nn.Parameter(np.zeros(shape)) for shape in SHAPES]
    gradients = CompressedGradients(parameters, comm, compressor, overlap, bucket_mb)
    gradients.begin_epoch(0)
    for parameter in parameters:
        parameter.grad = rng.normal(size=parameter.shape)
    gradients.begin()
    gradients.finish()
    return [parameter.grad for parameter in parameters]


def launched(compressor, **settings):
    network = cluster.Network(1e-6, 1e-9)
    return cluster.launch(partial(one_step, **settings), (compressor,), nodes=NODES, on="simulation", network=network)


def ledger(compressor, **settings):
    run = launched(compressor, **settings)
    return run.results, run.trace.ledger()[1]


GATHERING = [
    TopK(0.2),
    Threshold(1.0),
    RandomK(0.2, seed=None),
    DGC(0.2, warmup=()),
    Sign(),
    OneBit(),
    TernGrad(),
    QSGD(3, 16),
    Lossless(QSGD(3, 16)),
    ErrorFeedback(TopK(0.2)),
]
OTHERS = [
    RandomK(0.2),
    PowerSGD(1),
    ErrorFeedback(PowerSGD(1)),
    Half(),
    Half("bf16"),
    QuantizedAllReduce(QSGD(3, 16)),
    QuantizedAllReduce(Lossless(QSGD(3, 16))),
    TopK(0.2, all_reduce="split"),
    Threshold(1.0, all_reduce="recursive_doubling"),
]


@pytest.mark.parametrize("compressor", [*GATHERING, *OTHERS], ids=repr)
def test_buckets_change_no_bit_of_the_sums_and_every_node_has_the_same(compressor):
    """Four parameters in one bucket make one all-gather a step, in buckets of their own four."""
    joined, sent = ledger(compressor, overlap=True)
    apart, sent_apart = ledger(compressor, bucket_mb=1e-6, overlap=False)
    for node in (*joined, *apart):
        assert all(np.array_equal(a, b) for a, b in zip(node, joined[0], strict=True))
    if compressor in GATHERING:
        assert sent["all_gather"].messages == NODES - 1
        assert sent_apart["all_gather"].messages == (NODES - 1) * len(SHAPES)


def test_where_lengths_are_known_the_bytes_are_those_of_the_messages():
    for compressor in (TopK(0.2), Sign(), TernGrad(), QSGD(3, 16), OneBit()):
        nbytes = sum(compressor.message_bytes(shape, np.float64) for shape in SHAPES)
        assert ledger(compressor)[1]["all_gather"].nbytes == (NODES - 1) * nbytes, compressor


def test_where_lengths_depend_on_the_values_they_travel_too():
    joined, apart = (ledger(Threshold(1.0), bucket_mb=mb)[1]["all_gather"].nbytes for mb in (1.0, 1e-6))
    assert joined == apart + (NODES - 1) * 4 * len(SHAPES)


def test_power_sgd_sends_all_matrices_of_a_bucket_in_two_all_reduces():
    trace = launched(PowerSGD(1)).trace
    events = [event for event in trace.events if event.rank == 1 and event.operation == "all_reduce"]
    calls = {event.call for event in events if event.nbytes}  # waiting for one is a call as well, and sends nothing
    assert len(calls) == 3  # of P and the vectors, of Q, and of the flags of use


@pytest.mark.parametrize("nodes", [1, 3, 4, 9])
@pytest.mark.parametrize(("format", "unit"), [("fp16", 2.0**-11), ("bf16", 2.0**-8)])
def test_half_sends_two_bytes_a_number_and_rounds_twice_however_many_nodes_there_are(format, unit, nodes):
    arrays = np.random.default_rng(nodes).normal(size=(nodes, 7, 36))

    def program(comm):
        return Half(format).begin_all_reduce(arrays[comm.rank], comm)(), comm.bytes_sent

    totals, sent = zip(*cluster.launch(program, nodes=nodes, on="simulation").results, strict=True)
    total = totals[0]
    assert all(np.array_equal(total, other) for other in totals)
    assert (np.abs(total - arrays.sum(axis=0)) <= unit * (np.abs(arrays).sum(axis=0) + np.abs(total)) * 1.001).all()
    assert set(sent) == {2 * (nodes - 1) * 2 * 7 * 36 // nodes}


@pytest.mark.parametrize("compressor", [ErrorFeedback(TopK(0.2)), PowerSGD(1)], ids=repr)
def test_buckets_travel_while_backward_goes_on(compressor):
    strategy = Synchronous(bucket_mb=1e-6, compressor=compressor)
    network = cluster.Network(1e-6, 1e-9)
    trace = parallel.train(small_job(epochs=1), strategy, 2, "simulation", network).trace
    assert any(event.lane > 0 for event in trace.events)


def test_a_compressor_of_ones_own_needs_encode_and_decode_alone():
    class Rounded(compress.Compressor):
        def encode(self, array):
            return compress.Message(
                np.round(array.reshape(-1)).astype(np.int8).view(np.uint8), array.shape, array.dtype
            )

        def decode(self, message):
            return message.data.view(np.int8).astype(message.dtype).reshape(message.shape)

    sums, sent = ledger(ErrorFeedback(Rounded()))
    assert sent["all_gather"].messages == NODES - 1
    assert sent["all_gather"].nbytes == (NODES - 1) * (sum(map(math.prod, SHAPES)) + 4 * len(SHAPES))
    assert all(np.array_equal(a, b) for node in sums for a, b in zip(node, sums[0], strict=True))
