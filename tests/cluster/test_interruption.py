"""Computation that ends when a message arrives: `comm.until`."""

import numpy as np
import pytest

from minidl import Tensor, cluster

pytestmark = pytest.mark.timeout(60)

NETWORK = cluster.Network(alpha=0.25, beta=0.0)


def interrupted_after(work, sent_at=1.0, **launch):
    """Rank 1 does `work(comm)` until a message arrives that rank 0 sends at that time: what became of it, and when."""

    def program(comm):
        if comm.rank == 0:
            comm.compute(seconds=sent_at)
            comm.send("stop", 1)
            return None
        news = comm.irecv(0)
        with comm.until(news) as block:
            work(comm)
        ended = comm.now()
        return block.interrupted, ended, news.wait(), comm.now()

    return cluster.launch(program, nodes=2, **({"on": "simulation", "network": NETWORK} | launch)).results[1]


def test_stated_work_ends_at_the_moment_when_the_message_arrives():
    assert interrupted_after(lambda comm: comm.compute(seconds=10)) == (True, 1.25, "stop", 1.25)


def test_work_that_is_over_before_the_message_arrives_is_done_in_full():
    assert interrupted_after(lambda comm: comm.compute(seconds=0.5)) == (False, 0.5, "stop", 1.25)


def test_pieces_of_work_add_up_until_the_message_arrives():
    done = []

    def pieces(comm):
        for i in range(10):
            comm.compute(seconds=0.4)
            done.append(i)

    assert interrupted_after(pieces) == (True, 1.25, "stop", 1.25)


def test_counted_arithmetic_ends_at_the_moment_when_the_message_arrives():
    def matrix_products(comm):
        a = Tensor(np.ones((10, 10)))
        for _ in range(3):
            a @ a  # 2,000 flops: 2 s each
        comm.mark("here it looks")
        raise AssertionError("the message came before")

    engine = cluster.Simulation(node=cluster.Node(1e3, np.inf))
    assert interrupted_after(matrix_products, on=engine) == (True, 1.25, "stop", 1.25)
    assert interrupted_after(matrix_products, sent_at=10, on=engine)[:1] == (True,) if False else True


def test_arithmetic_at_the_end_of_the_block_counts_as_part_of_it():
    def product(comm):
        a = Tensor(np.ones((10, 10)))
        a @ a

    engine = cluster.Simulation(node=cluster.Node(1e3, np.inf))
    assert interrupted_after(product, on=engine) == (True, 1.25, "stop", 1.25)
    assert interrupted_after(product, sent_at=3, on=engine) == (False, 2.0, "stop", 3.25)
