"""Selective recomputation keeps no matrix of attention, computes only its core again, and changes no bit."""

from __future__ import annotations

import tracemalloc
from itertools import product
from typing import Any

import numpy as np
import pytest

from benchmarks.reproductions.activation_checkpointing import array_bytes
from minidl import Tensor, amp, cluster, functional, kernels, nn, no_grad, random
from minidl.kept_arrays import kept_bytes
from minidl.parallel.tensor import layout_of, split_layers
from tests.nn.test_checkpointing import MODELS, normal, results, same
from tests.together import naming

B, S, H, A = 5, 14, 36, 6
"""Samples, positions, features and heads."""


def gpt(dropout: float, layers: int = 1) -> nn.Module:
    random.manual_seed(1)
    return nn.models.GPT(vocab_size=12, block_size=S, n_layer=layers, n_head=A, n_embd=H, dropout=dropout)


def formula(w: int, dropout: float, selective: bool, t: int = 1, sequence: bool = False) -> float:
    """Bytes that a block keeps, w for each number: without dropout and with t = 1, 34 b s h + 2 a b s^2 at w = 2.

    The statistics of two norms, two numbers of at least four bytes for each position, are what papers leave out.
    """
    features = 2 * w + 2 * (dropout > 0)  # inputs of the norms, masks of dropout
    gathered = 2 * w  # inputs of the layers divided by outputs
    own = 12 * w / t  # q, k, v, their mean; before and after GELU
    if sequence:
        features, gathered = features / t, gathered / (t if selective else 1)
    matrix = 0 if selective else w * A * B * S * S / t
    statistics = 4 * max(w, 4) * B * S / (t if sequence else 1)
    return B * S * H * (features + gathered + own) + matrix + statistics


def kept_by_block(model: nn.Module, positions: int = S) -> int:
    block = model.transformer.h[0]
    x = Tensor(normal(B, positions, H), requires_grad=True).to(model.lm_head.weight.dtype).detach().requires_grad_()
    out = block(x)
    return kept_bytes([out], [out, *model.parameters()])


def test_a_block_keeps_what_the_formula_says_with_2_4_and_8_bytes_a_number():
    types = {"bfloat16": 2, "float16": 2, "float32": 4, "float64": 8}
    for (dtype, w), dropout, selective in product(types.items(), (0.0, 0.3), (False, True)):
        with naming(dtype, dropout, selective):
            model = gpt(dropout).to(dtype)
            if selective:
                nn.checkpointing(model, "selective")
            assert kept_by_block(model) == formula(w, dropout, selective)
            if dtype == "float32":
                counted = nn.count(model.transformer.h[0], (B, S, H)).activation_bytes
                assert counted + B * S * H * w == formula(w, dropout, selective)  # the input does not count there


def test_at_two_bytes_a_number_it_keeps_the_34_of_the_paper():
    assert formula(2, 0.3, selective=True) - 16 * B * S == 34 * B * S * H
    assert formula(2, 0.3, selective=True, t=2) - 16 * B * S == B * S * H * (10 + 24 / 2)
    assert formula(2, 0.3, selective=True, t=2, sequence=True) == (34 * B * S * H + 16 * B * S) / 2


def test_full_recomputation_keeps_the_input_of_each_block():
    """Korthikanti et al., section 5: 2 b s h at two bytes a number."""
    tokens = np.arange(B * S).reshape(B, S) % 12
    for w, dtype in ((2, "bfloat16"), (4, "float32")):
        two, three = (nn.checkpointing(gpt(0.3, layers).to(dtype), every=1) for layers in (2, 3))
        assert nn.count(three, tokens).activation_bytes - nn.count(two, tokens).activation_bytes == w * B * S * H


