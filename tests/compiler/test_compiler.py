"""A compiled function does what the function does: the same bits, with fewer launches and less memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

import numpy as np
import pytest

import minidl
from benchmarks.peers.memory import peak_of_arrays
from minidl import Tensor, compiler, kernels, manual_seed, nn, no_grad, optim
from minidl import functional as F
from minidl.compiler import CompilationError, generate
from minidl.compiler.passes import EXPRESSIONS
from minidl.kernels import parallel_for
from minidl.kernels.flops import OPERATIONS
from tests.compiler.random_programs import random_program
from tests.tiers import all_but_first_exhaustive
from tests.together import assert_refused, naming

X = np.random.default_rng(3).normal(size=(67, 5)).astype(np.float32)

PASSES = (
    compiler.fold_constants,
    compiler.share_subexpressions,
    compiler.remove_dead_code,
    compiler.fuse_elementwise,
)


def assert_same_bits(got: Any, want: Any) -> None:
    """Equal to the bit, but for the sign and the payload of nan."""
    got, want = (np.asarray(one.data if isinstance(one, Tensor) else one) for one in (got, want))
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    number = ~np.isnan(want) if want.dtype.kind == "f" else np.ones(want.shape, bool)
    np.testing.assert_array_equal(got, want)
    assert got[number].tobytes() == want[number].tobytes()


def results(run: Callable[..., Any], arrays: list[np.ndarray], seed: int) -> tuple[Any, ...]:
    """What is returned, and what the arguments are afterwards."""
    manual_seed(seed)
    returned = run(*arrays)
    return (*(returned if isinstance(returned, tuple) else (returned,)), *arrays)


def copies(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Copies in the same layout, gaps included."""
    return [a.copy("K") if a.flags.forc else np.repeat(a, 2, axis=0)[::2] for a in arrays]


def assert_does_the_same(run: Callable[..., Any], graph: compiler.Graph, seed: int, want: tuple[Any, ...]) -> None:
    """To the bit, unless numbers are added up, which numpy does in the order of memory."""
    has_sums = not {"sum", "mean", "softmax"}.isdisjoint(one.name for one in graph.instructions)
    for got, one in zip(results(run, copies(random_program(seed)[1]), seed), want, strict=True):
        if has_sums:
            np.testing.assert_allclose(got, one, rtol=1e-5 if got.dtype == np.float32 else 1e-13)
        else:
            assert_same_bits(got, one)


def traced(seed: int) -> tuple[compiler.Graph | None, tuple[Any, ...]]:
    """The graph of a random program, None if a view is read after its array was written; and what is expected."""
    program, arrays = random_program(seed)
    want = results(lambda *given: program(*map(Tensor, given)), copies(arrays), seed)
    with suppress(CompilationError):
        return compiler.trace(program, *arrays), want
    return None, want


@pytest.mark.parametrize("first", all_but_first_exhaustive(range(0, 600, 60)))
def test_every_pass_keeps_every_bit_of_random_programs(first: int) -> None:
    for seed in range(first, first + 60):
        with naming(seed), np.errstate(all="ignore"):
            graph, want = traced(seed)
            for each in PASSES if graph else ():
                graph = each(graph)
                assert_does_the_same(graph.run, graph, seed, want)


