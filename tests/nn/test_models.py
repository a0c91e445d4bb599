"""Models: published parameter counts, known names, clear refusals; and that they learn."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import minidl
from minidl import Tensor, kernels, nn, optim
from minidl import functional as F
from minidl.nn.models import GPT, MLP, VGG16, AlexNet, LeNet, ResNet
from tests.together import naming


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with threadpool_limits(1):
        yield


def made(make):
    """The model without its weights, in no time."""
    with nn.building(lambda model: []):
        return make()


def count(model):
    return sum(parameter.size for parameter in model.parameters())


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# ---- counts ----


def test_parameter_counts():
    for make, parameters in [
        (lambda: MLP(64, 128, 10), 64 * 128 + 128 + 128 * 10 + 10),
        (lambda: MLP([784, 512, 512, 10]), 669_706),
        (LeNet, 61_706),
        (lambda: LeNet(size=32), 61_706),
        (lambda: LeNet(size=8), 156 + 2_416 + (16 * 4 * 4 * 120 + 120) + 10_164 + 850),
        (lambda: ResNet(8), 78_042),
        (
            lambda: ResNet(8, width=3),
            78_042 + 2 * (9 * (16 * 16 + 16 * 32 + 32 * 64 + 16**2 + 32**2 + 64**2) + 2 * 112),
        ),
        (lambda: ResNet(20), 269_722 + 2_752),  # the paper's 0.27M and two projections
        (lambda: ResNet(110), 1_727_962 + 2_752),
        (lambda: ResNet(18), 11_689_512),
        (lambda: ResNet(34), 21_797_672),
        (lambda: ResNet(50), 25_557_032),
        (lambda: ResNet(101), 44_549_160),
        (lambda: ResNet(152), 60_192_808),
        (AlexNet, 61_100_840),
        (lambda: AlexNet(groups=2), 60_965_224),
        (VGG16, 138_357_544),
        (GPT, 124_439_808),
    ]:
        with naming(parameters):
            assert count(made(make)) == parameters
    for make, share in ((AlexNet, 0.96), (VGG16, 0.894)):
        assert count(made(make).classifier) / count(made(make)) == pytest.approx(share, abs=0.001)


def test_the_alexnet_of_2012_has_the_paper_s_shapes():
    model = AlexNet(groups=2)
    shapes = [p.shape for name, p in model.features.named_parameters() if name.endswith("weight")]
    # section 3.5 of the paper: kernels x height x width x depth
    assert shapes == [(96, 3, 11, 11), (256, 48, 5, 5), (384, 256, 3, 3), (384, 192, 3, 3), (256, 192, 3, 3)]
    neurons, x = [], Tensor(numbers(1, 3, 224, 224))
    for layer in model.features:
        x = layer(x)
        if isinstance(layer, nn.Conv2d):
            neurons.append(x.size)
    assert neurons[1:] == [186_624, 64_896, 64_896, 43_264]  # the paper's; for the first layer, 55 x 55 x 96, it errs
    assert x.shape == (1, 256, 6, 6)


# ---- names ----


def test_alexnet_and_vgg16_have_torchvision_s_names():
    """The names of the other models are compared with PyTorch's in test_models_parity.py."""

    def layers(model):
        return list(dict.fromkeys(name.rsplit(".", 1)[0] for name, _ in model.named_parameters()))

    assert layers(made(AlexNet)) == [
        *(f"features.{i}" for i in (0, 3, 6, 8, 10)),
        *(f"classifier.{i}" for i in (1, 4, 6)),
    ]
    assert layers(made(VGG16)) == [
        *(f"features.{i}" for i in (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)),
        *(f"classifier.{i}" for i in (0, 3, 6)),
    ]


def test_a_gpt_has_one_weight_for_both_ends_and_may_have_no_biases():
    model = GPT(vocab_size=7, block_size=5, n_layer=2, n_head=2, n_embd=4)
    names = list(model.state_dict())
    assert [name for name, _ in model.named_parameters()] == names[:-1]
    assert model.lm_head.weight is model.transformer.wte.weight
    without = GPT(vocab_size=7, block_size=5, n_layer=2, n_head=2, n_embd=4, bias=False).state_dict()
    assert list(without) == [name for name in names if not name.endswith("bias")]


# ---- starts ----


