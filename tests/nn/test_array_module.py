"""building on an array module that is not numpy's: a part has the whole model's bits, the rest takes no memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minidl
from minidl import kernels, nn
from minidl.nn.models import GPT
from tests.kernels import stand_in


@pytest.fixture(autouse=True)
def cupy() -> Iterator[Any]:
    with stand_in.installed() as module, kernels.use("cupy"):
        yield module


def model() -> nn.Module:
    minidl.manual_seed(3)
    made = GPT(12, 8, n_layer=2, n_head=2, n_embd=8)
    made.norm = nn.BatchNorm1d(3)
    made.extra = nn.Parameter(np.arange(4, dtype=np.float32))
    return made.double()


def test_a_part_has_the_bits_of_the_whole_model(cupy: Any) -> None:
    whole = model().state_dict()
    with nn.building(lambda model: [model.transformer.h[1], model.lm_head, model.norm, model.extra]):
        part = model()
    state = part.state_dict()
    assert len(state) == 2 + 12 + 5 + 1  # the head is tied
    assert all(np.array_equal(array, whole[name]) for name, array in state.items())
    for parameter in part.parameters():
        assert isinstance(parameter.data, cupy.ndarray) == parameter.held
    with pytest.raises(RuntimeError, match="this rank does not hold"):
        part(np.zeros((1, 3), np.int64))


def test_a_shard_is_cut_where_the_array_is(cupy: Any) -> None:
    whole = model().transformer.h[0].attn.c_attn.weight.data
    shards = [nn.Shard("tp", index, 2, blocks=3) for index in range(2)]
    parts = []
    for shard in shards:
        with nn.building(lambda model, shard=shard: model.transformer.h[0].attn.c_attn.weight.cut(shard)):
            part = model()
        parts.append(part.transformer.h[0].attn.c_attn.weight.data)
    joined = shards[0].join(parts)
    assert isinstance(joined, cupy.ndarray)
    assert np.array_equal(kernels.to_numpy(joined), kernels.to_numpy(whole))
