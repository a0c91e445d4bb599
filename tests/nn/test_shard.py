"""Shard: pieces of a parameter."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidl import nn


@given(
    dim=st.integers(0, 2),
    count=st.integers(1, 4),
    blocks=st.integers(1, 3),
    length=st.integers(0, 3),
    other=st.integers(0, 3),
)
@settings(max_examples=50)
def test_the_pieces_joined_are_the_whole(dim, count, blocks, length, other):
    shape = [other, 2, 3]
    shape[dim] = count * blocks * length
    whole = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    shards = [nn.Shard("tp", index, count, dim, blocks) for index in range(count)]
    pieces = [shard.cut(whole) for shard in shards]
    assert np.array_equal(shards[0].join(pieces), whole)
    assert not any(np.shares_memory(piece, whole) for piece in pieces)


def test_with_blocks_each_piece_has_its_part_of_every_block():
    query, key, value = (np.arange(start, start + 4) for start in (0, 10, 20))
    piece = nn.Shard("tp", index=1, count=2, blocks=3).cut(np.concatenate([query, key, value]))
    assert piece.tolist() == [2, 3, 12, 13, 22, 23]


def test_what_cannot_be_divided_is_refused():
    with pytest.raises(
        ValueError, match=r"dimension 0 of shape \(6, 4\) must be a multiple of 4 .*: make it 8 wide, or"
    ):
        nn.Shard("tp", 0, 4).cut(np.zeros((6, 4)))
    with pytest.raises(ValueError, match="a dimension 2 expected"):
        nn.Shard("tp", 0, 4, dim=2).cut(np.zeros((6, 4)))
    with pytest.raises(ValueError, match="index must be less than count=2, got 2"):
        nn.Shard("tp", 2, 2)
    with pytest.raises(ValueError, match="2 shards of one shape expected"):
        nn.Shard("tp", 0, 2).join([np.zeros(2), np.zeros(3)])


def test_a_parameter_is_cut_with_its_gradient_and_pickled_with_its_shard():
    weight = nn.Linear(4, 6).weight
    whole = weight.data.copy()
    weight.grad = whole.copy()
    shard = nn.Shard("tp", 1, 3)
    assert weight.cut(shard) is weight
    for again in (weight, copy.deepcopy(weight), pickle.loads(pickle.dumps(weight))):
        assert again.shard == shard
        assert np.array_equal(again.data, whole[2:4])
    assert np.array_equal(weight.grad, whole[2:4])
    with pytest.raises(ValueError, match="already"):
        weight.cut(shard)


def test_a_shard_loads_its_piece_of_the_whole_array_and_its_own_state():
    layer = nn.Linear(4, 6)
    whole = layer.state_dict()
    layer.weight.cut(nn.Shard("tp", 1, 2, dim=1))
    layer.weight.data[...] = 0
    layer.load_state_dict(whole)
    assert np.array_equal(layer.weight.data, whole["weight"][:, 2:])
    layer.load_state_dict(layer.state_dict())
    with pytest.raises(ValueError, match=r"weight: has shape \(6, 5\)"):
        layer.load_state_dict({**whole, "weight": np.zeros((6, 5))})
