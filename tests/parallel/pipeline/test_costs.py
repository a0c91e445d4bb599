"""The costs of units: counted and measured, and nothing of the model moves."""

from __future__ import annotations

from functools import partial
from itertools import accumulate

import numpy as np
import pytest

from minidl import Tensor, backward, kernels, nn, no_grad, random
from minidl import functional as F
from minidl.parallel import pipeline

X = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
TOKENS = np.random.default_rng(0).integers(0, 11, (3, 6))


def layers() -> nn.Module:
    random.manual_seed(0)
    first, second = nn.BatchNorm1d(8), nn.BatchNorm1d(3, momentum=None)
    return nn.Sequential(nn.Linear(5, 8), first, nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 3), second)


def gpt() -> nn.Module:
    random.manual_seed(0)
    return nn.models.GPT(vocab_size=11, block_size=6, n_layer=2, n_head=2, n_embd=8, dropout=0.2)


every_unit = pytest.mark.parametrize("unit", ["flops", "seconds"])


# ---- what is counted ----


@pytest.mark.parametrize(
    ("make", "x"), [(gpt, TOKENS), (partial(nn.models.ResNet, 8, 4), np.ones((2, 3, 8, 8), np.float32))]
)
def test_the_flops_of_all_units_are_those_of_the_whole_model(make, x):
    model = make()
    costs = pipeline.costs_of(model, x)
    with kernels.counted() as forward:
        output = model(x)
    with kernels.counted() as back:
        backward(output, np.ones(output.shape, output.dtype))
    assert sum(row.forward for row in costs.rows) == forward.flops
    of_the_tie = 11 * 8 if make is gpt else 0  # the whole model adds the gradients of embedding and head
    assert sum(row.backward for row in costs.rows) == back.flops - of_the_tie
    assert costs.totals == [row.forward + row.backward for row in costs.rows]


def test_the_flops_of_linear_units_by_hand():
    """A product of matrices has two flops for each multiplication, a bias one for each number. x needs no gradient."""
    first, second = pipeline.costs_of(nn.Sequential(nn.Linear(5, 8), nn.Linear(8, 3)), X).rows
    assert (first.forward, first.backward) == (2 * 6 * 8 * 5 + 6 * 8, 2 * 8 * 5 * 6 + 6 * 8)
    assert (second.forward, second.backward) == (2 * 6 * 3 * 8 + 6 * 3, 2 * (3 * 8 * 6 + 6 * 8 * 3) + 6 * 3)


def test_names_and_the_bytes_of_parameters_and_outputs_by_hand():
    """The tied weight counts in the embedding and in the head."""
    rows = pipeline.costs_of(gpt(), TOKENS).rows
    block = 8 * 24 + 24 + 8 * 8 + 8 + 8 * 32 + 32 + 32 * 8 + 8 + 4 * 8
    assert [(row.name, row.parameters, row.output) for row in rows] == [
        ("transformer.wte, transformer.wpe, transformer.drop", 4 * (11 + 6) * 8, 4 * 3 * 6 * 8),
        ("transformer.h.0", 4 * block, 4 * 3 * 6 * 8),
        ("transformer.h.1", 4 * block, 4 * 3 * 6 * 8),
        ("transformer.ln_f, lm_head", 4 * (11 * 8 + 2 * 8), 4 * 3 * 6 * 11),
    ]


class Skip(nn.Module):
    """Tuples pass between its units, the second has no modules, and a parameter is used directly."""

    def __init__(self) -> None:
        self.first, self.scale = nn.Linear(5, 5), nn.Parameter(np.ones(5, np.float32))

    def stages(self) -> list[nn.Stage]:
        return [
            nn.Stage(lambda x: (self.first(x), F.argmax(Tensor(x), axis=1)), self.first),
            nn.Stage(lambda both: (both[0], both[0] * 2)),
            nn.Stage(lambda both: both[0] + both[1] * self.scale, self.scale),
        ]


