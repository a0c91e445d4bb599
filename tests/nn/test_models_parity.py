"""Models against the same networks written in PyTorch: one state, one output, one set of gradients."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import minidl
from minidl import functional as F
from minidl import kernels
from minidl.nn.models import GPT, MLP, LeNet, ResNet

torch = pytest.importorskip("torch", reason="parity tests need the extra `parity`")
tnn, tF = torch.nn, torch.nn.functional  # noqa: N816


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with threadpool_limits(1):
        yield


class TorchLeNet(tnn.Module):
    def __init__(self, pool1, padding2, features):
        super().__init__()
        self.pool1 = pool1
        self.conv1 = tnn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = tnn.Conv2d(6, 16, 5, padding=padding2)
        self.fc1, self.fc2, self.fc3 = tnn.Linear(features, 120), tnn.Linear(120, 84), tnn.Linear(84, 10)

    def forward(self, x):
        x = tF.avg_pool2d(torch.tanh(self.conv1(x)), self.pool1)
        x = tF.avg_pool2d(torch.tanh(self.conv2(x)), 2).flatten(1)
        return self.fc3(torch.tanh(self.fc2(torch.tanh(self.fc1(x)))))


class TorchBlock(tnn.Module):
    """Basic (two 3x3) or bottleneck (1x1, 3x3, 1x1) by the number of convolutions."""

    def __init__(self, n_in, n_mid, stride, bottleneck):
        super().__init__()
        n_out = 4 * n_mid if bottleneck else n_mid
        shapes = (
            [(n_in, n_mid, 1, 1), (n_mid, n_mid, 3, stride), (n_mid, n_out, 1, 1)]
            if bottleneck
            else [(n_in, n_mid, 3, stride), (n_mid, n_out, 3, 1)]
        )
        self.count = len(shapes)
        for i, (a, b, k, s) in enumerate(shapes, 1):
            setattr(self, f"conv{i}", tnn.Conv2d(a, b, k, s, k // 2, bias=False))
            setattr(self, f"bn{i}", tnn.BatchNorm2d(b))
        self.downsample = None
        if stride != 1 or n_in != n_out:
            self.downsample = tnn.Sequential(tnn.Conv2d(n_in, n_out, 1, stride, bias=False), tnn.BatchNorm2d(n_out))

    def forward(self, x):
        out = x
        for i in range(1, self.count + 1):
            out = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(out))
            if i < self.count:
                out = torch.relu(out)
        return torch.relu(out + (x if self.downsample is None else self.downsample(x)))


class TorchResNet(tnn.Module):
    def __init__(self, blocks, bottleneck, imagenet, num_classes):
        super().__init__()
        width = 64 if imagenet else 16
        self.conv1 = tnn.Conv2d(3, width, *((7, 2, 3) if imagenet else (3, 1, 1)), bias=False)
        self.bn1 = tnn.BatchNorm2d(width)
        self.pool = tnn.MaxPool2d(3, 2, 1) if imagenet else tnn.Identity()
        n = width
        for i, length in enumerate(blocks):
            stage = []
            for j in range(length):
                stage.append(TorchBlock(n, width * 2**i, 2 if i and not j else 1, bottleneck))
                n = width * 2**i * (4 if bottleneck else 1)
            setattr(self, f"layer{i + 1}", tnn.Sequential(*stage))
        self.stages = len(blocks)
        self.fc = tnn.Linear(n, num_classes)

    def forward(self, x):
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        for i in range(self.stages):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.fc(tF.adaptive_avg_pool2d(x, 1).flatten(1))


class TorchGPTBlock(tnn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = tnn.LayerNorm(d)
        self.attn = tnn.ModuleDict({"c_attn": tnn.Linear(d, 3 * d), "c_proj": tnn.Linear(d, d)})
        self.ln_2 = tnn.LayerNorm(d)
        self.mlp = tnn.ModuleDict({"c_fc": tnn.Linear(d, 4 * d), "c_proj": tnn.Linear(4 * d, d)})

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = (
            part.view(n, t, self.heads, d // self.heads).transpose(1, 2)
            for part in self.attn["c_attn"](self.ln_1(x)).split(d, dim=2)
        )
        y = tF.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, d)
        x = x + self.attn["c_proj"](y)
        return x + self.mlp["c_proj"](tF.gelu(self.mlp["c_fc"](self.ln_2(x))))


class TorchGPT(tnn.Module):
    def __init__(self, vocab_size, block_size, n_layer, n_head, n_embd):
        super().__init__()
        self.transformer = tnn.ModuleDict(
            {
                "wte": tnn.Embedding(vocab_size, n_embd),
                "wpe": tnn.Embedding(block_size, n_embd),
                "h": tnn.ModuleList(TorchGPTBlock(n_embd, n_head) for _ in range(n_layer)),
                "ln_f": tnn.LayerNorm(n_embd),
            }
        )
        self.lm_head = tnn.Linear(n_embd, vocab_size, bias=False)
        self.transformer["wte"].weight = self.lm_head.weight

    def forward(self, tokens):
        parts = self.transformer
        x = parts["wte"](tokens) + parts["wpe"](torch.arange(tokens.shape[1]))
        for block in parts["h"]:
            x = block(x)
        return self.lm_head(parts["ln_f"](x))


def torch_mlp():
    class TorchMLP(tnn.Module):
        def __init__(self):
            super().__init__()
            self.layers = tnn.ModuleList([tnn.Linear(64, 32), tnn.Linear(32, 16), tnn.Linear(16, 10)])

        def forward(self, x):
            x = x.flatten(1)
            for layer in self.layers[:-1]:
                x = torch.relu(layer(x))
            return self.layers[-1](x)

    return TorchMLP()


MODELS = {
    "MLP": (lambda: MLP(64, 32, 16, 10), torch_mlp, (6, 1, 8, 8)),
    "LeNet 28x28": (LeNet, lambda: TorchLeNet(2, 0, 400), (3, 1, 28, 28)),
    "LeNet 8x8": (lambda: LeNet(size=8), lambda: TorchLeNet(1, 2, 256), (6, 1, 8, 8)),
    "ResNet-8": (lambda: ResNet(8), lambda: TorchResNet((1, 1, 1), False, False, 10), (4, 3, 16, 16)),
    "ResNet-18": (lambda: ResNet(18, 7), lambda: TorchResNet((2, 2, 2, 2), False, True, 7), (2, 3, 64, 64)),
    "ResNet-50": (lambda: ResNet(50, 7), lambda: TorchResNet((3, 4, 6, 3), True, True, 7), (2, 3, 64, 64)),
    "GPT": (lambda: GPT(29, 12, 2, 2, 16), lambda: TorchGPT(29, 12, 2, 2, 16), (3, 10)),
}


@pytest.mark.parametrize(
    ("name", "dtype", "training", "kernel"),
    [
        *((name, "float64", True, "numba") for name in MODELS),
        *((name, "float32", True, "numpy") for name in MODELS if name != "ResNet-50"),  # whose norms magnify rounding
        *((name, "float64", False, "numba") for name in ("ResNet-8", "ResNet-50", "GPT")),
    ],
)
def test_models_equal_the_same_network_in_pytorch(name, dtype, training, kernel):
    make_ours, make_theirs, shape = MODELS[name]
    minidl.manual_seed(0)
    torch.manual_seed(0)
    random = np.random.default_rng(1)
    ours, theirs = make_ours().to(dtype).train(training), make_theirs().to(getattr(torch, dtype)).train(training)

    assert list(theirs.state_dict()) == list(ours.state_dict())
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict({key: torch.from_numpy(array) for key, array in ours.state_dict().items()})

    x = random.integers(29, size=shape) if name == "GPT" else random.standard_normal(shape).astype(dtype)
    rtol = 1e-3 if dtype == "float32" else 1e-10  # of each array's largest number: float32 adds up over the layers
    with kernels.use(kernel):
        logits = ours(x)
        expected = theirs(torch.from_numpy(x))
        close(logits.data, expected.detach().numpy(), rtol, "logits")
        labels = random.integers(7, size=logits.size // logits.shape[-1])
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels)
        loss.backward()
    tF.cross_entropy(expected.reshape(-1, expected.shape[-1]), torch.from_numpy(labels)).backward()
    theirs_by_name = dict(theirs.named_parameters())
    ours_by_name = dict(ours.named_parameters())
    assert len(theirs_by_name) == len(ours_by_name)
    largest = max(abs(p.grad).max() for p in ours_by_name.values())
    for key, parameter in ours_by_name.items():
        twin = theirs_by_name.get(key, theirs.lm_head.weight if name == "GPT" else None)
        assert parameter.grad.dtype == dtype
        # Some gradients are 0 but for rounding: the convolutions' before a batch norm, in their own direction.
        close(parameter.grad, twin.grad.numpy(), rtol, key, floor=1e-3 * largest)
    for key, buffer in ours.named_buffers():
        close(buffer.data, dict(theirs.named_buffers())[key].numpy(), rtol, key)


def close(ours, theirs, rtol, name, floor=0.0):
    """Equal to rtol of the largest number of the array."""
    scale = max(abs(theirs).max(), floor)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=rtol * scale, err_msg=name)