@pytest.mark.parametrize("first", all_but_first_exhaustive(range(0, 120, 4)))
def test_generated_code_keeps_every_bit_of_random_programs_in_every_call_and_in_threads(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(parallel_for, "threads", lambda: asked.append(3) or 3)
    for seed in range(first, first + 4):
        monkeypatch.setattr(generate, "WORTH_A_THREAD", 1 if seed % 2 else 1 << 17)
        with naming(seed), np.errstate(all="ignore"):
            graph, want = traced(seed)
            if graph:
                graph = compiler.optimized(graph)
                generated = compiler.Program(graph, compiler.plan_buffers(graph))
                for _ in range(2):
                    assert_does_the_same(generated, graph, seed, want)
    assert asked


# ---- each pass, on a graph counted by hand ----


def sizes(graph: compiler.Graph) -> tuple[int, int, int, int]:
    """Nodes, launches, bytes without and with shared memory."""
    return graph.nodes, graph.launches, graph.nbytes, compiler.plan_buffers(graph).nbytes


def test_a_layer_of_five_operations_becomes_three_launches_and_a_third_of_the_memory() -> None:
    def layer(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        h = F.relu(x @ w.T + b)
        return (h * h).sum()

    arrays = [X, np.full((31, 5), 0.3, np.float32), np.full(31, -0.7, np.float32)]
    traced = compiler.trace(layer, *arrays)
    h = 67 * 31 * 4  # bytes
    # transpose, product, sum, relu, square, sum: five go through memory. relu allocates; the others share a buffer.
    assert sizes(traced) == (6, 5, 4 * h + 4, 2 * h)
    fused = compiler.optimized(traced)
    assert sizes(fused) == (4, 3, 2 * h + 4, h + 4)
    assert re.findall(r"= (\w+)\(", str(fused)) == [
        *("argument", "argument", "argument", "transpose", "matmul", "fused", "add", "relu", "multiply", "sum")
    ]


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_images_joins_the_residual_and_relu_and_keeps_every_bit_in_threads(
    training: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(7)
    x, residual = random.normal(1.3, 2.0, size=(2, 5, 5, 8, 9)).astype(np.float32)  # as many samples as channels
    rows = random.uniform(0.4, 1.7, size=(4, 5)).astype(np.float32)

    def block(x: Tensor, residual: Tensor, mean: Tensor, var: Tensor, w: Tensor, b: Tensor) -> tuple[Any, ...]:
        leaves = [Tensor(one.data, requires_grad=True) for one in (x, w, b)]
        out = F.relu(F.batch_norm(leaves[0], mean.data, var.data, *leaves[1:], training=training) + residual)
        (out * out).sum().backward()
        return (out, *(one.grad for one in leaves))

    want = results(lambda *given: block(*map(Tensor, given)), [x, residual, *rows.copy()], 0)
    graph = compiler.optimized(compiler.trace(block, x, residual, *rows))
    bodies = [[part.name for part in one.body] for one in graph.instructions]
    assert ["normalize", "add", "relu"] in [body[:3] for body in bodies]
    asked: list[int] = []
    monkeypatch.setattr(parallel_for, "threads", lambda: asked.append(3) or 3)
    monkeypatch.setattr(generate, "WORTH_A_THREAD", 1)
    program = compiler.Program(graph, compiler.plan_buffers(graph))
    for run in (program, graph.run):
        for got, one in zip(results(run, [x, residual, *rows.copy()], 0), want, strict=True):
            assert_same_bits(got, one)
    assert asked


KERNELS_IN_LOOPS = sorted(EXPRESSIONS.keys() & OPERATIONS.keys())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", KERNELS_IN_LOOPS)
def test_a_loop_of_generated_code_has_the_bits_of_the_kernel_that_it_replaces(name: str, dtype: Any) -> None:
    random = np.random.default_rng(8)
    arrays = [random.normal(0.1, 0.7, size=(37, 71)).astype(dtype) for _ in range(1 + name.endswith("_backward"))]

    def call(*given: Tensor) -> Any:
        return getattr(kernels.current(), name)(*(one.data for one in given))

    program = compiler.compile(call)
    assert_same_bits(program(*arrays), call(*map(Tensor, arrays)))
    ((generated, _),) = program.programs.values()
    assert "def loop_0" in generated.source


def test_what_backward_starts_from_is_folded_and_the_loss_that_nobody_reads_is_dead_code() -> None:
    def gradient(w: Tensor) -> np.ndarray:
        w.grad = None
        (w.sigmoid() * 3.0).mean().backward()
        return w.grad

    graph = compiler.trace(gradient, Tensor(X, requires_grad=True))
    # sigmoid, product, mean; 1 / n, its reshape, its broadcast, times 3, and the derivative of sigmoid
    assert graph.nodes == 8
    folded = compiler.fold_constants(graph)
    assert folded.nodes == 4
    alive = compiler.remove_dead_code(folded)
    assert [one.name for one in alive.instructions] == ["argument", "sigmoid", "constant", "sigmoid_backward"]
    assert (compiler.optimized(graph).nodes, alive.instructions[2].number) == (1, np.float32(1 / 335) * np.float32(3))


def test_nothing_is_simplified_that_changes_the_sign_of_a_zero() -> None:
    got = compiler.compile(lambda x: (x + 0.0, x - 0.0, x * 1.0))(np.float32([-0.0, 1.3]))
    assert [np.signbit(one[0]).tolist() for one in got] == [False, True, True]


def test_equal_subexpressions_are_shared_and_constants_that_are_only_equal_as_numbers_are_not() -> None:
    shared = compiler.share_subexpressions(compiler.trace(lambda x: (x * 1.3 + 0.2) * (x * 1.3 - 0.2), X))
    assert shared.nodes == 4  # of 5
    zeros = compiler.share_subexpressions(compiler.trace(lambda x: (x * 0.0) + (x * -0.0), X))
    assert zeros.nodes == 3
    nans = compiler.share_subexpressions(compiler.trace(lambda x: (x * np.nan) + (x * np.nan), X))
    assert nans.nodes == 2


def test_two_draws_are_no_common_subexpression_and_no_dead_code() -> None:
    def program(x: Tensor) -> Tensor:
        F.dropout(x, 0.3)
        return F.dropout(x, 0.3) - F.dropout(x, 0.3)

    graph = compiler.optimized(compiler.trace(program, X))
    assert [one.name for one in graph.instructions].count("random") == 3
    manual_seed(5)
    got = [compiler.compile(program)(X) for _ in range(2)]
    manual_seed(5)
    assert_same_bits(got[0], program(Tensor(X)))
    assert_same_bits(got[1], program(Tensor(X)))


def test_dead_code_is_removed() -> None:
    graph = compiler.trace(lambda x: (x * 2.3, (x * 1.1).exp().sum())[0], X)
    assert (graph.nodes, compiler.remove_dead_code(graph).nodes) == (4, 1)


def test_no_instruction_joins_another_whose_result_was_read_in_between() -> None:
    def program(x: Tensor) -> Tensor:
        e = x.exp()
        return e / e.sum() * 0.3  # one loop would need its own sum

    graph = compiler.optimized(compiler.trace(program, X))
    assert [one.name for one in graph.instructions if one.operands] == ["exp", "sum", "fused"]
    assert_same_bits(compiler.compile(program)(X), program(Tensor(X)))


def test_memory_is_not_written_while_a_view_of_it_is_read() -> None:
    def program(x: Tensor) -> Tensor:
        y = x * 0.3 + 1.1
        z = y.T * 0.7 + y  # not over y, although y is square and read for the last time
        rows = (z * z - 0.2)[1:]
        w = x * 0.9 - 0.4  # not over the array of which `rows` is a view
        return w[1:] * rows

    def product(x: Tensor) -> Tensor:
        return ((x * 0.3 + 1.1) @ x) * 0.5 - 0.9

    square = X[:5] * 1.7
    for each in (program, product):
        graph = compiler.optimized(compiler.trace(each, square))
        plan = compiler.plan_buffers(graph)
        assert_same_bits(compiler.Program(graph, plan)(square), each(Tensor(square)))
    _, made, last = (one.results[0] for one in graph.instructions if one.name in ("fused", "matmul"))
    assert plan.over == {last: made}  # not {made: factor}: a product reads each number of its factors several times


def test_an_argument_keeps_its_values_until_they_are_read_for_the_last_time() -> None:
    def program(a: Tensor, b: Tensor) -> Tensor:
        old = a * 0.8
        with no_grad():
            a -= b * 0.3
        return old * b + 0.7  # runs as one loop with `old`, after the update

    a, b = X.copy(), X[::-1].copy()
    want = program(Tensor(a.copy()), Tensor(b))
    assert_same_bits(compiler.compile(program)(a, b), want)
    np.testing.assert_allclose(a, X - b * np.float32(0.3), rtol=1e-6)

    @compiler.compile
    def antisymmetric(a: Tensor) -> Tensor:
        with no_grad():
            a -= a.T * 1.0
        return a.sum()

    a = X[:5].copy()
    antisymmetric(a)
    assert_same_bits(a, X[:5] - X[:5].T)


def test_what_is_returned_shares_memory_with_no_argument_and_with_no_later_result() -> None:
    @compiler.compile
    def program(w: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        with no_grad():
            w -= x * 0.3
        y = x * 0.7 + 0.1
        return w, x, x[1:], y, y.T, Tensor([0.3, 0.4]), (y - 0.2).exp()

    w, x = Tensor(X.copy()), X.copy()
    first, second = program(w, x), program(w, x)
    for one in first:
        assert not any(np.may_share_memory(one, other) for other in (w.data, x, *second))


# ---- whole training steps ----


def training_step(model: nn.Module, velocities: list[Tensor]) -> Callable[..., Tensor]:
    parameters = list(model.parameters())

    def step(x: Tensor, labels: Tensor, *state: Tensor) -> Tensor:
        model.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        for p, v in zip(parameters, velocities, strict=True):
            kernels.current().sgd(p.data, p.grad, v.data, 0.07, 0.9, 0.0, 0.001, False)
        return loss

    return step


@pytest.mark.parametrize(
    ("make", "shape", "most_launches"),
    [
        (lambda: nn.models.MLP(5, 33, 10), (67, 5), 0.5),
        pytest.param(nn.models.LeNet, (3, 1, 28, 28), 0.6, marks=pytest.mark.exhaustive),
        pytest.param(lambda: nn.models.ResNet(8), (3, 3, 32, 32), 0.6, marks=pytest.mark.exhaustive),
    ],
)
def test_forward_backward_and_update_as_one_program_learn_as_the_library_does(
    make: Callable[[], nn.Module], shape: tuple[int, ...], most_launches: float
) -> None:
    random = np.random.default_rng(1)
    data = [(random.normal(size=shape).astype(np.float32), random.integers(10, size=shape[0])) for _ in range(3)]
    runs = []
    for is_compiled in (False, True):
        manual_seed(2)
        model = make()
        velocities = [Tensor(np.zeros_like(p.data)) for p in model.parameters()]
        state = [*model.parameters(), *model.buffers(), *velocities]
        step = training_step(model, velocities)
        if is_compiled:
            graph = compiler.trace(step, *data[0], *state)
            smaller = compiler.optimized(graph)
            assert smaller.launches < most_launches * graph.launches
            assert compiler.plan_buffers(smaller).nbytes <= compiler.plan_buffers(graph).nbytes < graph.nbytes
            step = compiler.compile(step)
            losses = [float(step(*batch, *state)) for batch in (*data, *data)]
        else:
            losses = [step(*map(Tensor, batch)).item() for batch in (*data, *data)]
        runs.append((losses, *(one.data for one in state)))
    for got, want in zip(*runs, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_tracing_changes_no_argument() -> None:
    model = nn.models.MLP(5, 33, 10)
    velocities = [Tensor(np.zeros_like(p.data)) for p in model.parameters()]
    state = [*model.parameters(), *velocities]
    before = [one.data.copy() for one in state]
    compiler.trace(training_step(model, velocities), X, np.arange(67) % 10, *state)
    for one, old in zip(state, before, strict=True):
        assert type(one.data) is np.ndarray
        assert_same_bits(one, old)
        assert one.grad is None


def test_a_written_argument_may_have_gaps_and_its_tensor_knows_that_it_was_written() -> None:
    @compiler.compile
    def update(w: Tensor, g: Tensor) -> Tensor:
        with no_grad():
            w -= g * 0.3
        return w.sum()

    memory = np.zeros(10, np.float32)
    w = Tensor(memory[::2], requires_grad=True)
    loss = (w * w).sum()
    update(w, np.float32([1, 2, 3, 4, 5]))
    np.testing.assert_allclose(memory, np.ravel([[-0.3 * k, 0] for k in range(1, 6)]), rtol=1e-6)
    with pytest.raises(RuntimeError, match="overwritten"):
        loss.backward()


def test_an_array_that_changes_while_the_function_runs_is_a_new_constant_each_time() -> None:
    def program(x: Tensor) -> Tensor:
        steps = np.full(5, 0.3, np.float32)
        y = x * steps
        steps += 0.4
        return y + steps

    assert_same_bits(compiler.compile(program)(X), program(Tensor(X)))


def test_one_result_may_be_written_into_two_arguments() -> None:
    @compiler.compile
    def twice(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
        for out in (a, b):
            np.multiply((x * 0.3 + 1.1).data, 1.5, out=out.data)
        return x

    a, b = np.zeros_like(X), np.zeros_like(X)
    twice(a, b, X)
    np.testing.assert_allclose(a, (X * 0.3 + 1.1) * 1.5, rtol=1e-6)
    assert_same_bits(b, a)


def test_two_arguments_may_exchange_their_values() -> None:
    @compiler.compile
    def rotate(a: Tensor, b: Tensor) -> Tensor:
        with no_grad():
            a[...], b[...] = a * 0.6 - b * 0.8, a * 0.8 + b * 0.6
        return a.sum()

    a, b = np.float32([1.1, 0.0]), np.float32([0.0, 1.3])
    rotate(a, b)
    np.testing.assert_allclose([a, b], [[0.66, -1.04], [0.88, 0.78]], rtol=1e-6)


def test_the_bytes_of_the_plan_are_those_that_a_step_allocates_and_fewer_than_the_library_does() -> None:
    x, labels = np.random.default_rng(4).normal(size=(700, 5)).astype(np.float32), np.arange(700) % 10
    model = nn.models.MLP(5, 133, 10)
    velocities = [Tensor(np.zeros_like(p.data)) for p in model.parameters()]
    state = [*model.parameters(), *velocities]
    step = training_step(model, velocities)
    compiled = compiler.compile(step)
    compiled(x, labels, *state)
    planned = next(iter(compiled.programs.values()))[0].plan.nbytes
    peak, peak_of_library = (
        peak_of_arrays(lambda f=f: f(x, labels, *state)) for f in (compiled, lambda *given: step(*map(Tensor, given)))
    )
    assert planned < peak < 1.05 * planned
    assert peak < 0.9 * peak_of_library


def test_threads_may_call_one_program_at_the_same_time() -> None:
    program, found = compiler.compile(lambda x: (x * 0.3 + 1.7).relu().sum()), {}
    arrays = [np.full(100_003, k, np.float32) for k in range(3)]
    want = [program(x) for x in arrays]

    def calls(k: int) -> None:
        found[k] = [program(arrays[k]) for _ in range(40)]

    threads = [Thread(target=calls, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {k: set(map(float, got)) for k, got in found.items()} == {k: {float(want[k])} for k in range(3)}


# ---- what cannot be compiled ----


def test_what_a_graph_cannot_do_is_refused_by_a_sentence() -> None:
    weight, generator, calls = Tensor(np.full(5, 0.3, np.float32)), np.random.default_rng(0), []

    def counts(x: Tensor) -> Tensor:
        calls.append(1)
        return x * len(calls)

    def writes_a_view(x: Tensor) -> Tensor:
        y = x * 1.3
        row = y[0]
        with no_grad():
            y += 1.7
        return row + y

    def accumulates(x: Tensor, w: Tensor) -> Tensor:
        (x * w).sum().backward()
        return x

    recurrent, mixture = nn.LSTM(5, 3), nn.MixtureOfExperts(5, 3, experts=2)
    trained = Tensor(np.full(5, 0.3, np.float32), requires_grad=True)
    trained.grad = np.ones(5, np.float32)
    adam = optim.Adam([Tensor(np.full(5, 0.3, np.float32), requires_grad=True)])

    def first_step(x: Tensor, w: Tensor) -> Tensor:
        adam.zero_grad()
        (x * w).sum().backward()
        adam.step()
        return w

    refused = [
        (lambda x: x * 2 if x.sum() > 0 else x, "Python looks at the numbers"),
        (lambda x: x * x.max().item(), "Python looks at the numbers"),
        (lambda x: Tensor(np.array(x.data)), "Python looks at the numbers"),
        (lambda x: x * weight, "not an argument and may change"),
        (lambda x: x + weight.data, "not an argument and may change"),
        (counts, "two calls differ"),
        (lambda x: F.dropout(x, 0.3, generator=generator), "two calls differ"),
        (lambda x: x[x > 0], "the numbers decide"),
        (lambda x: np.nonzero(x.data), "np.nonzero"),
        (lambda x: np.copyto(x.data, 0.7), "np.copyto"),
        (lambda x: np.add.at(x.data, 0, 1.3), "np.add writes"),
        (writes_a_view, "a view of shape"),
        (lambda x: 0.7, "returns float"),
        (lambda x: F.embedding((x > 0).long(), np.ones((2, 3), np.float32)), "Python looks at the numbers"),
        (lambda x: mixture(x), "Python looks at the numbers"),
        (lambda x: recurrent(x.reshape(67, 1, 5))[0], "a view of shape"),
        (lambda x: x * minidl.randn(5), r"generator\(\)\..* is not recorded"),
    ]
    assert_refused((lambda f=f: compiler.trace(f, X), CompilationError, text) for f, text in refused)
    update = compiler.compile(lambda w, g: w.add_(g))
    w = Tensor(np.zeros(5, np.float32))
    frozen = Tensor(np.zeros(5, np.float32))
    frozen.data.flags.writeable = False
    update(w, X[0])
    program = next(iter(update.programs.values()))[0]
    assert_refused(
        [
            (lambda: compiler.trace(accumulates, X, trained), CompilationError, "zero_grad"),
            (lambda: compiler.trace(first_step, X, adam.param_groups[0]["params"][0]), CompilationError, "first step"),
            (lambda: compiler.trace(lambda x: x, [1.3]), TypeError, "arrays and Tensors, not list"),
            (lambda: update(w, w.data[::-1]), ValueError, "argument 0 is written and shares memory with argument 1"),
            (lambda: update(frozen, X[0]), ValueError, "read-only"),
            (lambda: program(w.data, X[:2, 0]), ValueError, "generated for arrays of"),
            (lambda: program(w.data), ValueError, "generated for arrays of"),
        ]
    )
