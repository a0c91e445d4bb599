"""`recv` from a collection of ranks: whoever of these comes first, until all of them have failed."""

import pytest

from minidl import cluster

pytestmark = pytest.mark.timeout(300)

ENGINES = ["processes", "simulation"]


@pytest.mark.parametrize("on", ENGINES)
def test_messages_of_other_ranks_wait(on):
    def program(comm):
        if comm.rank:
            comm.send(comm.rank, 0)
            comm.send("ready", 0, tag=1)
            return None
        for rank in (1, 2, 3):
            comm.recv(rank, tag=1)
        heard = [comm.recv({2, 3}), comm.recv([3, 2])]
        return sorted(heard), comm.recv(cluster.ANY), comm.last_source

    assert cluster.launch(program, nodes=4, on=on).results[0] == ([2, 3], 1, 1)


@pytest.mark.parametrize("on", ENGINES)
def test_it_raises_as_soon_as_all_of_them_have_failed_while_others_live(on):
    def program(comm):
        if comm.rank == 0:
            first = comm.recv({1, 2})
            with pytest.raises(cluster.RankFailed) as caught:
                comm.recv({1, 2})
            comm.send("go on", 3)
            return first, caught.value.rank
        if comm.rank == 1:
            comm.send("last words", 0)
        if comm.rank < 3:
            raise ValueError("lost")
        return comm.recv(0)

    run = cluster.launch(program, nodes=4, on=on, on_failure="continue")
    assert run.results == [("last words", 1), None, None, "go on"]


def test_in_a_group_the_ranks_are_those_of_the_group():
    def program(comm):
        half = comm.split(comm.rank % 2)
        if half.rank == 0:
            return half.recv([1]), half.last_source
        return half.send(comm.rank, 0)

    assert cluster.launch(program, nodes=4, on="simulation").results == [(2, 1), (3, 1), None, None]


def test_no_rank_at_all_and_a_rank_that_does_not_exist_are_refused():
    def program(comm):
        for ranks, sentence in ((set(), "got an empty collection"), ({0, 5}, "src must be from 0 to 1, got 5")):
            with pytest.raises(ValueError, match=sentence):
                comm.recv(ranks)

    cluster.launch(program, nodes=2, on="simulation")
