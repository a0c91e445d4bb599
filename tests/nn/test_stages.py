"""Stages: the units of a model compute together what its forward computes, wherever it is cut."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from minidl import Tensor, backward, nn, random
from minidl import functional as F
from tests.tiers import exhaustively
from tests.together import naming

RNG = np.random.default_rng(0)
IMAGES_224 = RNG.normal(size=(1, 3, 224, 224)).astype(np.float32)


class Skip(nn.Module):
    """The sum of what two layers and a learned offset make of x; the second stage passes x and its own result on."""

    def __init__(self):
        self.offset = nn.Parameter([0.5, 0.25, 0.125])
        self.first, self.second, self.drop = nn.Linear(3, 3), nn.Linear(3, 2), nn.Dropout(0.5)

    def forward(self, x):
        return nn.run_stages(self.stages(), x)

    def stages(self):
        return [
            nn.Stage(lambda x: x + self.offset, self.offset),
            nn.Stage(lambda x: (x, F.tanh(self.first(x))), self.first),
            nn.Stage(lambda both: self.second(self.drop(both[0] + both[1])), self.second, self.drop),
        ]


def small_gpt(dropout=0.0):
    return nn.models.GPT(vocab_size=7, block_size=6, n_layer=3, n_head=2, n_embd=4, dropout=dropout)


TOKENS = RNG.integers(0, 7, (3, 5))
MODELS = {  # the model, its input, the number of its stages
    "MLP": (lambda: nn.models.MLP(12, 9, 8, 5), RNG.normal(size=(4, 3, 4)).astype(np.float32), 3),
    "MLP of one layer": (lambda: nn.models.MLP(12, 5), RNG.normal(size=(4, 12)).astype(np.float32), 1),
    "LeNet, digits": (lambda: nn.models.LeNet(8), RNG.normal(size=(2, 1, 8, 8)).astype(np.float32), 5),
    "LeNet, MNIST": (lambda: nn.models.LeNet(28), RNG.normal(size=(2, 1, 28, 28)).astype(np.float32), 5),
    "GPT": (small_gpt, TOKENS, 5),
    "GPT with dropout": (lambda: small_gpt(0.3), TOKENS, 5),
    "ResNet-8": (lambda: nn.models.ResNet(8), RNG.normal(size=(2, 3, 8, 8)).astype(np.float32), 5),
    "ResNet-18": (lambda: nn.models.ResNet(18), RNG.normal(size=(2, 3, 32, 32)).astype(np.float32), 10),
    "Sequential": (
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.Dropout(0.5), nn.models.MLP(4, 3, 2)),
        RNG.normal(size=(4, 3, 4)).astype(np.float32),
        4,
    ),
    "a skip connection": (Skip, RNG.normal(size=(4, 3)).astype(np.float32), 3),
}
LARGE = {
    "AlexNet": (nn.models.AlexNet, IMAGES_224, 20),
    "VGG16": (nn.models.VGG16, IMAGES_224, 38),
}


def made(name):
    random.manual_seed(1)
    build, x, count = (MODELS | LARGE)[name]
    return build(), x, count


def outputs_and_gradients(model, x, forward):
    """What `forward` computes of x, and the gradients of the sum of its squares, with fixed dropout masks."""
    names = {module: name for name, module in model.named_modules()}
    random.begin_forward(random.ForwardPass(names, seed=3, epoch=1, step=2, replica=0))
    try:
        out = forward(x)
    finally:
        random.begin_forward(None)
    (out * out).sum().backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    return [out.numpy(), *gradients]


def same(first, second):
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("names", [tuple(MODELS), *exhaustively((("AlexNet", "VGG16"),))], ids=["small", "large"])
def test_the_stages_one_after_another_are_the_forward_pass_to_the_bit(names):
    """With dropout masks and the running statistics of batch norm."""
    for name in names:
        with naming(name):
            model, x, count = made(name)
            twin = copy.deepcopy(model)
            stages = twin.stages()
            assert len(stages) == count
            by_forward = outputs_and_gradients(model, x, model)
            by_stages = outputs_and_gradients(twin, x, lambda x, stages=stages: nn.run_stages(stages, x))
            assert same(by_forward, by_stages)
            assert same(model.state_dict().values(), twin.state_dict().values())


def test_every_parameter_buffer_dropout_and_batch_norm_belongs_to_a_stage_and_no_other_does():
    for name, (make, _, count) in (MODELS | LARGE).items():
        with naming(name):
            with nn.building(lambda model: []):
                model = make()
            stages = model.stages()
            assert len(stages) == count
            assert {p for stage in stages for p in stage.parameters()} == set(model.parameters())
            assert {b for stage in stages for b in stage.buffers()} == set(model.buffers())
            inside = {module for stage in stages for used in stage.modules for module in used.modules()}
            assert {module for module in model.modules() if not list(module.children())} <= inside


def test_a_stage_uses_all_parameters_that_it_names_and_no_others():
    """Each stage, called alone, gives a gradient to all of its own parameters."""
    for name in MODELS:
        model, x, _ = made(name)
        for stage in model.stages():
            out = stage(x)
            for tensor in out if isinstance(out, tuple) else (out,):
                if tensor.requires_grad:
                    (tensor * tensor).sum().backward(retain_graph=True)
            used = {parameter for parameter in model.parameters() if parameter.grad is not None}
            assert used == set(stage.parameters()), (name, stage)
            model.zero_grad()
            x = tuple(tensor.detach() for tensor in out) if isinstance(out, tuple) else out.detach()


CUT = [name for name in MODELS if name not in ("LeNet, MNIST", "ResNet-18", "GPT with dropout")]


def test_backward_through_a_cut_equals_the_whole_backward_to_the_bit():
    for name in CUT:
        with naming(name):
            for cut in range(1, MODELS[name][2]):
                model, x, _ = made(name)
                model.eval()
                whole = outputs_and_gradients(model, x, model)

                first, second = model.stages()[:cut], model.stages()[cut:]
                sent = nn.run_stages(first, x)
                sent = sent if isinstance(sent, tuple) else (sent,)
                received = tuple(Tensor(tensor.numpy().copy(), requires_grad=True) for tensor in sent)
                out = nn.run_stages(second, received if len(received) > 1 else received[0])
                (out * out).sum().backward()
                pairs = [
                    (tensor, leaf.grad) for tensor, leaf in zip(sent, received, strict=True) if tensor.requires_grad
                ]
                if pairs:
                    backward([tensor for tensor, _ in pairs], [gradient for _, gradient in pairs])
                parts = [out.numpy(), *(parameter.grad for parameter in model.parameters())]
                if model.ties():  # the sum over the stages has another order
                    assert all(np.allclose(a, b, rtol=1e-5, atol=1e-7) for a, b in zip(whole, parts, strict=True))
                else:
                    assert same(whole, parts)


def test_ties_are_found_in_shared_modules_and_in_buffers():
    norm, linear = nn.BatchNorm2d(3), nn.Linear(2, 2, bias=False)
    model = nn.Sequential(linear, norm, nn.Linear(2, 2), norm, linear)
    assert model.ties()[:2] == [("0.weight", "4.weight"), ("1.weight", "3.weight")]
    assert ("1.running_mean", "3.running_mean") in model.ties()
    assert nn.Linear(2, 2).ties() == []
    assert small_gpt().ties() == [("transformer.wte.weight", "lm_head.weight")]


def test_the_stages_of_gpt_are_the_embedding_each_block_and_the_head():
    model = small_gpt()
    assert [str(stage) for stage in model.stages()] == [
        "Stage(Embedding, Embedding, Dropout)",
        "Stage(Block)",
        "Stage(Block)",
        "Stage(Block)",
        "Stage(LayerNorm, Linear)",
    ]
    features = model.transformer(TOKENS)
    assert np.array_equal(model.lm_head(features).numpy(), model(TOKENS).numpy())


def test_a_sequential_with_a_forward_of_its_own_does_not_inherit_stages():
    class Doubled(nn.Sequential):
        def forward(self, x):
            return super().forward(x) * 2.0

    class Renamed(nn.Sequential):
        pass

    assert Doubled(nn.Linear(4, 2))(np.ones((1, 4), np.float32)).shape == (1, 2)
    with pytest.raises(NotImplementedError, match="Doubled does not say where it can be cut"):
        Doubled(nn.Linear(4, 2)).stages()
    assert len(Renamed(nn.Linear(4, 2), nn.Tanh()).stages()) == 2


def test_a_stage_refuses_what_is_no_member_of_a_model():
    linear = nn.Linear(2, 2)
    with pytest.raises(TypeError, match="each by itself, not a list"):
        nn.Stage(linear, [linear])
