"""The page "What differs from PyTorch": a test for each of its lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import minidl
from minidl import Tensor, cluster, data, grad, nn, optim
from minidl import functional as F

PAGE = (Path(__file__).resolve().parent.parent / "minidl" / "from_pytorch.md").read_text(encoding="utf-8")


def leaf(*values: float) -> Tensor:
    return Tensor(np.array(values), requires_grad=True)


def types() -> None:
    assert Tensor([1, 2]).dtype == Tensor(1).dtype == np.float32
    assert Tensor(np.array([1.0])).dtype == np.float64
    assert (Tensor(np.arange(2)) * Tensor([1.0, 2.0])).dtype == np.float64
    assert (Tensor(np.arange(2)) / 2).dtype == np.float64
    for operation in (lambda x, w: F.linear(x, w), lambda x, w: x @ w):
        with pytest.raises(TypeError, match="different types"):
            operation(Tensor(np.ones((2, 2))), np.ones((2, 2), np.float32))


def integers_beyond_a_type() -> None:
    x = Tensor(np.array([1, 255], np.uint8))
    with pytest.raises(OverflowError, match="300 does not fit into uint8"):
        x + 300
    assert (x == -1).tolist() == [False, False]


def gradients_are_arrays() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    assert type(x.grad) is np.ndarray
    assert type(grad((x * x).sum(), x)[0]) is np.ndarray
    with pytest.raises(NotImplementedError, match="no second derivatives"):
        grad((x * x).sum(), x, create_graph=True)
    x.grad = None
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad, [2.0, 4.0])


def data_is_an_array() -> None:
    x = leaf(1.0, 2.0)
    assert type(x.data) is np.ndarray
    assert x.numpy() is x.data


def numpys_functions() -> None:
    assert type(np.exp(Tensor([0.0]))) is np.ndarray
    with pytest.raises(TypeError, match=r"type x\.exp\(\)"):
        np.exp(leaf(0.0))


def names() -> None:
    assert optim.StepLR
    assert nn.clip_grad_norm_
    for name in ("cat", "float32", "tensors"):
        assert not hasattr(minidl, name)
    with pytest.raises(TypeError, match="inplace"):
        nn.Dropout(inplace=True)
    with pytest.raises(TypeError, match="device"):
        minidl.zeros(2, device="cpu")
    with pytest.raises(TypeError, match=r"softmax\(\) got an unexpected keyword argument 'out'"):
        F.softmax(leaf(0.3), out=None)  # type: ignore[call-arg]


def minibatches() -> None:
    [(x, y)] = data.DataLoader([([1.0, 2.0], 1), ([3.0, 4.0], 0)], 2)
    assert type(x) is type(y) is np.ndarray
    assert F.cross_entropy(nn.Linear(2, 2)(x), y).shape == ()
    assert Tensor(x).view(1, 4).size(0) == 1


def states(folder: Path) -> None:
    model, other = nn.Linear(2, 3), nn.Linear(2, 3)
    np.savez(folder / "model.npz", **model.state_dict())
    other.load_state_dict(np.load(folder / "model.npz"))
    np.testing.assert_array_equal(other.weight.data, model.weight.data)


def weights_in_16_bits() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).to("bfloat16")
    assert model[1].running_mean.dtype == np.float32
    weight = model[0].weight
    before, optimizer = weight.data.astype(np.float32), optim.SGD(model.parameters(), lr=1e-5)
    weight.grad = np.ones(weight.shape, weight.dtype)
    optimizer.step()
    assert optimizer.state[weight]["master_param"].dtype == np.float32
    np.testing.assert_allclose(optimizer.state[weight]["master_param"], before - 1e-5, rtol=1e-6)


def random_numbers() -> None:
    minidl.manual_seed(0)
    first = minidl.randn(3).numpy()
    minidl.manual_seed(0)
    np.testing.assert_array_equal(minidl.randn(3).numpy(), first)
    assert first[0] != pytest.approx(1.5410, abs=1e-4)  # PyTorch's first for seed 0


def softmax() -> None:
    x = Tensor(np.arange(8.0).reshape(2, 2, 2))
    for out in (F.softmax(x), nn.Softmax()(x)):
        np.testing.assert_array_equal(out.numpy(), F.softmax(x, dim=-1).numpy())


def losses() -> None:
    for loss in (F.mse_loss, F.l1_loss, F.binary_cross_entropy_with_logits):
        with pytest.raises(ValueError, match="must be equal"):
            loss(Tensor(np.zeros((3, 1))), np.zeros(3))


def attention() -> None:
    x = Tensor(np.eye(3, dtype=np.float32))
    mask = np.array([[True, True, True], [False, True, True], [True, False, True]])
    both = F.scaled_dot_product_attention(x, x, x, attn_mask=mask, is_causal=True)
    one = F.scaled_dot_product_attention(x, x, x, attn_mask=mask & np.tri(3, dtype=bool))
    np.testing.assert_array_equal(both.numpy(), one.numpy())
    layer = nn.MultiheadAttention(3, 1, batch_first=True)
    out, weights = layer(x[None], x[None], x[None], key_padding_mask=np.array([[True] * 3]))
    assert not weights.numpy().any()
    np.testing.assert_array_equal(out.numpy()[0], [layer.out_proj.bias.data] * 3)


def axes() -> None:
    x = Tensor([[1.0, 3.0], [4.0, 2.0]])
    assert x.max(axis=1).tolist() == [3.0, 4.0]
    for values, indices in (x.max(dim=1), x.max(1), x.max(1, True)):
        assert values.numpy().ravel().tolist() == [3.0, 4.0]
        assert indices.numpy().ravel().tolist() == [1, 0]
    for operation in ("sum", "mean", "amax", "amin", "var", "std", "any", "all", "norm", "prod", "logsumexp"):
        over = getattr(x, operation)
        one, other = over(dim=1, keepdim=True), over(axis=1, keepdims=True)
        assert one.shape == (2, 1)
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    for operation in ("softmax", "log_softmax"):
        np.testing.assert_array_equal(getattr(F, operation)(x, dim=0).numpy(), getattr(x, operation)(axis=0).numpy())
    assert F.cat([x, x], dim=1).shape == F.cat([x, x], axis=1).shape == (2, 4)
    assert F.stack([x, x], dim=1).shape == F.stack([x, x], axis=1).shape == (2, 2, 2)
    assert x.sum(dim=[0, 1]).item() == x.sum(axis=(0, 1)).item() == 10.0
    assert x.var(axis=1).tolist() == x.var(1).tolist() == [2.0, 2.0]
    for operation in ("sum", "mean", "norm", "amax"):
        assert getattr(x, operation)(dim=()).tolist() == x.tolist()
    assert np.isnan(x.var(dim=()).numpy()).all()  # n = 1


def size() -> None:
    x = Tensor(np.zeros((2, 3)))
    assert x.size == x.numel() == 6
    assert x.size() == (2, 3)
    assert x.size(0) == 2
    assert x.size(-1) == 3


def transposed() -> None:
    x = Tensor(np.zeros((2, 3, 4)))
    assert x.T.shape == (4, 3, 2)
    assert x.transpose(1, 2).shape == x.mT.shape == (2, 4, 3)
    assert x.transpose(2, 0, 1).shape == x.permute(2, 0, 1).shape == (4, 2, 3)


def views() -> None:
    x = Tensor(np.arange(6.0).reshape(2, 3))
    assert x.T.view(6).tolist() == [0, 3, 1, 4, 2, 5]
    assert np.shares_memory(x.view(6).data, x.data)
    assert x[0, ::-1].tolist() == [2, 1, 0]


def indexing() -> None:
    x = Tensor(np.arange(24.0).reshape(2, 3, 4))
    assert x[0, :, [0, 1]].shape == (2, 3)
    np.testing.assert_array_equal(x[0, :, [0, 1]].numpy(), x.numpy()[0, :, [0, 1]])
    assert x[0][:, [0, 1]].shape == (3, 2)


def in_place() -> None:
    x = leaf(1.0, 2.0)
    h = before = x * 2
    h += x
    assert h is not before
    h.sum().backward()
    np.testing.assert_array_equal(x.grad, [3.0, 3.0])
    with pytest.raises(RuntimeError, match=r"write h = h \+ x"):
        (x * 2).add_(x)


def ties() -> None:
    x = Tensor([1.0, 2.0, 2.0, 1.0])
    assert x.sort().indices.tolist() == x.argsort().tolist() == [0, 3, 1, 2]
    assert x.argsort(descending=True).tolist() == [1, 2, 0, 3]
    assert x.topk(3).indices.tolist() == [1, 2, 0]
    assert Tensor([0.0, 1.0] * 20).topk(3).indices.tolist() == [1, 3, 5]
    assert Tensor([0.0, 1.0] * 20).topk(3, largest=False).indices.tolist() == [0, 2, 4]
    assert x.max(0).indices.item() == 1


def backward() -> None:
    x = leaf(1.0, 2.0)
    out = (x + x).sum()  # keeps no arrays
    out.backward()
    with pytest.raises(RuntimeError, match="already walked"):
        out.backward()


def collectives() -> None:
    def program(comm: cluster.Communicator) -> tuple[list[int], bool]:
        message = comm.irecv(1 - comm.rank)
        comm.barrier()
        completed = message.is_completed()
        comm.send(comm.all_reduce(comm.rank, op="max"), 1 - comm.rank)
        assert message.wait() == 1
        return comm.all_gather(comm.rank), completed

    assert cluster.launch(program, nodes=2, on="simulation").results == [([0, 1], False)] * 2


def devices() -> None:
    assert Tensor(1.0).device == "cpu"
    assert Tensor(1.0).to("cpu").cpu().item() == 1.0
    with pytest.raises(RuntimeError, match=r"kernels\.use\('cupy'\)"):
        Tensor(1.0).to("cuda")


def errors() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        F.matmul(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(TypeError, match="holds numbers"):
        Tensor("x")


LINES = (
    *(types, integers_beyond_a_type, gradients_are_arrays, data_is_an_array, numpys_functions, names, minibatches),
    *(states, weights_in_16_bits, random_numbers, axes, softmax, losses, attention, size, transposed, views, indexing),
    *(in_place, ties, backward, collectives, devices, errors),
)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.__name__)
def test_what_the_page_says_of_a_difference_is_so(line: Callable[..., None], tmp_path: Path) -> None:
    line(*[tmp_path] if line is states else [])


def test_every_difference_that_the_page_lists_has_its_test() -> None:
    listed = [name.lower().replace("'", "").replace(" ", "_") for name in re.findall(r"^- \*\*(.+?)\*\*", PAGE, re.M)]
    assert listed == [line.__name__ for line in LINES]


# ---- what is the same, though it was not ----


def test_predictions_are_compared_elementwise_with_labels_and_something_that_is_no_number_is_unequal() -> None:
    out, y = Tensor([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]]), np.array([1, 1, 1])
    _, predicted = out.max(1)
    assert (predicted == Tensor(y)).sum().item() == 2
    assert (predicted == y).float().mean().item() == pytest.approx(2 / 3)
    assert (out.argmax(dim=1) != y).tolist() == [False, True, False]
    assert (out == None) is False  # noqa: E711
    assert (out != "all") is True


def test_a_number_is_looked_for_in_a_tensor_and_a_tensor_of_one_integer_is_an_index_and_a_length() -> None:
    assert 2.0 in Tensor([1.0, 2.0])
    assert 3.0 not in Tensor([1.0, 2.0])
    assert "a" not in Tensor([1.0, 2.0])
    i = Tensor(np.array([1, 2])).sum()
    assert ["a", "b", "c", "d"][i] == "d"
    assert len(range(i)) == int(i) == 3


def test_a_tensor_of_one_number_takes_the_type_of_the_tensor_beside_it() -> None:
    """A mean over a mask divides by a count, an integer: the activations stay float32."""
    x, count = Tensor(np.ones((2, 3), np.float32), requires_grad=True), Tensor(np.array([True, False])).sum()
    factor = Tensor(np.float64(2.0), requires_grad=True)
    outs = (x / count, count * x, x + factor, factor - x, F.maximum(x, factor), F.where(x.data > 0, x, factor))
    for out in (*outs, x * np.array(2.0), np.array(2) - x):
        assert out.dtype == np.float32
    (x * factor).sum().backward()
    assert factor.grad.dtype == np.float64
    assert float(factor.grad) == 6.0
    assert (Tensor(np.arange(3)) * Tensor(2.5)).tolist() == [0.0, 2.5, 5.0]  # integers do not cut it off
    assert (count + factor).dtype == np.float64
