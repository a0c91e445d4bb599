"""Layers: their outputs against definitions, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import minidl
from minidl import Tensor, nn
from minidl import functional as F
from tests.together import naming


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def test_batch_norm_tracks_mean_and_unbiased_variance_and_evaluates_with_them():
    norm = nn.BatchNorm2d(2, momentum=0.25).double()
    batches = [numbers(4, 2, 3, 3, seed=seed) + 2 for seed in (1, 2)]
    mean, var = np.zeros(2), np.ones(2)
    for x in batches:
        out = norm(x).data
        np.testing.assert_allclose(out.mean(axis=(0, 2, 3)), 0, atol=1e-12)
        np.testing.assert_allclose(out.var(axis=(0, 2, 3)), 1, rtol=1e-4)
        mean = 0.75 * mean + 0.25 * x.mean(axis=(0, 2, 3))
        var = 0.75 * var + 0.25 * x.var(axis=(0, 2, 3), ddof=1)
    np.testing.assert_allclose(norm.running_mean.data, mean, rtol=1e-12)
    np.testing.assert_allclose(norm.running_var.data, var, rtol=1e-12)
    assert norm.num_batches_tracked.item() == 2
    shape = (2, 1, 1)
    expected = (batches[0] - mean.reshape(shape)) / np.sqrt(var + 1e-5).reshape(shape)
    np.testing.assert_allclose(norm.eval()(batches[0]).data, expected, rtol=1e-12)
    assert norm.num_batches_tracked.item() == 2
    np.testing.assert_allclose(norm.running_mean.data, mean, rtol=1e-12)


def test_batch_norm_without_momentum_keeps_the_mean_over_all_batches():
    norm = nn.BatchNorm2d(2, momentum=None).double()
    batches = [numbers(4, 2, 3, 3, seed=seed) for seed in (1, 2, 3)]
    for x in batches:
        norm(x)
    np.testing.assert_allclose(norm.running_mean.data, np.mean([x.mean(axis=(0, 2, 3)) for x in batches], axis=0))
    np.testing.assert_allclose(norm.running_var.data, np.mean([x.var(axis=(0, 2, 3), ddof=1) for x in batches], axis=0))


def test_norms_say_what_they_expect_and_what_to_type():
    for layer, shape, message in [
        (nn.BatchNorm1d(3), (3,), r"BatchNorm1d: x \(n, 3\) or \(n, 3, length\) expected, got \(3,\), .*x\[None\]"),
        (nn.BatchNorm2d(3), (3, 4, 4), r"BatchNorm2d: x \(n, 3, h, w\) expected, got \(3, 4, 4\), .*x\[None\]"),
        (nn.BatchNorm2d(3), (2, 3), r"got \(2, 3\): 2 axes are for nn.BatchNorm1d"),
        (nn.BatchNorm1d(3), (2, 3, 4, 4), r"got \(2, 3, 4, 4\): 4 axes are for nn.BatchNorm2d"),
        (nn.BatchNorm1d(3), (5, 4), r"axis 1 has 4 channels; the layer for it is nn.BatchNorm1d\(4\)"),
        (nn.BatchNorm1d(3), (1, 3), r"more than one value per channel, got x of shape \(1, 3\).*drop_last.*model.eval"),
        (nn.GroupNorm(2, 4), (5, 6), r"GroupNorm: x \(n, 4, ...\) expected, got \(5, 6\)"),
        (nn.RMSNorm(4), (3, 5), r"RMSNorm: x \(..., 4\) expected, got \(3, 5\)"),
        (nn.GroupNorm(2, 4), (4,), r"GroupNorm: x \(n, 4, ...\) expected, got \(4,\)"),
    ]:
        with naming(message), pytest.raises(ValueError, match=message):
            layer(np.zeros(shape, np.float32))
        assert not hasattr(layer, "num_batches_tracked") or layer.num_batches_tracked.item() == 0
    with pytest.raises(ValueError, match="num_groups must divide num_channels, got 4 groups of 6 channels"):
        nn.GroupNorm(4, 6)


def test_dropout_keeps_the_mean_in_training_and_does_nothing_in_evaluation():
    minidl.manual_seed(0)
    layer, x = nn.Dropout(0.25), np.ones((200, 200), np.float32)
    out = layer(x).data
    assert set(np.unique(out)) == {0, np.float32(4 / 3)}
    assert out.mean() == pytest.approx(1, abs=0.01)
    np.testing.assert_array_equal(layer.eval()(x).data, x)
    with pytest.raises(ValueError, match=r"1\.5"):
        nn.Dropout(1.5)


def test_layers_take_empty_inputs_and_give_empty_outputs():
    for layer, shape, expected in [
        (nn.Flatten(), (0, 3, 4), (0, 12)),
        (nn.Flatten(0, 1), (2, 3, 4), (6, 4)),
        (nn.Conv2d(3, 8, 5), (0, 3, 32, 32), (0, 8, 28, 28)),
        (nn.Linear(3, 0), (4, 3), (4, 0)),
        (nn.models.LeNet(8), (0, 1, 8, 8), (0, 10)),
    ]:
        assert layer(np.zeros(shape, np.float32)).shape == expected, layer


def test_flatten_refuses_axes_that_the_input_lacks_or_that_are_in_the_wrong_order():
    x = np.zeros((2, 3, 4), np.float32)
    for axes in ((5,), (1, 3), (-4,)):
        with pytest.raises(IndexError, match=r"axis -?\d of a tensor of shape \(2, 3, 4\)"):
            nn.Flatten(*axes)(x)
    with pytest.raises(ValueError, match="start_dim 2 lies behind end_dim 1"):
        nn.Flatten(2, 1)(x)
    with pytest.raises(IndexError, match=r"axis 1 of a tensor of shape \(3,\)"):
        nn.Flatten()(np.zeros(3))


def test_attention_takes_a_mask_in_numpys_own_type():
    minidl.manual_seed(0)
    attention, x = nn.MultiheadAttention(8, 2), numbers(3, 1, 8).astype(np.float32)
    mask = np.triu(np.full((3, 3), -np.inf), 1)
    expected = attention(x, x, x, is_causal=True)[0]
    for need_weights in (True, False):
        out, _ = attention(x, x, x, attn_mask=mask, need_weights=need_weights)
        assert out.dtype == np.float32
        np.testing.assert_allclose(out.data, expected.data, rtol=1e-5, atol=1e-6)


def test_attention_refuses_sizes_that_do_not_fit():
    with pytest.raises(ValueError, match="multiple of num_heads, got 6 and 4"):
        nn.MultiheadAttention(6, 4)
    with pytest.raises(ValueError, match=r"key \(n, t, 8\) expected, got \(1, 3, 7\)"):
        nn.MultiheadAttention(8, 2, batch_first=True)(*(np.zeros((1, 3, d), np.float32) for d in (8, 7, 8)))


def test_attention_drops_weights_in_training_only_and_keeps_their_mean():
    for need_weights in [True, False]:
        with naming(need_weights):
            layer = nn.MultiheadAttention(4, 2, dropout=0.5, batch_first=True)
            x = Tensor(numbers(1, 400, 4).astype(np.float32))
            plain, _ = layer.eval()(x, x, x, need_weights=need_weights)
            minidl.manual_seed(0)
            dropped, weights = layer.train()(x, x, x, need_weights=need_weights)
            assert not np.array_equal(plain.data, dropped.data)
            np.testing.assert_allclose(plain.data.mean(axis=1), dropped.data.mean(axis=1), atol=0.02)
            if need_weights:
                assert 0.2 < (weights.data == 0).mean() < 0.3  # zero in both heads
            np.testing.assert_array_equal(layer.eval()(x, x, x, need_weights=need_weights)[0].data, plain.data)


def test_attention_refuses_masks_that_do_not_fit():
    for masks, message in [
        ({"key_padding_mask": np.zeros((3, 1), bool)}, r"key_padding_mask \(1, 3\) expected, got \(3, 1\)"),
        ({"attn_mask": np.zeros((3, 2), bool)}, r"attn_mask \(3, 3\) or \(2, 3, 3\) expected, got \(3, 2\)"),
        (
            {"attn_mask": np.zeros((3, 3), int)},
            "a mask has booleans, or numbers that are added to the scores, not int64",
        ),
    ]:
        with naming(message):
            x = np.zeros((1, 3, 4), np.float32)
            with pytest.raises((ValueError, TypeError), match=message):
                nn.MultiheadAttention(4, 2, batch_first=True)(x, x, x, **masks)


def test_dropout_of_channels_drops_all_pixels_of_a_channel_or_none():
    minidl.manual_seed(0)
    out = nn.Dropout2d(0.25)(np.ones((50, 40, 3, 3), np.float32)).data
    assert set(np.unique(out)) == {0, np.float32(1 / 0.75)}
    assert (out.min(axis=(2, 3)) == out.max(axis=(2, 3))).all()
    assert abs((out == 0).mean() - 0.25) < 0.03
    x = np.ones((2, 3, 4), np.float32)
    np.testing.assert_array_equal(nn.Dropout2d(0.5).eval()(x).data, x)


def test_lstm_drops_between_its_layers_in_training_only():
    x = numbers(5, 200, 3).astype(np.float32)
    lstm = nn.LSTM(3, 4, num_layers=2, dropout=0.5)
    plain = lstm.eval()(x)[0].data
    np.testing.assert_array_equal(lstm.eval()(x)[0].data, plain)
    assert not np.array_equal(lstm.train()(x)[0].data, plain)
    single = nn.LSTM(3, 4, dropout=0.5)  # nothing to hand on
    np.testing.assert_array_equal(single.train()(x)[0].data, single.eval()(x)[0].data)


def test_recurrent_layers_refuse_what_does_not_fit():
    for run, message in [
        (
            lambda: nn.LSTM(3, 4)(np.zeros((5, 2, 7), np.float32)),
            r"x \(t, n, 3\) or \(t, 3\) expected, got \(5, 2, 7\)",
        ),
        (lambda: nn.LSTM(3, 4)(np.zeros((0, 2, 3), np.float32)), r"t >= 1 expected, got \(0, 2, 3\)"),
        (
            lambda: nn.LSTM(3, 4)(np.zeros((5, 2, 3), np.float32), (np.zeros((2, 4)), np.zeros((2, 4)))),
            r"h and c \(1, 2, 4\) expected, got \(2, 4\)",
        ),
        (lambda: nn.RNN(3, 4)(np.zeros((5, 2, 3), np.float32), np.zeros((2, 4))), r"RNN: h \(1, 2, 4\) expected, got"),
        (lambda: nn.RNN(3, 4, nonlinearity="gelu"), "RNN: nonlinearity must be 'tanh' or 'relu', got 'gelu'"),
        (
            lambda: nn.RNNCell(3, 4)(np.zeros((2, 5), np.float32)),
            r"RNNCell: x \(n, 3\) or \(3,\) expected, got \(2, 5\)",
        ),
        (lambda: nn.LSTMCell(3, 4)(np.zeros((5, 2, 3), np.float32)), r"x \(n, 3\) or \(3,\) expected, got \(5, 2, 3\)"),
        (lambda: nn.LSTM(3, 0), "LSTM: hidden_size must be at least 1, got 0"),
        (lambda: F.lstm(*(np.ones(s, np.float32) for s in ((2, 1, 3), (1, 4), (1, 4), (16, 2), (16, 4)))), "weight_ih"),
    ]:
        with naming(message), pytest.raises(ValueError, match=message):
            run()


def test_a_wrong_size_or_option_is_refused_by_its_name():
    for make, error, message in [
        (lambda: nn.Linear(4.0, 3), TypeError, r"Linear: in_features .* got 4\.0 of type float: write 4"),
        (lambda: nn.Linear(4, -3), ValueError, "Linear: out_features must be at least 0, got -3"),
        (lambda: nn.Conv2d("3", 8, 3), TypeError, "Conv2d: in_channels .* got '3' of type str: write 3"),
        (lambda: nn.Embedding(2.5, 8), TypeError, "Embedding: num_embeddings must be a whole number"),
        (lambda: nn.BatchNorm2d(None), TypeError, "BatchNorm2d: num_features must be a whole number .* got None"),
        (lambda: nn.BatchNorm1d(4, eps="1e-5"), TypeError, "BatchNorm1d: eps must be a number, got '1e-5' of type str"),
        (lambda: nn.LeakyReLU("0.1"), TypeError, "LeakyReLU: negative_slope must be a number, .*: write 0.1"),
        (lambda: nn.LayerNorm([4, 2.0]), TypeError, "LayerNorm: normalized_shape must be a whole number"),
        (lambda: nn.LSTM(3, 4, dropout=1.5), ValueError, "LSTM: dropout must be from 0 to 1, got 1.5"),
        (lambda: nn.MultiheadAttention(8, 2.0), TypeError, "MultiheadAttention: num_heads .*write 2"),
        (lambda: nn.Dropout("0.5"), TypeError, "Dropout: p must be a number from 0 to 1, got '0.5' of type str"),
        (lambda: nn.Dropout2d(float("nan")), ValueError, "Dropout2d: p must be finite and from 0 to 1, got nan"),
        (lambda: nn.clip_grad_norm_([np.ones(2)], 1.0), TypeError, "takes parameters, .* not ndarray"),
        (lambda: nn.clip_grad_norm_([], "1"), TypeError, "max_norm must be a number .*write 1.0"),
        (
            lambda: nn.models.MLP(64, 10.0),
            TypeError,
            r"MLP: each size .* at least 1, got 10\.0 of type float: write 10",
        ),
        (lambda: nn.models.ResNet("18"), TypeError, "ResNet: depth must be a whole number, got '18' of type str"),
        (lambda: nn.models.GPT(n_embd=8, n_head=0), ValueError, "GPT: n_head must be at least 1, got 0"),
    ]:
        with naming(message), pytest.raises(error, match=message):
            make()
