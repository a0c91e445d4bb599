"""Writing into a tensor that backward still needs: backward raises, or gives the gradient of the original values."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import numpy as np
import pytest

from minidl import Tensor, functional, kernels, manual_seed, no_grad, optim
from minidl.tape import allow_overwritten
from tests.functional.cases import CASES, Case, sweep
from tests.together import naming

TRASH = 1  # every write puts other numbers in: x - 1, or not x


def changed(array: np.ndarray) -> np.ndarray:
    return ~array if array.dtype.kind == "b" else array - TRASH


def copy_(tensor: Tensor) -> None:
    tensor.copy_(changed(tensor.data))


def assign_in_place(tensor: Tensor) -> None:
    if tensor.dtype.kind == "b":
        tensor.data ^= True
    else:
        tensor.data -= TRASH


def assign_other(tensor: Tensor) -> None:
    tensor.data = changed(tensor.data)


WRITES: dict[str, Callable[[Tensor], None]] = {
    "copy_": copy_,
    "data -=": assign_in_place,
    "data =": assign_other,
    "detach().copy_": lambda tensor: copy_(tensor.detach()),
    "T.copy_": lambda tensor: copy_(tensor.T),
    "reshape().copy_": lambda tensor: copy_(tensor.reshape(tensor.shape)),
    "[...].copy_": lambda tensor: copy_(tensor[...]),
    "T.detach()[...].data -=": lambda tensor: assign_in_place(tensor.T.detach()[...]),
    "Tensor(tensor).copy_": lambda tensor: copy_(Tensor(tensor)),
}


def forward(case: Case) -> tuple[list[Tensor], Tensor]:
    manual_seed(0)
    tensors = [Tensor(a, requires_grad=d) for a, d in zip(case.arrays(), case.differentiable, strict=True)]
    return tensors, case.function(functional, *tensors)


def gradients(tensors: list[Tensor]) -> list[np.ndarray | None]:
    return [tensor.grad for tensor in tensors]


@sweep
def test_overwriting_an_operand_or_the_output_raises_or_does_not_matter(
    cases: Callable[[], list[Case]], kernel: str
) -> None:
    """Each tensor is overwritten in a way of its own, in turn."""
    ways = itertools.cycle(WRITES.items())
    with kernels.use(kernel):
        for case in cases():
            tensors, out = forward(case)
            seed = np.random.default_rng(1).standard_normal(out.shape)
            out.backward(seed)
            expected = gradients(tensors)
            for position in range(len(tensors) + 1):
                way, write = next(ways)
                tensors, out = forward(case)
                with naming(f"{case}, {way} into tensor {position}"):
                    try:
                        write([*tensors, out][position])
                        out.backward(seed)
                    except (ValueError, RuntimeError) as error:  # read-only: expanded without a copy
                        assert re.search("read-only|overwritten in place", str(error))  # noqa: PT017
                        continue
                    np.testing.assert_equal(gradients(tensors), expected)


NOTICED = r"overwritten in place.*before the update, or run the forward pass again"
NEEDED = {  # operand, or -1 for the output
    **dict.fromkeys(["mul", "div", "matmul", "linear", "conv2d", "batch_norm", "layer_norm", "group_norm"], (0, 1)),
    **dict.fromkeys(["exp", "tanh", "sigmoid", "relu", "sqrt", "softmax", "log_softmax"], (-1,)),
    **dict.fromkeys(["gelu", "log", "embedding"], (0,)),
    "pow": (0, 1, -1),
    "max": (0, -1),
    "scaled_dot_product_attention": (0, 1, 2),
}
WHOLE = {"pow": "two tensors, broadcast", "max": "first axis"}


@pytest.mark.parametrize("way", WRITES)
def test_overwriting_what_backward_needs_raises(way: str) -> None:
    for operation, positions in NEEDED.items():
        wanted = WHOLE.get(operation)
        case = next(c for c in CASES if c.operation == operation and (wanted is None or c.what == wanted))
        for position in positions:
            tensors, out = forward(case)
            WRITES[way]([*tensors, out][position])
            with naming(f"{case}, tensor {position}"), pytest.raises(RuntimeError, match=NOTICED):
                out.backward(np.ones(out.shape))


def test_what_backward_does_not_need_may_be_overwritten() -> None:
    for operation in ("add", "sub", "neg", "sum", "mean", "reshape", "transpose", "cat", "stack"):
        case = next(c for c in CASES if c.operation == operation)
        for position in range(len(case.operands) + 1):
            tensors, out = forward(case)
            copy_([*tensors, out][position])
            with naming(f"{case}, tensor {position}"):
                out.backward(np.ones(out.shape))
            assert all(tensor.grad is not None for tensor in tensors)


def test_a_gradient_step_under_no_grad_writes_into_the_parameter() -> None:
    w = Tensor(np.array([4.0, 8.0]), requires_grad=True)
    same, memory = w, w.data
    w.grad = np.array([1.0, 2.0])
    with no_grad():
        w -= 0.5 * w.grad
        w += 1
        w *= [2.0, 1.0]
        w /= Tensor(2.0)
        w[0] = 7.0
    assert w is same
    assert w.data is memory
    assert w.requires_grad
    np.testing.assert_array_equal(w.data, [7.0, 4.0])


def test_writing_by_an_operator_is_noticed_by_backward() -> None:
    for write in ("w += 1", "w -= 1", "w *= 2", "w /= 2", "w[0] = 1", "w[..., :1] = v"):
        w = Tensor(np.array([4.0, 8.0]), requires_grad=True)
        loss = (w[1:] * w[1:]).sum()  # read by one view, written by way of another
        with no_grad():
            exec(write, {"w": w[:], "v": np.ones(1)})
        with naming(write), pytest.raises(RuntimeError, match="overwritten in place"):
            loss.backward()


def test_a_leaf_is_not_changed_in_place_while_operations_are_recorded() -> None:
    w, x = Tensor(np.array([4.0, 8.0]), requires_grad=True), Tensor(np.ones(2))
    with pytest.raises(RuntimeError, match=r"leaf of shape \(2,\).* cannot be changed in place.* `with no_grad"):
        w -= 1.0
    with pytest.raises(RuntimeError, match=r"items .* cannot be assigned .* `with no_grad\(\):`"):
        w[0] = 1.0
    with pytest.raises(RuntimeError, match="cannot be assigned"):
        x[0] = w[0]
    np.testing.assert_array_equal(w.data, [4.0, 8.0])


def test_a_running_total_of_losses_passes_gradients_to_all() -> None:
    w, total = Tensor(np.array([1.0, 2.0]), requires_grad=True), Tensor(0.0)
    for factor in (1.0, 2.0):
        total += (factor * w).sum()
    total.backward()
    np.testing.assert_array_equal(w.grad, [3.0, 3.0])


def test_an_update_of_another_type_or_shape_is_refused() -> None:
    whole, x = Tensor(np.array([1, 2])), Tensor(np.ones(2, np.float32))
    with pytest.raises(TypeError):
        whole += np.array([0.5, 0.5])
    with pytest.raises(ValueError, match="broadcast"):
        x += np.ones((3, 2))
    x += np.ones(2)  # float64 into float32
    assert x.dtype == np.float32


def test_a_write_by_way_of_the_array_is_announced_with_increment_version() -> None:
    x = Tensor(np.arange(4.0), requires_grad=True)
    out = (x * x).sum()
    out.backward(retain_graph=True)
    x.numpy()[...] = 0.0
    x.increment_version()
    with pytest.raises(RuntimeError, match="overwritten in place"):
        out.backward()


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
def test_an_optimizer_step_between_forward_and_backward_is_noticed(kernel: str) -> None:
    for name in ("SGD", "Adagrad", "RMSprop", "Adam", "AdamW", "LARS", "LAMB"):
        with kernels.use(kernel), naming(name):
            weight = Tensor(np.ones((2, 3)), requires_grad=True)
            x = Tensor(np.ones((4, 3)), requires_grad=True)
            optimizer = getattr(optim, name)([weight], lr=0.1)
            functional.linear(x, weight).sum().backward()
            stale = functional.linear(x, weight).sum()
            optimizer.step()
            with pytest.raises(RuntimeError, match=r"shape \(2, 3\).*overwritten in place.*optimizer step"):
                stale.backward()
            functional.linear(x, weight).sum().backward()


def test_overwritten_values_are_read_within_allow_overwritten_only() -> None:
    x, w = Tensor([[1.0]], requires_grad=True), Tensor([[2.0]], requires_grad=True)
    first, second = functional.linear(x, w), functional.linear(x, w)
    w.copy_(5.0)
    with allow_overwritten():
        first.backward()
    np.testing.assert_array_equal(x.grad, [[5.0]])
    with pytest.raises(RuntimeError, match="overwritten in place"):
        second.backward()


def test_a_copy_that_indexing_or_reshape_made_is_not_overwritten_with_its_source() -> None:
    w = Tensor(np.ones(2), requires_grad=True)
    for copied in (lambda x: x[:, np.array([0, 1])], lambda x: x[:, :2].T.reshape(-1)[:2]):
        source = Tensor(np.arange(12.0).reshape(3, 4))
        copy = copied(source)
        loss = (w * copy).sum()
        before = copy.numpy().copy()
        source.zero_()
        np.testing.assert_array_equal(copy.numpy(), before)
        loss.backward()


def test_a_view_of_a_view_is_overwritten_with_its_source() -> None:
    w = Tensor(np.ones(2), requires_grad=True)
    for viewed in (
        lambda x: x[1][:2],
        lambda x: x.T[:2, 1],
        lambda x: x.reshape(-1)[:2],
        lambda x: x[0].expand(5, 4)[:, :2],
        lambda x: x.detach()[1:, 2:][0],
    ):
        source = Tensor(np.arange(12.0).reshape(3, 4))
        loss = (w * viewed(source)).sum()
        source.zero_()
        with pytest.raises(RuntimeError, match="overwritten in place"):
            loss.backward()
