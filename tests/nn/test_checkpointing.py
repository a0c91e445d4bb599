"""A checkpointed model computes the numbers of the plain one, each stage at most twice, and keeps less."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, kernels, nn, no_grad, random
from minidl.nn import segments
from minidl.nn.segments import Segment
from tests.together import naming

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def gpt() -> nn.Module:
    return nn.models.GPT(vocab_size=11, block_size=6, n_layer=4, n_head=2, n_embd=8, dropout=0.3)


def mixed() -> nn.Module:
    """A model in a model, dropout, batch norm, and stages that are views."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(12, 9), nn.BatchNorm1d(9), nn.Dropout(0.4), nn.models.MLP(9, 8, 7), nn.Tanh()
    )


MODELS: dict[str, tuple[Callable[[], nn.Module], np.ndarray]] = {
    "GPT with dropout and a tie": (gpt, RNG.integers(0, 11, (4, 6))),
    "ResNet with batch norm": (lambda: nn.models.ResNet(8), normal(4, 3, 8, 8)),
    "MLP": (lambda: nn.models.MLP(12, 9, 8, 7, 5), normal(4, 12)),
    "LeNet": (lambda: nn.models.LeNet(8), normal(4, 1, 8, 8)),
    "Sequential": (mixed, normal(4, 3, 4)),
}


class Counted:
    """The model, with a count of the calls of each of its stages."""

    def __init__(self, name: str) -> None:
        random.manual_seed(1)
        build, self.x = MODELS[name]
        self.model = build()
        stages = self.model.stages
        self.calls = [0] * len(stages())

        def counted(number: int, stage: nn.Stage) -> Callable[[Any], Any]:
            def function(x: Any) -> Any:
                self.calls[number] += 1
                return stage(x)

            return function

        vars(self.model)["stages"] = lambda: [
            nn.Stage(counted(i, stage), *stage.modules) for i, stage in enumerate(stages())
        ]

    def plain(self) -> Callable[[Any], Any]:
        return lambda x: nn.run_stages(self.model.stages(), x)


def results(model: nn.Module, forward: Callable[[Any], Any], x: Any) -> list[np.ndarray]:
    """Output, loss, gradients and state after a step, and what the generator draws next."""
    random.manual_seed(2)
    out = forward(x)
    loss = (out * out).mean()
    loss.backward()
    found = [out.numpy(), loss.numpy(), *(p.grad for p in model.parameters()), *model.state_dict().values()]
    model.zero_grad()
    return [*found, random.generator().integers(1000, size=3)]


