"""Which weights lie on which server, and which of them a rank of a worker holds."""

import numpy as np
import pytest

from minidl import nn
from minidl.parallel.servers.keys import Key, Layout


def model():
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))  # 24 + 6 + 18 + 3 weights


@pytest.mark.parametrize("servers", [1, 2, 3, 7])
def test_the_servers_have_equal_shares_of_one_vector_of_all_weights(servers):
    borders = Layout(model(), servers).borders
    assert (borders[0], borders[-1]) == (0, 51)
    sizes = np.diff(borders)
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("servers", [1, 2, 5])
def test_the_ranks_of_a_worker_have_every_element_once_where_the_server_has_it(servers):
    """Rank 0 and 1 hold halves of the first layer; rank 2 holds the second, of which the queries are cut in blocks."""
    layout = Layout(model(), servers)
    vector = np.arange(51.0)
    arrays = dict(zip(["0.weight", "0.bias", "2.weight", "2.bias"], np.split(vector, [24, 30, 48]), strict=True))
    arrays["0.weight"], arrays["2.weight"] = arrays["0.weight"].reshape(6, 4), arrays["2.weight"].reshape(3, 6)
    halves = [nn.Shard("tp", index, 2, dim=1, blocks=2) for index in (0, 1)]
    ranks = [[Key("0.weight", half), *([] if half.index else [Key("0.bias")])] for half in halves]
    ranks.append([Key("2.weight"), Key("2.bias")])
    count = np.zeros(51, int)
    for keys in ranks:
        mine = np.concatenate([(arrays[n] if s is None else s.cut(arrays[n])).reshape(-1) for n, s in keys])
        for server in range(servers):
            on_server = np.arange(layout.borders[server], layout.borders[server + 1])[layout.on_server(server, keys)]
            np.testing.assert_array_equal(vector[on_server], mine[layout.on_rank(server, keys, set(keys))])
            np.add.at(count, on_server, 1)
    assert (count == 1).all()


def test_frozen_parameters_lie_on_the_servers_but_are_not_exchanged():
    frozen = model()
    frozen[0].weight.requires_grad_(False)
    layout = Layout(frozen, servers=2, only_trained=True)
    assert layout.exchanged == 27
    assert layout.borders == [0, 38, 51]  # 14 and 13 of the trained ones
    held = [Key(name) for name, _ in frozen.named_parameters()]
    assert layout.on_server(0, held) == slice(24, 38)
    assert layout.on_rank(0, held, set(held)) == slice(24, 38)
    assert layout.on_rank(1, held, set(held)) == slice(38, 51)


def test_a_parameter_that_lies_on_two_servers_is_cut():
    layout = Layout(model(), servers=2)
    assert [layout.is_cut(name) for name in ("0.weight", "0.bias", "2.weight", "2.bias")] == [False, True, False, False]
