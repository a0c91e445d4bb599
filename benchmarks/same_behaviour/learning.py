"""Operations and models forward and backward under both kernels, update rules, schedules, data, random numbers."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import minidl
from minidl import Tensor, amp, data, functional, grad, gradcheck, kernels, manual_seed, nn, no_grad, optim

OPERATION_CASES = Path(__file__).resolve().parent.parent.parent / "tests" / "functional" / "cases.py"
KERNELS = ("numpy", "numba")


def table_of_operations() -> list[Any]:
    """This checkout's table of operations and operands, from the tests."""
    spec = importlib.util.spec_from_file_location("operation_table", OPERATION_CASES)
    if spec is None or spec.loader is None:
        raise ImportError(f"there is no table of operations in {OPERATION_CASES}")
    module = sys.modules["operation_table"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.CASES)


# ---- operations ----


def operation(case: Any, kernel: str) -> Any:
    """Result, gradients, and counted work of an operation in float32 and float64."""
    results = {}
    for dtype in ("float32", "float64"):
        manual_seed(0)
        arrays = case.arrays(dtype)
        tensors = [Tensor(a, requires_grad=d) for a, d in zip(arrays, case.differentiable, strict=True)]
        with kernels.use(kernel):
            with kernels.counted() as forward:
                out = case.function(functional, *tensors)
            seed = np.random.default_rng(1).standard_normal(out.shape).astype(out.dtype)
            with kernels.counted() as backward:
                out.backward(seed)
        gradients = [tensor.grad for tensor in tensors]
        work = [forward.flops, forward.nbytes, backward.flops, backward.nbytes]
        results[dtype] = [out.data, gradients, work]
    return results


# ---- models ----


