"""Layers and optimizers of the core against the workshop's."""

import numpy as np
import pytest

from minidl import functional as F
from minidl import nn, optim
from minidl.mini import nn as core
from minidl.mini.tensor import Tensor, cross_entropy
from tests.mini.jobs import first_weights

rng = np.random.default_rng(5)
TOKENS, NEXT = rng.integers(0, 37, (3, 11)), rng.integers(0, 37, (3, 11))


def tiny_gpts():
    """The same GPT by the core and by the workshop, in float64."""
    workshop = nn.models.GPT(vocab_size=37, block_size=13, n_layer=2, n_head=3, n_embd=24)
    for parameter in workshop.parameters():
        parameter.data = rng.normal(0.01, 0.3, parameter.shape)  # biases too, which GPT begins with 0
    ours = core.gpt(37, 13, blocks=2, heads=3, width=24, rng=rng)
    ours.set_weights(np.concatenate([parameter.numpy().reshape(-1) for parameter in workshop.parameters()]))
    return ours, workshop


def test_a_gpt_has_the_workshops_logits_and_gradients():
    ours, workshop = tiny_gpts()
    logits, expected = ours(Tensor(TOKENS)), workshop(TOKENS)
    np.testing.assert_allclose(logits.data, expected.numpy(), rtol=1e-10, atol=1e-10)
    cross_entropy(logits, labels=NEXT, count=NEXT.size).backward()
    F.cross_entropy(expected.reshape(-1, 37), NEXT.reshape(-1)).backward()
    gradient = np.concatenate([parameter.grad.reshape(-1) for parameter in workshop.parameters()])
    np.testing.assert_allclose(ours.gradient(), gradient, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda: core.SGD(0.13), lambda p: optim.SGD(p, lr=0.13)),
        (lambda: core.SGD(0.13, 0.87), lambda p: optim.SGD(p, lr=0.13, momentum=0.87)),
        (lambda: core.Adam(0.013), lambda p: optim.Adam(p, lr=0.013)),
    ],
    ids=["SGD", "momentum", "Adam"],
)
def test_an_optimizer_makes_the_workshops_steps(ours, theirs):
    parameter = nn.Parameter(rng.normal(size=211))
    weights, optimizer, other = parameter.numpy().copy(), ours(), theirs([parameter])
    for _ in range(7):
        gradient = rng.normal(0.3, 2.0, 211)
        parameter.grad = gradient.copy()
        other.step()
        weights = optimizer.step(weights, gradient)
        np.testing.assert_allclose(weights, parameter.numpy(), rtol=1e-12)


def test_weights_go_out_and_come_back_as_one_vector_and_a_shared_one_is_there_once():
    ours, workshop = tiny_gpts()
    vector = ours.weights()
    assert vector.size == sum(parameter.size for parameter in workshop.parameters())
    ours.set_weights(vector[::-1].copy())
    np.testing.assert_array_equal(ours.weights(), vector[::-1])


def test_first_weights_are_drawn_as_pytorch_draws_them():
    layer = core.Linear(4096, 17, np.random.default_rng(3))
    for weights in (layer.weight.data, layer.bias.data):
        assert abs(weights).max() <= 1 / 64
        assert weights.dtype == np.float32
    assert layer.weight.data.std() == pytest.approx(1 / 64 / 3**0.5, rel=0.02)


def test_the_jobs_weights_lie_in_the_cores_order():
    from tests.mini import jobs

    model = core.mlp(*jobs.SIZES, rng=rng)
    workshop = jobs.job().build_model()
    model.set_weights(first_weights(jobs.job()))
    x = rng.normal(size=(9, 64)).astype(np.float32)
    np.testing.assert_allclose(model(Tensor(x)).data, workshop(x).numpy(), rtol=1e-4, atol=1e-6)


def test_first_biases_have_both_signs_and_first_embeddings_the_deviation_of_gpt_2():
    bias = core.Linear(64, 4001, np.random.default_rng(3)).bias.data
    assert bias.mean() == pytest.approx(0, abs=0.01)
    embedding = core.Embedding(97, 89, 61, np.random.default_rng(3))
    for weights in (embedding.token.data, embedding.position.data):
        assert weights.std() == pytest.approx(0.02, rel=0.03)


def test_weights_and_logits_of_a_gpt_are_float32():
    model = core.gpt(37, 13, blocks=1, heads=3, width=24, rng=rng)
    assert {parameter.data.dtype for parameter in model.parameters()} == {np.dtype(np.float32)}
    assert model(Tensor(TOKENS)).data.dtype == np.float32