def same(first: list[np.ndarray], second: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_losses_gradients_statistics_and_random_numbers_are_those_of_the_plain_model_to_the_bit():
    for name, k, training in [*((name, None, True) for name in MODELS), ("Sequential", 1, True), ("MLP", 4, False)]:
        with naming(name, k, training):
            plain, other = Counted(name), Counted(name)
            plain.model.train(training)
            nn.checkpointing(other.model.train(training), k)
            assert same(results(plain.model, plain.plain(), plain.x), results(other.model, other.model, other.x))


def test_backward_runs_every_stage_once_more_and_computes_one_more_forward_pass():
    for name in MODELS:
        with naming(name):
            plain, other = Counted(name), Counted(name)
            nn.checkpointing(other.model, every=2)
            flops = []
            for counted, forward in ((plain, plain.plain()), (other, other.model)):
                random.manual_seed(2)
                with kernels.counted() as before:
                    loss = forward(counted.x).sum()
                with kernels.counted() as after:
                    loss.backward()
                flops.append((before.flops, after.flops))
            with kernels.counted() as forward_pass:
                plain.plain()(plain.x)
            assert flops[1] == (flops[0][0], flops[0][1] + forward_pass.flops)
            assert other.calls == [2] * len(other.calls)


def test_segments_that_are_kept_run_once():
    """The best division under a budget: what it says is recomputed is what is counted."""
    for name in MODELS:
        with naming(name):
            counted = Counted(name)
            costs = nn.stage_costs(counted.model, counted.x)
            smallest, whole = segments.peak(costs, segments.least_peak(costs)), sum(cost.kept for cost in costs)
            chosen = segments.least_recomputation(costs, (smallest + whole) / 2)
            random.manual_seed(1)
            plain = Counted(name)
            with kernels.counted() as before:
                plain.plain()(plain.x).sum().backward()
            nn.checkpointing(counted.model, chosen)
            counted.calls[:] = [0] * len(counted.calls)
            with kernels.counted() as after:
                counted.model(counted.x).sum().backward()
            assert counted.calls == [1 + part.recomputed for part in chosen for _ in range(part.start, part.end)]
            assert 1 in counted.calls
            assert after.flops == before.flops + segments.recomputed_flops(costs, chosen)


def test_without_gradients_nothing_is_kept_and_nothing_is_recomputed():
    counted = Counted("ResNet with batch norm")
    model = nn.checkpointing(counted.model).eval()
    with no_grad():
        out = model(counted.x)
    assert counted.calls == [1] * 5
    assert not out.requires_grad
    model.requires_grad_(False)
    assert not model(counted.x).requires_grad
    assert counted.calls == [2] * 5


def test_frozen_first_stages_are_not_recomputed():
    counted = Counted("MLP")
    for layer in list(counted.model.layers)[:2]:
        layer.requires_grad_(False)
    nn.checkpointing(counted.model, 2)(counted.x).sum().backward()
    assert counted.calls == [1, 1, 2, 2]


# ---- the model stays what it was ----


def test_names_state_and_stages_stay():
    for name in MODELS:
        with naming(name):
            build, x = MODELS[name]
            plain, model = build(), nn.checkpointing(build())
            assert [key for key, _ in model.named_parameters()] == [key for key, _ in plain.named_parameters()]
            assert [key for key, _ in model.named_modules()] == [key for key, _ in plain.named_modules()]
            assert list(map(str, model.stages())) == list(map(str, plain.stages()))
            assert model.ties() == plain.ties()
            assert repr(model) == repr(plain)
            assert type(model) is type(plain)
            plain.load_state_dict(model.state_dict())
            model.load_state_dict(plain.state_dict())
            with no_grad():
                assert np.array_equal(plain.eval()(x).numpy(), model.eval()(x).numpy())


def test_copies_are_checkpointed_too_and_independent():
    for name in MODELS:
        with naming(name):
            build, x = MODELS[name]
            model = nn.checkpointing(build(), 2).eval()
            for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
                assert twin.forward.model is twin
                twin(x).sum().backward()
                assert all(p.grad is not None for p in twin.parameters())
                assert all(p.grad is None for p in model.parameters())


def test_layers_that_are_replaced_are_seen_and_a_changed_number_of_stages_is_refused():
    model = nn.checkpointing(nn.Sequential(nn.Linear(3, 3), nn.Tanh()))
    nn.replace_layers(model, lambda name, module: nn.ReLU() if isinstance(module, nn.Tanh) else None)
    x = normal(4, 3)
    assert (model(x).numpy() >= 0).all()
    model.add_module("2", nn.Tanh())
    with pytest.raises(RuntimeError, match=r"has 3 stages, but had 2 .* call nn.checkpointing again"):
        model(x)
    assert nn.checkpointing(model)(x).shape == (4, 3)


class Doubled(nn.models.MLP):
    def forward(self, x: Any) -> Tensor:
        return super().forward(x) * 2.0


def test_what_cannot_be_checkpointed_is_refused():
    for call, error, message in [
        (lambda: nn.checkpointing(nn.models.MLP(4, 3, 2), 3), ValueError, "2 stages cannot fill 3 segments: use at mo"),
        (lambda: nn.checkpointing(nn.models.MLP(4, 3, 2), every=3), ValueError, "a segment of 3 stages is longer than"),
        (lambda: nn.checkpointing(nn.models.MLP(4, 3, 2), 2, every=1), ValueError, "not both"),
        (lambda: nn.checkpointing(nn.models.MLP(4, 3, 2), [Segment(0, 1)]), ValueError, "from stage 0 to 2"),
        (lambda: nn.checkpointing(nn.models.MLP(4, 3, 2), 1.5), TypeError, "segments"),
        (lambda: nn.checkpointing(nn.Linear(4, 3)), NotImplementedError, "Linear does not say where it can be cut"),
        (lambda: nn.checkpointing(Doubled(4, 3)), ValueError, "Doubled defines forward but inherits stages"),
    ]:
        with naming(message), pytest.raises(error, match=message):
            call()