def test_the_attention_of_a_gpt_can_be_read():
    model = GPT(vocab_size=11, block_size=9, n_layer=3, n_head=2, n_embd=8).eval()
    tokens = np.array([[3, 7, 1, 10, 4, 4], [0, 2, 9, 9, 5, 8]])
    weights = model.attention(tokens)
    assert weights.shape == (3, 2, 2, 6, 6)
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-6)
    assert (np.triu(weights, 1) == 0).all()
    block = model.transformer.h[2]  # the last block's output is made with these weights
    x = model.transformer.h[1](model.transformer.h[0](model.stages()[0](tokens)))
    *_, values = block.attn.heads(block.ln_1(x)).data
    mixed = (weights[2] @ values).transpose(0, 2, 1, 3).reshape(2, 6, 8)
    np.testing.assert_allclose(block.attn.c_proj(Tensor(mixed)).data, block.attn(block.ln_1(x)).data, atol=1e-6)


def test_gpt_starts_as_nanogpt_does_and_predicts_nothing_yet():
    minidl.manual_seed(0)
    model = GPT(vocab_size=65, block_size=32, n_layer=4, n_head=4, n_embd=128)
    state = model.state_dict()
    assert state["transformer.wte.weight"].std() == pytest.approx(0.02, rel=0.05)
    assert state["transformer.h.1.mlp.c_fc.weight"].std() == pytest.approx(0.02, rel=0.05)
    for name in ("attn.c_proj.weight", "mlp.c_proj.weight"):
        assert state[f"transformer.h.3.{name}"].std() == pytest.approx(0.02 / np.sqrt(8), rel=0.05)
    assert not any(array.any() for name, array in state.items() if name.endswith("bias"))
    tokens, targets = np.random.default_rng(0).integers(65, size=(2, 2, 32))
    loss = F.cross_entropy(model(tokens).reshape(-1, 65), targets.reshape(-1))
    assert loss.item() == pytest.approx(np.log(65), rel=0.05)


def test_with_zero_init_residual_every_block_starts_as_the_identity():
    for depth in (8, 50):
        with naming(depth):
            minidl.manual_seed(0)
            model = ResNet(depth, num_classes=10, zero_init_residual=True)
            stage = model.layer1[1:] if depth != 8 else model.layer1
            x = np.abs(numbers(2, model.layer1[-1].bn1.num_features * (4 if depth == 50 else 1), 6, 6))
            np.testing.assert_array_equal(stage(Tensor(x)).data, x)
            plain = ResNet(depth, num_classes=10).layer1[-1]
            assert not np.allclose(plain(Tensor(x)).data, x)


# ---- what they refuse ----


def test_what_the_models_cannot_take_or_be_is_refused():
    for make, shape, message in [
        (lambda: LeNet(size=28), (2, 1, 8, 8), r"LeNet: images \(n, 1, 28, 28\) expected, got \(2, 1, 8, 8\)"),
        (lambda: LeNet(size=8), (2, 3, 8, 8), r"LeNet: images \(n, 1, 8, 8\)"),
        (lambda: ResNet(8), (2, 1, 8, 8), "conv2d"),
        (lambda: MLP(64, 10), (2, 1, 28, 28), r"MLP: samples of 64 numbers expected, got x of shape \(2, 1, 28, 28\)"),
    ]:
        with naming(message), pytest.raises(ValueError, match=message):
            make()(np.zeros(shape, np.float32))
    for make, message in [
        (lambda: LeNet(size=16), "16"),
        (lambda: ResNet(21), "21"),
        (lambda: ResNet(2), "2"),
        (lambda: MLP(3), r"\(3,\)"),
        (lambda: AlexNet(groups=3), "AlexNet: groups must be 1 or 2, got 3"),
    ]:
        with naming(message), pytest.raises(ValueError, match=message):
            make()


def test_alexnet_and_vgg16_refuse_images_that_are_not_imagenet_s():
    alexnet = made(AlexNet)
    with pytest.raises(ValueError, match=r"AlexNet: images \(n, 3, 224, 224\) expected, got \(1, 3, 32, 32\)"):
        alexnet(np.zeros((1, 3, 32, 32)))
    with pytest.raises(ValueError, match=r"VGG16: images \(n, 3, 224, 224\) expected, got \(3, 224, 224\)"):
        made(VGG16)(np.zeros((3, 224, 224)))