@pytest.mark.parametrize("sequence", [False, True])
def test_a_rank_of_tensor_parallelism_keeps_its_share(sequence: bool):
    def program(comm: cluster.Communicator, selective: bool) -> int:
        model = gpt(0.3)
        split_layers(model, comm, layout_of(model, sequence))
        if selective:
            nn.checkpointing(model, "selective")
        return kept_by_block(model, S // comm.size if sequence else S)

    for selective in (False, True):
        kept = cluster.launch(program, (selective,), nodes=2, on="simulation", deadline=60).results
        assert kept == [formula(4, 0.3, selective, t=2, sequence=sequence)] * 2


def test_live_arrays_of_a_whole_model_are_fewer_by_the_matrices():
    with kernels.use("numpy"):
        live = []
        for selective in (False, True):
            model, layers = gpt(0.2, layers=3), 3
            if selective:
                nn.checkpointing(model, "selective")
            tracemalloc.start()
            out = model(np.arange(B * S).reshape(B, S) % 12)
            live.append(array_bytes())
            tracemalloc.stop()
            out.sum().backward()
    state = live[0] - live[1] - layers * 4 * A * B * S * S  # of the random generator, once a block
    assert -256 * layers < state <= 0


def test_flops_are_one_more_core_and_full_recomputation_is_one_more_forward():
    """Korthikanti et al., section 5: 4 b s^2 h for the two products of a block's core, and those of its softmax."""
    tokens, layers, flops = np.arange(B * S).reshape(B, S) % 12, 3, {}
    for how, segments in (("none", None), ("selective", "selective"), ("full", layers + 2)):
        model = gpt(0.2, layers)
        if segments is not None:
            nn.checkpointing(model, segments)
        with kernels.counted() as forward:
            loss = model(tokens).sum()
        with kernels.counted() as backward:
            loss.backward()
        flops[how] = forward.flops, backward.flops
    assert flops["none"][0] == flops["selective"][0] == flops["full"][0]
    q = normal(B, A, S, H // A)
    with kernels.counted() as core:
        functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    of_softmax = core.flops - 4 * B * S * S * H
    assert 0 < of_softmax < 10 * A * B * S * S
    assert flops["selective"][1] - flops["none"][1] == layers * core.flops
    assert flops["full"][1] - flops["none"][1] == flops["none"][0] - B * S * 12  # the sum of the logits


class Attentive(nn.Module):
    """Cross-attention with dropout and a learned mask; it uses the weights, too."""

    def __init__(self, need_weights: bool, average: bool, learned: bool) -> None:
        self.attention = nn.MultiheadAttention(H, A, dropout=0.3, batch_first=True)
        self.memory = nn.Parameter(normal(B, 9, H))
        self.mask = nn.Parameter(normal(S, 9)) if learned else None
        self.settings = {"need_weights": need_weights, "average_attn_weights": average}

    def forward(self, x: Any) -> Tensor:
        out, weights = self.attention(x, self.memory, self.memory, attn_mask=self.mask, **self.settings)
        return out if weights is None else out.sum() + (weights * weights).sum()


def test_losses_gradients_and_masks_have_the_bits_of_the_plain_model():
    x = normal(B, S, H)
    for settings in ((False, False, False), (False, False, True), (True, True, False), (True, False, True)):
        with naming(*settings):
            random.manual_seed(4)
            model = Attentive(*settings)
            plain = results(model, model, x)
            assert same(plain, results(model, nn.checkpointing(model, "selective"), x))
    build, tokens = MODELS["GPT with dropout and a tie"]
    model = build()
    for is_mixed in (False, True):
        with amp.autocast(enabled=is_mixed):
            plain = results(model, nn.checkpointing(model, 1), tokens)
            assert same(plain, results(model, nn.checkpointing(model, "selective"), tokens))


@pytest.mark.parametrize(("need_weights", "bytes_per_weight"), [(False, 4 + 1), (True, 4 + 4 + 4 + 1)])
def test_no_matrix_of_a_head_is_kept_by_other_layers_either(need_weights: bool, bytes_per_weight: int):
    """Probabilities and dropout's mask; to return weights, also the result of dropout, one more, and a factor."""
    kept = []
    layer = nn.MultiheadAttention(H, A, dropout=0.3, batch_first=True)
    for _ in ("plain", "selective"):
        x = Tensor(normal(B, S, H))
        out, _ = layer(x, x, x, need_weights=need_weights)
        kept.append(kept_bytes([out], [x, *layer.parameters()]))
        nn.checkpointing(layer, "selective")
    assert kept[0] - kept[1] == bytes_per_weight * A * B * S * S + 4 * need_weights


def test_where_no_matrix_is_kept_nothing_is_recomputed(monkeypatch: pytest.MonkeyPatch):
    """Long sequences are computed in blocks, whose backward recomputes by itself; and evaluation has no backward."""
    monkeypatch.setattr("minidl.functional.attention.LONG", S * S)
    flops = []
    tokens = np.arange(B * S).reshape(B, S) % 12
    for selective in (False, True):
        model = gpt(0.0)
        if selective:
            nn.checkpointing(model, "selective")
        with kernels.counted() as work:
            model(tokens).sum().backward()
        flops.append(work.flops)
        kept = kept_by_block(model)
        with no_grad():
            assert not model(tokens).requires_grad
        assert kept == formula(4, 0.0, selective=True) + 4 * A * B * S  # the logarithms of the blocks
    assert flops[0] == flops[1]


def test_the_last_call_decides_what_is_recomputed():
    model = nn.checkpointing(nn.checkpointing(gpt(0.0, layers=2), every=1), "selective")
    selective = kept_by_block(model)
    assert "forward" not in vars(model)
    nn.checkpointing(model, every=1)
    assert kept_by_block(model) > selective


def test_bad_input_is_a_sentence():
    with pytest.raises(ValueError, match=r"selective recomputation .* ResNet has no layer of attention"):
        nn.checkpointing(nn.models.ResNet(8), "selective")
    with pytest.raises(ValueError, match="segments must be 'selective', got 'selektive': did you mean 'selective'"):
        nn.checkpointing(gpt(0.0), "selektive")
    with pytest.raises(ValueError, match="'full': or give a number of segments"):
        nn.checkpointing(gpt(0.0), "full")
    with pytest.raises(ValueError, match="not both"):
        nn.checkpointing(gpt(0.0), "selective", every=1)