def test_units_pass_tuples_have_no_modules_and_use_parameters_directly():
    rows = pipeline.costs_of(Skip(), X).rows
    assert [row.name for row in rows] == ["first", "(no parameters)", "scale"]
    assert [row.output for row in rows] == [6 * 5 * 4 + 6 * 8, 2 * 6 * 5 * 4, 6 * 5 * 4]
    assert [row.kept for row in rows] == [6 * 5 * 4 + 6 * 8, 6 * 5 * 4 + 4, 6 * 5 * 4]  # 4: the number 2
    assert [row.parameters for row in rows] == [4 * 30, 0, 4 * 5]


def test_what_is_frozen_costs_no_backward():
    model = layers()
    model[0].requires_grad_(False)
    frozen, *others = pipeline.costs_of(model, X).rows
    assert (frozen.backward, frozen.kept) == (0, 6 * 8 * 4)
    assert all(row.backward > 0 for row in others)


# ---- what is measured ----


def test_seconds_are_the_median_of_the_repetitions_after_the_first_run(monkeypatch: pytest.MonkeyPatch):
    of_units = [[(900, 900), (1, 50), (3, 10), (2, 30)], [(900, 900), (7, 2), (5, 4), (90, 3)]]
    durations = [each for runs in of_units for run in runs for part in run for each in (0, part)]  # none between parts
    clock = iter([*accumulate(durations)])
    monkeypatch.setattr("minidl.parallel.pipeline.costs.perf_counter", lambda: next(clock))
    model = nn.Sequential(nn.Linear(5, 8), nn.Linear(8, 3))
    costs = pipeline.costs_of(model, X, "seconds", repeats=3)
    assert [(row.forward, row.backward) for row in costs.rows] == [(2, 30), (7, 3)]
    assert next(clock, None) is None
    assert costs.unit == "seconds"
    assert [row[3:] for row in costs.rows] == [row[3:] for row in pipeline.costs_of(model, X).rows]


# ---- what does not move ----


@every_unit
def test_gradients_statistics_and_random_numbers_stay_as_they_were(unit):
    model, called = layers(), []
    backward(model(X), np.ones((6, 3), np.float32))
    first = model[0].weight
    first.register_post_accumulate_grad_hook(called.append)
    state, gradients = model.state_dict(), [parameter.grad for parameter in model.parameters()]
    copies = [gradient.copy() for gradient in gradients]
    random.manual_seed(7)
    pipeline.costs_of(model, X, unit)
    drawn = random.generator().random(4)
    random.manual_seed(7)
    np.testing.assert_array_equal(drawn, random.generator().random(4))
    np.testing.assert_equal(model.state_dict(), state)
    assert [parameter.grad for parameter in model.parameters()] == gradients or all(
        parameter.grad is gradient for parameter, gradient in zip(model.parameters(), gradients, strict=True)
    )
    np.testing.assert_equal(gradients, copies)
    assert not called
    assert model.training


def test_backward_is_counted_where_the_caller_records_nothing():
    with no_grad():
        costs = pipeline.costs_of(layers(), X)
    assert costs == pipeline.costs_of(layers(), X)


# ---- how it looks, and what is refused ----


def test_the_table_has_a_line_for_each_unit():
    costs = pipeline.costs_of(nn.models.MLP(5, 40, 3), X)
    assert str(costs).splitlines() == [
        "   unit      forward [flops]  backward [flops]  share  parameters [bytes]  kept [bytes]  output [bytes]",
        "0  layers.0            2,640             2,640    52%                 960           960             960",
        "1  layers.1            1,698             3,138    48%                 492         1,032              72",
    ]
    seconds = pipeline.Costs((costs.rows[0]._replace(forward=1.23e-5, backward=0.0123),), "seconds")
    assert str(seconds).splitlines()[1].split()[2:5] == ["1.23e-05", "1.23e-02", "100%"]


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match=r"^costs_of: unit must be 'flops' or 'seconds', got 'second': did you mean"):
        pipeline.costs_of(layers(), X, "second")
    with pytest.raises(ValueError, match=r"^costs_of: repeats must be at least 1, got 0"):
        pipeline.costs_of(layers(), X, repeats=0)


def test_a_unit_that_returns_a_list_is_refused():
    model = nn.Linear(5, 2)
    model.stages = lambda: [nn.Stage(lambda x: [model(x)], model)]
    with pytest.raises(TypeError, match="must return a tensor or a tuple of tensors, got list"):
        pipeline.costs_of(model, X)
    assert not kernels.counting.active.get()