def test_gpt_refuses_more_positions_than_its_block_size():
    model = GPT(vocab_size=7, block_size=4, n_layer=1, n_head=1, n_embd=4)
    with pytest.raises(ValueError, match=r"t <= 4 expected, got shape \(1, 5\)"):
        model(np.zeros((1, 5), np.int64))
    with pytest.raises(ValueError, match="got shape"):
        model(np.zeros(4, np.int64))
    with pytest.raises(ValueError, match="multiple of n_head, got 6 and 4"):
        GPT(n_embd=6, n_head=4)


# ---- what they compute ----


def test_resnet_takes_images_of_other_sizes_and_channels():
    assert ResNet(8, in_channels=1)(numbers(2, 1, 8, 8)).shape == (2, 10)
    assert ResNet(14, num_classes=3)(numbers(2, 3, 20, 12)).shape == (2, 3)
    assert ResNet(18, num_classes=5)(numbers(2, 3, 64, 64)).shape == (2, 5)


def test_an_alexnet_computes_a_thousand_logits_or_what_another_classifier_makes_of_its_features():
    model, x = AlexNet().eval(), numbers(1, 3, 224, 224)
    assert model(x).shape == (1, 1000)
    features = model.features(x)
    for classifier in (nn.Linear(256 * 6 * 6, 5), nn.Identity(), nn.Sequential()):
        model.classifier = classifier
        np.testing.assert_array_equal(model(x).numpy(), classifier(features.reshape(1, -1)).numpy())


def test_resnet8_learns_32_random_images_by_heart():
    minidl.manual_seed(0)
    model = ResNet(8, in_channels=1)
    images, labels = numbers(32, 1, 8, 8), np.random.default_rng(1).integers(10, size=32)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(25):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1


def test_a_tiny_gpt_learns_a_sentence_and_recites_it():
    text = np.frombuffer(b"the quick brown fox jumps over the lazy dog. ", np.uint8) - 32
    block = 8
    with kernels.use("numba"):
        minidl.manual_seed(0)
        model = GPT(vocab_size=96, block_size=block, n_layer=2, n_head=2, n_embd=32)
        optimizer = optim.AdamW(model.parameters(), lr=1e-2)
        starts = np.arange(len(text) - block)
        x = np.stack([text[i : i + block] for i in starts])
        y = np.stack([text[i + 1 : i + 1 + block] for i in starts]).astype(np.int64)
        for _ in range(60):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x).reshape(-1, 96), y.reshape(-1))
            loss.backward()
            nn.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        assert loss.item() < 0.4  # a first letter says little about the second: this cannot reach 0
        recited = model.generate(text[None, 4:8], 26, temperature=0)  # "the" comes twice, "quic" once
        assert bytes((recited[0] + 32).astype(np.uint8)) == b"quick brown fox jumps over the"


def test_generated_tokens_come_from_the_seed_and_keep_the_prompt():
    minidl.manual_seed(0)
    model = GPT(vocab_size=50, block_size=4, n_layer=1, n_head=1, n_embd=8).eval()
    prompt = np.array([[1, 2, 3], [4, 5, 6]])
    drawn = []
    for seed in (1, 1, 2):
        minidl.manual_seed(seed)
        drawn.append(model.generate(prompt, 6))
    first, second, other = drawn
    assert first.shape == (2, 9)
    np.testing.assert_array_equal(first[:, :3], prompt)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_draws_follow_the_softmax_of_the_logits():
    minidl.manual_seed(0)
    model = GPT(vocab_size=3, block_size=1, n_layer=1, n_head=1, n_embd=2)
    model.forward = lambda tokens: Tensor(np.broadcast_to(np.log([0.2, 0.3, 0.5]), (*tokens.shape, 3)))
    drawn = model.generate(np.zeros((20_000, 1), np.int64), 1)[:, 1]
    np.testing.assert_allclose(np.bincount(drawn) / len(drawn), [0.2, 0.3, 0.5], atol=0.015)


# ---- layers that a user puts in the place of others ----


class Doubled(nn.Sequential):
    def forward(self, x):
        return 2 * super().forward(x)


def test_a_containers_own_forward_is_applied_by_the_model_and_by_its_stages():
    model, x = ResNet(8).eval(), numbers(2, 3, 8, 8)
    model.layer3, model.fc = nn.Identity(), nn.Linear(32, 3)
    plain = model(x).numpy()
    model.layer2 = Doubled(*model.layer2)
    model.fc.bias.data *= 2
    np.testing.assert_allclose(model(x).numpy(), 2 * plain, rtol=1e-5)
    np.testing.assert_array_equal(nn.run_stages(model.stages(), x).numpy(), model(x).numpy())
