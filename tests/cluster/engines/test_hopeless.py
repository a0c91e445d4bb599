"""An operation that can never complete raises the same error on every engine."""

import pytest

from minidl import cluster

pytestmark = pytest.mark.timeout(120)


def receive_from_a_rank_that_returns(comm: cluster.Communicator) -> None:
    if comm.rank == 0:
        comm.recv(cluster.ANY)


@pytest.mark.parametrize("engine", ["processes", "simulation"])
def test_a_receive_from_any_names_the_rank_that_has_returned_if_it_is_the_only_other_one(engine: str) -> None:
    with pytest.raises(cluster.Deadlock, match="rank 1 has already returned from the program") as caught:
        cluster.launch(receive_from_a_rank_that_returns, nodes=2, on=engine)
    assert caught.value.rank == 1


@pytest.mark.parametrize("engine", ["processes", "simulation"])
def test_a_receive_from_any_says_that_every_other_rank_has_returned(engine: str) -> None:
    with pytest.raises(cluster.Deadlock, match="every other rank has already returned from the program") as caught:
        cluster.launch(receive_from_a_rank_that_returns, nodes=3, on=engine)
    assert caught.value.rank in (0, None)
