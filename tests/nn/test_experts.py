"""The mixture of experts: routing, capacity, the load-balancing loss, gradients."""

import numpy as np
import pytest

from minidl import Tensor, gradcheck, nn, random
from minidl import functional as F
from minidl.functional.added_loss import weighing_loss
from minidl.nn.experts import load_balancing_loss, route
from minidl.recomputation import checkpoint


def mixture(seed: int = 0, **settings) -> nn.MixtureOfExperts:
    """With a gate that chooses decidedly, so that small steps do not change the routing."""
    random.manual_seed(seed)
    layer = nn.MixtureOfExperts(**{"width": 5, "hidden": 7, "experts": 3} | settings).double()
    layer.gate.weight.data *= 9
    return layer


def tokens(count: int = 13, seed: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 5))


def one_by_one(layer: nn.MixtureOfExperts, x: np.ndarray, capacity: int) -> tuple[np.ndarray, int]:
    """The textbook's loops: all first choices, then all second ones, in the order of the tokens."""
    logits = x @ layer.gate.weight.numpy().T
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    chosen = np.argsort(-p, axis=1)[:, : layer.top]
    y, used, dropped = np.zeros_like(x), [0] * len(layer.experts), 0
    for rank in range(layer.top):
        for t, expert in enumerate(chosen[:, rank]):
            if used[expert] == capacity:
                dropped += 1
                continue
            used[expert] += 1
            gate = p[t, expert] / (p[t, chosen[t]].sum() if layer.top > 1 else 1)
            y[t] += gate * layer.experts[expert](Tensor(x[t])).numpy()
    return y, dropped


@pytest.mark.parametrize(("top", "factor", "capacity"), [(1, 1.25, 6), (2, 0.7, 7), (2, 1.5, 13), (1, 0.1, 1)])
def test_the_layer_is_the_loop_over_its_tokens(top, factor, capacity):
    for seed in range(3):
        layer = mixture(seed, top=top, capacity_factor=factor)
        y, dropped = one_by_one(layer, tokens(seed=seed), capacity)
        np.testing.assert_allclose(layer(tokens(seed=seed)).numpy(), y, rtol=1e-12, atol=1e-12)
        assert layer.counts.dropped == dropped
        assert layer.counts.load.sum() == top * 13


def test_with_all_tokens_at_one_expert_the_last_ones_are_dropped_and_their_output_is_zero():
    layer = mixture(capacity_factor=1.1)
    layer.gate.weight.data[:] = np.array([[1.0], [2.0], [0.5]])
    y = layer(np.abs(tokens(10))).numpy()
    assert layer.capacity(10) == 4
    assert (y[:4] != 0).all()
    assert (y[4:] == 0).all()
    assert layer.counts.load.tolist() == [0, 10, 0]
    assert layer.counts.dropped == 6


def test_a_capacity_is_computed_from_the_decimal_number():
    assert mixture(experts=1, capacity_factor=1.1, top=1).capacity(10) == 10  # at most all tokens
    assert mixture(experts=11, capacity_factor=1.1).capacity(10) == 1  # in floating-point numbers 1.0000000000000002
    assert mixture(experts=4, capacity_factor=1.25, top=2).capacity(13) == 9


def test_evaluation_drops_nothing_and_counts_nothing():
    layer = mixture(capacity_factor=0.1, top=2).eval()
    y, dropped = one_by_one(layer, tokens(), capacity=13)
    np.testing.assert_allclose(layer(tokens()).numpy(), y, rtol=1e-12)
    assert dropped == layer.counts.dropped == layer.counts.load.sum() == 0


def test_first_choices_take_slots_before_second_ones():
    routing = route(np.array([[0, 1], [1, 0], [1, 2]]), experts=3, capacity=1)
    assert routing.slots.tolist() == [[0, 3], [1, 3], [3, 2]]
    assert routing.tokens.tolist() == [0, 1, 2]
    assert routing.dropped == 3


@pytest.mark.parametrize("top", [1, 2])
def test_the_gradients_are_those_of_finite_differences(top):
    layer = mixture(top=top, capacity_factor=0.8, balance=0.0)
    for holder in (layer.gate, layer.experts[1].c_fc):

        def output(x, weight, holder=holder):
            vars(holder)["weight"] = weight  # a tensor in the place of the parameter
            return layer(x)

        assert gradcheck(output, [tokens(), holder.weight.numpy().copy()])


def test_the_balance_loss_has_the_papers_values_and_its_gradient_is_that_of_finite_differences():
    even = np.full((6, 3), 1 / 3)
    assert load_balancing_loss(Tensor(even), np.arange(6) % 3).item() == pytest.approx(1)
    first = np.array([0, 2, 2, 1, 2, 2])
    p = np.random.default_rng(5).dirichlet(np.ones(3), 6)
    by_hand = 3 * sum(np.mean(first == i) * p[:, i].mean() for i in range(3))
    assert load_balancing_loss(Tensor(p), first).item() == pytest.approx(by_hand, rel=1e-14)
    assert gradcheck(lambda x: load_balancing_loss(x, first), [p])


def test_backward_adds_the_balance_loss_with_the_weight_of_the_models_loss():
    def gate_gradient(balance: float, weight: float) -> np.ndarray:
        layer = mixture(balance=balance)
        with weighing_loss(weight):
            y = layer(tokens())
        ((y * y).mean() * weight).backward()
        return layer.gate.weight.grad

    layer = mixture()
    p = F.softmax(layer.gate(tokens()))
    load_balancing_loss(p, p.numpy().argmax(axis=1)).backward()
    added = gate_gradient(0.3, 0.7) - gate_gradient(0.0, 0.7)
    np.testing.assert_allclose(added, 0.3 * 0.7 * layer.gate.weight.grad, rtol=1e-9, atol=1e-14)


def test_recomputation_has_the_same_gradients_and_counts_once():
    gradients, counts = [], []
    for recompute in (False, True):
        layer, x = mixture(top=2, capacity_factor=0.6, balance=0.3), Tensor(tokens(), requires_grad=True)
        with weighing_loss(0.7):
            y = checkpoint(layer, x) if recompute else layer(x)
        (y * y).sum().backward()
        gradients.append([x.grad, *(p.grad for p in layer.parameters())])
        counts.append((layer.counts.load.tolist(), layer.counts.dropped))
    assert all(np.array_equal(a, b) for a, b in zip(*gradients, strict=True))
    assert counts[0] == counts[1]
    assert counts[0][1] > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "MixtureOfExperts: width must be at least 1"),
        ({"hidden": -2}, "MixtureOfExperts: hidden must be at least 1"),
        ({"experts": 0}, "experts must be at least 1"),
        ({"top": 4}, "top must be"),
        ({"capacity_factor": 0}, "capacity_factor must be above 0"),
        ({"capacity_factor": -1.0}, "capacity_factor must be above 0"),
        ({"balance": -0.1}, "balance must be at least 0"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        mixture(**settings)