def images(n: int, channels: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Random images and labels."""
    random = np.random.default_rng(5)
    return random.standard_normal((n, channels, size, size)).astype("float32"), random.integers(0, 10, n)


def tokens(n: int, length: int, words: int) -> tuple[np.ndarray, np.ndarray]:
    """Random tokens, and random next tokens."""
    random = np.random.default_rng(6)
    return random.integers(0, words, (n, length)), random.integers(0, words, (n, length))


def recurrent() -> nn.Module:
    """A network that reads images row by row."""

    class Rows(nn.Module):
        def __init__(self) -> None:
            self.lstm = nn.LSTM(8, 12, batch_first=True)
            self.head = nn.Linear(12, 10)

        def forward(self, x: Tensor) -> Tensor:
            out, _ = self.lstm(x.reshape(x.shape[0], 8, 8))
            return self.head(out[:, -1])

    return Rows()


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any]]] = {
    "MLP": (lambda: nn.Sequential(nn.Flatten(), nn.models.MLP(64, 32, 10)), lambda: images(8, 1, 8)),
    "LeNet": (lambda: nn.models.LeNet(), lambda: images(4, 1, 28)),
    "ResNet": (lambda: nn.models.ResNet(8, num_classes=10), lambda: images(2, 3, 16)),
    "LSTM": (recurrent, lambda: images(4, 1, 8)),
    "GPT": (
        lambda: nn.models.GPT(vocab_size=20, block_size=16, n_layer=2, n_head=2, n_embd=16, dropout=0.1),
        lambda: tokens(3, 16, 20),
    ),
}


def classified(model: nn.Module, x: Any, y: np.ndarray) -> Tensor:
    """The mean cross entropy over all that is classified."""
    out = model(x)
    return functional.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))


def training_steps(name: str, kernel: str, autocast: bool) -> Any:
    """Three steps: losses, gradients, weights, counted work, state; and the outputs of the trained model."""
    manual_seed(2)
    make_model, make_data = MODELS[name]
    model, (x, y) = make_model(), make_data()
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    results: dict[str, Any] = {"first weights": model.state_dict()}
    with kernels.use(kernel):
        for step in range(3):
            optimizer.zero_grad()
            with kernels.counted() as work, amp.autocast(enabled=autocast):
                loss = classified(model, x, y)
                loss.backward()
            results[f"step {step}"] = [loss.item(), work.flops, work.nbytes]
            results[f"gradients {step}"] = {name: p.grad for name, p in model.named_parameters()}
            optimizer.step()
        model.eval()
        with no_grad():
            results["outputs"] = model(x).data
    results["weights"], results["optimizer"] = model.state_dict(), optimizer.state_dict()
    return {**results, "parameters": [name for name, _ in model.named_parameters()], "text": repr(model)}


# ---- update rules and schedules ----

OPTIMIZERS: dict[str, Callable[[Any], optim.Optimizer]] = {
    "SGD": partial(optim.SGD, lr=0.1),
    "SGD, momentum": partial(optim.SGD, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "SGD, Nesterov": partial(optim.SGD, lr=0.1, momentum=0.9, nesterov=True),
    "SGD, v": partial(optim.SGD, lr=0.1, momentum=0.9, momentum_form="v"),
    "Adam": partial(optim.Adam, lr=0.01, weight_decay=0.01),
    "AdamW": partial(optim.AdamW, lr=0.01),
    "Adagrad": partial(optim.Adagrad, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.1),
    "RMSprop": partial(optim.RMSprop, lr=0.01, momentum=0.5, centered=True),
    "RMSprop, plain": partial(optim.RMSprop, weight_decay=0.1),
    "LARS": partial(optim.LARS, lr=1.0, weight_decay=0.01),
    "LARS, exclude_1d": partial(optim.LARS, lr=1.0, exclude_1d=True),
    "LAMB": partial(optim.LAMB, lr=0.01, exclude_1d=True),
}

SCHEDULES: dict[str, Callable[[optim.Optimizer], Any]] = {
    "StepLR": partial(optim.StepLR, step_size=3, gamma=0.5),
    "MultiStepLR": partial(optim.MultiStepLR, milestones=[2, 5, 9]),
    "LinearLR": partial(optim.LinearLR, total_iters=4),
    "CosineAnnealingLR": partial(optim.CosineAnnealingLR, T_max=7, eta_min=0.01),
    "LambdaLR": partial(optim.LambdaLR, lr_lambda=lambda step: 1 / (1 + step)),
    "LargeBatchLR": partial(optim.LargeBatchLR, steps_per_epoch=3, batch_size=64, base_batch_size=16, warmup_epochs=2),
}


def updates(make: Callable[[Any], optim.Optimizer], kernel: str) -> Any:
    """The weights after each of five updates."""
    manual_seed(2)
    model, (x, y) = nn.models.MLP(64, 16, 10), images(8, 1, 8)
    with kernels.use(kernel):
        optimizer, weights = make(model.parameters()), []
        for _ in range(5):
            optimizer.zero_grad()
            classified(model, x.reshape(8, 64), y).backward()
            norm = nn.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            weights.append([float(norm), model.state_dict()])
    return [weights, optimizer.state_dict()]


def learning_rates(make: Callable[[optim.Optimizer], Any]) -> Any:
    """The learning rates of 20 steps, and the state at the end."""
    optimizer = optim.SGD([nn.Parameter(np.zeros(2, "float32"))], lr=0.3)
    schedule, rates = make(optimizer), []
    for _ in range(20):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    state = {name: value for name, value in schedule.state_dict().items() if not callable(value)}
    return [rates, {name: value for name, value in state.items() if name != "lr_lambda"}]


# ---- the engine, data, random numbers ----


def engine() -> dict[str, Any]:
    """Shared and repeated nodes, hooks, parts of a graph, retained graphs, and the errors of misuse."""
    x, y = Tensor(np.arange(6.0).reshape(2, 3), requires_grad=True), Tensor(np.ones((2, 3)), requires_grad=True)
    order: list[str] = []
    z = (x * y + x) @ x.T
    z.backward(np.ones((2, 2)), inputs=[x], retain_graph=True)
    only_x = [x.grad, y.grad]
    z.backward(np.ones((2, 2)))
    sums = grad([(x * y).sum()], [x, y])
    results: dict[str, Any] = {"inputs": only_x, "all": [x.grad, y.grad], "grad": list(sums), "order": order}
    wrongs: dict[str, Callable[[], object]] = {
        "twice": lambda: z.backward(np.ones((2, 2))),
        "no gradient": lambda: Tensor([1.0]).backward(),
        "not a scalar": lambda: (x * 2).backward(),
        "shape": lambda: (x * 2).backward(np.ones(5)),
        "matmul": lambda: x @ y,
        "broadcast": lambda: x + np.ones(5),
        "overwritten": partial(overwritten, x),
    }
    for name, wrong in wrongs.items():
        try:
            results[name] = wrong()
        except Exception as raised:
            results[name] = [type(raised).__name__, str(raised)]
    results["gradcheck"] = bool(gradcheck(lambda a: (a * a).sum(), [np.ones(3)]))
    return results


def overwritten(x: Tensor) -> None:
    """Backward through a value that has been written into."""
    y = x * 1.0
    z = y * y
    y += 1
    z.sum().backward()


DATA: dict[str, Callable[[], data.Splits]] = {
    "digits": data.digits,
    "glyphs": partial(data.glyphs, n_train=30, n_test=10),
    "spirals": partial(data.spirals, n=60),
    "stdlib_text": partial(data.stdlib_text, n_chars=5000),
}


def splits(make: Callable[[], data.Splits]) -> Any:
    """All samples, and the minibatches of two epochs."""
    found = make()
    loader = data.DataLoader(found.train, 16, shuffle=True, seed=3, rank=1, num_replicas=2)
    batches = [[batch.x, batch.y, batch.total] for _ in range(2) for batch in loader]
    train, test = [[sample[i] for sample in (found.train, found.test)] for i in (0, 1)]
    return [len(found.train), len(found.test), list(found.classes), train, test, batches]


def random_numbers() -> Any:
    """What the creation functions draw, and initial weights."""
    manual_seed(7)
    drawn = [minidl.rand(2, 3), minidl.randn(2, 3), minidl.randint(0, 9, (4,)), minidl.randn_like(minidl.zeros(2))]
    layers = [nn.Linear(3, 4), nn.Conv2d(2, 3, 3), nn.LSTM(3, 4), nn.Embedding(5, 3), nn.MultiheadAttention(8, 2)]
    rows = data.sparse_rows(n=20, features=30, nonzeros=3)
    return [drawn, [layer.state_dict() for layer in layers], rows.values, rows.columns, rows.labels]


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The cases of this group."""
    for kernel in KERNELS:
        for case in table_of_operations():
            yield f"{case!r}, {kernel}", partial(operation, case, kernel)
        for name in MODELS:
            yield f"{name}, {kernel}", partial(training_steps, name, kernel, False)
        for name in ("MLP", "GPT"):
            yield f"{name}, {kernel}, autocast", partial(training_steps, name, kernel, True)
        for name, make in OPTIMIZERS.items():
            yield f"{name}, {kernel}", partial(updates, make, kernel)
    for name, make_schedule in SCHEDULES.items():
        yield name, partial(learning_rates, make_schedule)
    for name, make_data in DATA.items():
        yield name, partial(splits, make_data)
    yield "engine", engine
    yield "random numbers", random_numbers
