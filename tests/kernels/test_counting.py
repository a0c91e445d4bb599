"""Flops and bytes are counted as a reader would by hand, for each context by itself, and only on request."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, kernels, nn, no_grad, optim
from minidl import functional as F
from minidl.kernels import counting, jit, reference
from minidl.kernels.counting import Work
from minidl.kernels.flops import OPERATIONS, UPDATES, WRITTEN
from tests.kernels.test_kernels_agree import KERNELS, LAYOUTS, arguments_of, names
from tests.together import naming

FLOAT = 4  # bytes of a float32

both_kernels = pytest.mark.parametrize("name", ["numpy", "numba"])


def alone(program: Callable[[], Any]) -> Any:
    """Run the program in a context of its own, as a simulated rank does."""
    return contextvars.Context().run(program)


def work_of(program: Callable[[], object]) -> Work:
    with kernels.counted() as work:
        program()
    return Work(work.flops, work.nbytes)


def ones(*shape: int, grad: bool = False) -> Tensor:
    return Tensor(np.ones(shape, np.float32), requires_grad=grad)


# ---- by hand ----


@both_kernels
def test_a_training_step_of_an_mlp_counts_as_by_hand(name: str) -> None:
    batch, d_in, d_hidden, d_out = 32, 20, 50, 10
    model = nn.models.MLP(d_in, d_hidden, d_out)
    x, labels = np.ones((batch, d_in), np.float32), np.zeros(batch, np.int64)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    first, second = 2 * batch * d_in * d_hidden, 2 * batch * d_hidden * d_out
    hidden, out = batch * d_hidden, batch * d_out
    parameters = (d_in + 1) * d_hidden + (d_hidden + 1) * d_out

    with kernels.use(name):
        with kernels.counted() as forward:
            loss = F.cross_entropy(model(x), labels)
        with kernels.counted() as backward:  # of what was computed before counting was on
            loss.backward()
        with kernels.counted() as update:
            optimizer.step()

    softmax = 5 * out
    assert forward.flops == (first + hidden) + hidden + (second + out) + softmax  # products and biases; relu
    weights_and_inputs = second + second + first  # the gradient of the first layer's input is not needed
    assert backward.flops == out + weights_and_inputs + out + hidden + hidden  # the softmax; biases; relu
    assert update.flops == 2 * parameters
    assert update.nbytes == 3 * FLOAT * parameters  # parameter and gradient are read, the parameter is written


@both_kernels
def test_a_linear_layer_costs_the_same_forward_and_for_each_gradient(name: str) -> None:
    x, weight = ones(7, 5, grad=True), ones(3, 5, grad=True)
    product, arrays = 2 * 7 * 5 * 3, FLOAT * (7 * 5 + 3 * 5 + 7 * 3)
    with kernels.use(name):
        out = F.linear(x, weight)
        seed = np.ones((7, 3), np.float32)
        assert work_of(lambda: F.linear(x, weight)) == (product, arrays)
        assert work_of(lambda: out.backward(seed, inputs=[x], retain_graph=True)) == (product, arrays)
        assert work_of(lambda: out.backward(seed, inputs=[weight], retain_graph=True)) == (product, arrays)
        x.grad = weight.grad = None
        assert work_of(lambda: out.backward(seed)) == (2 * product, 2 * arrays)


@both_kernels
def test_a_convolution_counts_by_the_formula(name: str) -> None:
    for stride, padding, size in ((1, 0, (6, 7)), (2, 1, (4, 5)), (1, 2, (10, 11))):
        x, weight, bias = ones(2, 3, 8, 9, grad=True), ones(4, 3, 3, 3, grad=True), ones(4, grad=True)
        numbers = 2 * 4 * prod(size)
        products = 2 * numbers * 3 * 3 * 3
        with kernels.use(name):
            with kernels.counted() as forward:
                out = F.conv2d(x, weight, bias, stride, padding)
            with kernels.counted() as backward:
                out.backward(np.ones(out.shape, np.float32))
        arrays = FLOAT * (x.size + weight.size + bias.size + numbers)
        assert out.shape[2:] == size
        assert (forward.flops, forward.nbytes) == (products + numbers, arrays)
        assert backward.flops == 2 * products + numbers


@both_kernels
def test_lenet_forward_is_416_520_multiply_adds_an_image(name: str) -> None:
    multiply_adds = 28 * 28 * 6 * 25 + 10 * 10 * 16 * 150 + 400 * 120 + 120 * 84 + 84 * 10
    assert multiply_adds == 416_520
    others = (
        (28 * 28 * 6 + 10 * 10 * 16 + 120 + 84 + 10)  # biases
        + (28 * 28 * 6 + 10 * 10 * 16 + 120 + 84)  # tanh
        + (14 * 14 * 6 + 5 * 5 * 16) * 4  # average pooling: 3 sums and a division
    )
    model, images = nn.models.LeNet(), np.zeros((3, 1, 28, 28), np.float32)
    with kernels.use(name), no_grad():
        assert work_of(lambda: model(images)).flops == 3 * (2 * multiply_adds + others)


def test_an_update_costs_so_many_flops_a_parameter() -> None:
    weight = ones(5, 7, grad=True)
    weight.grad = np.ones((5, 7), np.float32)
    nesterov = {"momentum": 0.9, "nesterov": True}
    for kind, settings, flops in (
        (optim.SGD, {}, 2),
        (optim.SGD, {"momentum": 0.9}, 5),
        (optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}, 7),
        (optim.SGD, nesterov, 7),
        (optim.SGD, {"momentum": 0.9, "momentum_form": "v"}, 5),
        (optim.SGD, {**nesterov, "momentum_form": "v"}, 7),
        (optim.Adagrad, {}, 7),
        (optim.RMSprop, {}, 9),
        (optim.RMSprop, {"centered": True, "momentum": 0.9}, 17),
        (optim.Adam, {}, 13),
        (optim.Adam, {"weight_decay": 0.1}, 15),
        (optim.AdamW, {"weight_decay": 0.1}, 14),
        (optim.LARS, {}, 4 + 2 * 2),  # and two norms
        (optim.LAMB, {"weight_decay": 0.1}, 14 + 2 * 2 + 2),  # two norms and the step itself
    ):
        assert work_of(kind([weight], lr=0.1, **settings).step).flops == flops * weight.size, (kind, settings)


# ---- what calls no kernel ----


def test_arithmetic_is_one_flop_a_number() -> None:
    a, b = ones(3, 4), ones(3, 4)
    for operation in (F.add, F.sub, F.mul, F.div, F.pow):
        assert work_of(lambda operation=operation: operation(a, b)) == (12, 3 * 12 * FLOAT)
    for operation in (F.neg, F.abs, F.exp, F.log, F.sqrt):
        assert work_of(lambda operation=operation: operation(a)) == (12, 2 * 12 * FLOAT)
    assert work_of(lambda: F.add(a, ones(4))).flops == 12  # broadcast
    assert work_of(lambda: a.sum()) == (12, 13 * FLOAT)
    assert work_of(lambda: a.mean(axis=0)).flops == 12
    assert work_of(lambda: a @ ones(4, 5)) == (2 * 3 * 4 * 5, FLOAT * (12 + 20 + 15))


def test_backward_through_arithmetic_is_one_flop_a_number_of_each_new_gradient() -> None:
    a, b = ones(3, 4, grad=True), ones(3, 4, grad=True)
    seed = np.ones((3, 4), np.float32)
    assert work_of(lambda product=a * b: product.backward(seed)).flops == 2 * 12
    a.grad = b.grad = None
    assert work_of(lambda total=a + b: total.backward(seed)).flops == 0  # the gradient is handed on
    bias = ones(4, grad=True)
    total = a.detach() + bias
    assert work_of(lambda: total.backward(seed)).flops == 12  # summed over the rows
    a.grad = None
    assert work_of(lambda twice=a + a: twice.backward(seed)).flops == 12  # where paths meet
    assert work_of(lambda: (a + 1).backward(seed)).flops == 12 + 12  # a + 1; into a.grad
    with no_grad():
        assert work_of(lambda: a.__isub__(b.detach())) == (12, 3 * 12 * FLOAT)


def test_moving_numbers_costs_bytes_where_they_are_copied_and_no_flops() -> None:
    a = ones(3, 4)
    assert work_of(lambda: a.reshape(4, 3)) == (0, 0)
    assert work_of(lambda: a.transpose(0, 1)) == (0, 0)
    assert work_of(lambda: a[1:]) == (0, 0)
    assert work_of(lambda: a.detach()) == (0, 0)
    assert work_of(lambda: a.T.reshape(2, 6)) == (0, 2 * 12 * FLOAT)
    assert work_of(lambda: a[[0, 0]]) == (0, 2 * 8 * FLOAT)
    rows = np.zeros((2, 5), np.int64)
    assert work_of(lambda: F.embedding(rows, a)).flops == 0


# ---- every kernel ----


def test_every_kernel_has_a_formula() -> None:
    assert names(reference) == names(jit) == {*OPERATIONS, *UPDATES}
    assert not set(OPERATIONS) & set(UPDATES)
    assert set(WRITTEN) <= set(UPDATES)


@pytest.mark.parametrize("name", KERNELS)
@np.errstate(invalid="ignore")
def test_both_kernels_count_the_same_and_give_what_they_give_uncounted(name: str) -> None:
    for what, make in KERNELS[name].items():
        counts = []
        for module in (reference, jit):
            arguments = arguments_of(make, "float32", LAYOUTS["contiguous"])
            with kernels.counted() as work:
                result = getattr(counting.stand_in(module), name)(*arguments)
            counts.append((work.flops, work.nbytes))
            plain = getattr(module, name)(*arguments_of(make, "float32", LAYOUTS["contiguous"]))
            np.testing.assert_equal(result, plain)
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        with naming(what):
            assert counts[0] == counts[1]
            assert counts[0][1] >= sum(a.nbytes for a in arrays)
            if name not in ("embedding", "max_pool2d_backward") and arrays[0].size:
                assert counts[0][0] > 0


# ---- on and off ----


def test_two_contexts_do_not_mix_and_it_is_off_by_default() -> None:
    first, second = contextvars.Context(), contextvars.Context()
    first.run(counting.start)
    second.run(counting.start)
    for size in (3, 4):  # in turns, as simulated ranks
        first.run(F.relu, ones(size))
        second.run(F.relu, ones(10 * size))
        F.relu(ones(1000))
    assert first.run(counting.take) == Work(7, 56)
    assert second.run(counting.take).flops == 70
    assert first.run(counting.take) == Work(0, 0)
    with pytest.raises(RuntimeError, match=r"nothing is being counted.*call counting.start\(\)"):
        alone(counting.take)


def test_a_count_within_a_count_counts_for_both() -> None:
    def program() -> tuple[int, int, Work]:
        counting.start()
        F.relu(ones(1))
        with kernels.counted() as outer:
            F.relu(ones(2))
            counting.take()  # as a simulation does whenever the program communicates
            with kernels.counted() as inner:
                F.relu(ones(4))
            F.relu(ones(8))
        F.relu(ones(16))
        return outer.flops, inner.flops, counting.take()

    assert alone(program) == (14, 4, Work(28, 28 * 2 * FLOAT))


def test_the_choice_of_kernels_and_counting_do_not_disturb_each_other() -> None:
    def program() -> list[tuple[str, int]]:
        seen = []
        with kernels.use("numpy"):
            with pytest.raises(KeyError), kernels.counted():
                raise KeyError
            assert kernels.current() is reference
            with kernels.counted() as work:
                with kernels.use("numba"):
                    F.relu(ones(1))
                    seen.append((kernels.current().__name__, work.flops))
                F.relu(ones(2))
                seen.append((kernels.current().__name__, work.flops))
                kernels.use("numba")
            assert kernels.current() is jit
        counting.start()
        with kernels.use("numpy"):
            F.relu(ones(4))
        F.relu(ones(8))
        return [*seen, ("after", counting.take().flops)]

    assert alone(program) == [(jit.__name__, 1), (reference.__name__, 3), ("after", 12)]
