"""What an error message recommends has been run: every call expression in a `raise` of minidl is known here.

`ErrorFeedback(QuantizedAllReduce(QSGD(7)))` stood in a message once; it exploded. A new recommendation fails the first
test until it is added to RUNS with what runs it, or, if it only names an operation ("define encode()"), to NAMED.
"""

from __future__ import annotations

import ast
import copy
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

import minidl
from minidl import Tensor, amp, cluster, compiler, compress, data, nn, optim, parallel
from minidl import functional as F
from minidl.cli import strategies
from minidl.compress import (
    QSGD,
    ErrorFeedback,
    Lossless,
    QuantizedAllReduce,
    RandomK,
    Sign,
    Signum,
    TernGrad,
    TopK,
)
from minidl.parallel.tensor import ColumnLinear, RowLinear, ShardedDropout
from tests.parallel.jobs import small_job
from tests.tiers import all_but_first_exhaustive

PACKAGE = Path(__file__).resolve().parent.parent.parent / "minidl"
CALL = re.compile(r"[A-Za-z_][\w.]*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")


def texts(node: ast.AST) -> Iterator[str]:
    """The strings in an expression; what an f-string puts in is written {}."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from texts(child)


def calls_in(source: str) -> set[str]:
    """The call expressions in the messages of a program: those of `raise` statements, and each `hint=` of a check."""
    messages = (
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Raise) or (isinstance(node, ast.keyword) and node.arg == "hint")
    )
    return {call for node in messages for text in texts(node) for call in CALL.findall(text)}


NAMED = {  # operations that a message names: what the caller has done, or is to define or to call
    *("actions(self, stage)", "backward()", "backward(gradient=...)", "begin_step(norm, nodes)", "cat()", "choose()"),
    *("copy_()", "counting.start()", "decode()", "dequantize()", "detach()", "encode()", "forward(self, ...)"),
    *("labels.argmax(1)", "loss.backward()"),
    *("launch()", "launch(network={})", "model.parameters()", "no_grad()", "program(comm, *args)", "quantize()"),
    *("recv(out=...)", "run(self, session)", "serve(self, session)", "Simulation({})", "sum()", "to()", "wait()"),
    *("data.Splits(train, test)", "order({})", "int(x)", "stages(self)", "where()", "x.copy()", "x.filled(0)"),
    *("cuda()", "scale(loss)", "state_dict()", "step()", "step(optimizer)", "to({})", "unscale_()", "update()"),
    *("all()", "any()", "float()", "grad()", "int(...)", "long()", "mean()", "numpy()"),
    *("item()", "tolist()", "x.detach()", "Hybrid({})", "float(x)", "np.array(x)", "generator()"),
}

ROWS = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)

# ---- how a recommendation is run ----


def descend(comm: cluster.Communicator, compressor: compress.Compressor) -> tuple[float, float]:
    """1,500 steps towards the mean of the nodes' targets: the distance at first and the largest of the second half."""
    own = copy.deepcopy(compressor)
    own.begin_run(0, "weight", comm.rank)
    targets = 10 + np.random.default_rng(0).normal(size=(comm.size, 24, 24))  # more numbers than a bucket of QSGD
    noise = np.random.default_rng((1, comm.rank))
    weight, centre, distances = np.zeros((24, 24)), targets.mean(axis=0), []
    for _ in range(1500):
        gradient = weight - targets[comm.rank] + noise.normal(size=weight.shape)
        weight -= 0.1 / comm.size * own.begin_all_reduce(gradient, comm)()
        distances.append(float(np.linalg.norm(weight - centre)))
    return distances[0], max(distances[750:])


def trains(*compressors: compress.Compressor) -> None:
    for compressor in compressors:
        for first, last in cluster.launch(descend, (compressor,), nodes=3, on="simulation").results:
            assert last < 0.3 * first, compressor


def error_feedback_is_stable() -> None:
    """All compressors that error feedback recommends in place of one that it refuses."""
    refused = [QSGD(7), QuantizedAllReduce(QSGD(7)), RandomK(0.4, unbiased=True), TernGrad()]
    for compressor in refused:
        with pytest.raises(ValueError, match=r"use ErrorFeedback\(|use it by itself") as error:
            ErrorFeedback(compressor)
        recommended = re.search(r"use (ErrorFeedback\(.*\))$", str(error.value))
        trains(eval(recommended[1], vars(compress)) if recommended else compressor)


def train(strategy: parallel.Strategy, **settings: Any) -> None:
    optimizer = partial(optim.SGD, **{"lr": 0.1, **settings})
    report = parallel.train(small_job(optimizer=optimizer), strategy, 2, on="simulation")
    assert report.history[-1]["loss"] < report.history[0]["loss"]


def update_weights() -> None:
    parameters = [Tensor([1.0, 2.0], requires_grad=True)]
    optimizer = optim.SGD(parameters, lr=0.1)
    compress.DGC(0.1).check_optimizer(optimizer)
    (parameters[0] * parameters[0]).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(parameters[0].numpy(), [0.8, 1.6])


def correct_momentum() -> None:
    optimizer = partial(optim.SGD, lr=0.1, momentum=0.5, momentum_form="v")
    schedule = partial(optim.LargeBatchLR, batch_size=32, base_batch_size=16, momentum_correction=True)
    report = parallel.train(small_job(optimizer=optimizer, schedule=schedule, batch_size=32))
    assert report.history[-1]["loss"] < report.history[0]["loss"]


def train_on() -> None:
    report = parallel.train(small_job(), parallel.Synchronous(), 2, on="simulation")
    again = parallel.train(small_job(model=report.model()), parallel.Synchronous(), 2, on="simulation")
    assert again.history[-1]["loss"] < report.history[-1]["loss"]


def add_one(on: str | cluster.Processes | cluster.Simulation, network: cluster.Network | None = None) -> None:
    run = cluster.launch(lambda comm: comm.all_reduce(1), nodes=2, on=on, network=network)
    assert run.results == [2, 2]


def read(*arrays: np.ndarray) -> None:
    [(x, y)] = data.DataLoader(data.Dataset(*arrays), 4)
    assert (x == arrays[0]).all()
    assert (y == arrays[1]).all()


def train_on_splits() -> None:
    x, y = np.ones((4, 6), np.float32), np.arange(4)
    splits = data.Splits(data.Dataset(x, y), data.Dataset(x[:2], y[:2]))
    job = parallel.Job(lambda: nn.Linear(6, 4), splits, partial(optim.SGD, lr=0.1), epochs=1, batch_size=2)
    parallel.train(job, parallel.Synchronous(), nodes=2, on="simulation")


def apply_in_turn() -> None:
    modules = [nn.Linear(2, 3), nn.ReLU()]
    assert nn.Sequential(*modules)(Tensor([1.0, 2.0])).shape == (3,)


def keeps_the_gradient(recommended: Callable[[Tensor], Tensor]) -> None:
    x = Tensor(np.array([1.0, 2.0]), requires_grad=True)
    recommended(x).sum().backward()
    assert x.grad is not None


def finds_itself() -> None:
    one, other = Tensor([1.0, 2.0]), Tensor([1.0, 2.0])
    for x, tensors, found in ((one, [other, one], True), (one, [other], False)):
        assert any(one is x for one in tensors) is found


def cut_a_model() -> None:
    job = small_job()
    chunks = parallel.Pipeline(2).prepared(job, 2).chunks(job.build_model())
    assert [len(chunk) > 0 for chunk in chunks] == [True, True]


def drop_a_share() -> None:
    def program(comm: cluster.Communicator) -> tuple[int, ...]:
        make = partial(ShardedDropout, axis=1)
        return make(nn.Dropout(0.3), comm)(np.ones((4, 3, 5))).shape

    assert cluster.launch(program, nodes=2, on="simulation").results == [(4, 3, 5)] * 2


def receive_from_0_within_ranks_0_and_2() -> None:
    def program(comm: cluster.Communicator) -> list[float]:
        ranks, src, x = [0, 2], 0, np.zeros(1)
        group = comm.split(0 if comm.rank in ranks else None)
        if group is None:
            return []
        if group.rank == src:
            group.send(np.array([0.3]), 1)
            group.send(np.array([0.7]), 1)
            return []
        return [group.recv(src).item(), group.recv(src, out=x).item(), x.item()]

    assert cluster.launch(program, nodes=3, on="simulation").results == [[], [], [0.3, 0.7, 0.7]]


def offload() -> None:
    on = cluster.Simulation(memory=cluster.Memory(device=2e9, link=(10e-6, 16e9)))
    parallel.train(small_job(), parallel.Sharded(2, offload=parallel.Offload("optimizer")), 1, on)


def graph_without_earlier_gradients() -> None:
    w = Tensor(ROWS, requires_grad=True)
    w.grad, optimizer = np.ones_like(ROWS), optim.SGD([w], lr=0.1)

    def program(w: Tensor) -> np.ndarray | None:
        optimizer.zero_grad()
        F.dropout(w * w, 0.3, generator=minidl.random.generator()).sum().backward()
        return w.grad

    assert compiler.compile(program)(w).shape == ROWS.shape


def save_within_epochs() -> None:
    with tempfile.TemporaryDirectory() as path:
        parallel.train(small_job(epochs=1), on="simulation", folder=path, saving=parallel.Saving(every=100))


def load_a_run() -> None:
    with tempfile.TemporaryDirectory() as path:
        model = parallel.train(small_job(), folder=path).model()
        model.load_state_dict(parallel.Checkpoint.load(path).model)
        with np.load(f"{path}/checkpoint.npz") as arrays:
            for state in (arrays, path, parallel.Checkpoint.load(path)):
                with pytest.raises((ValueError, TypeError), match=r"parallel\.Checkpoint\.load\(path\)\.model"):
                    model.load_state_dict(state)


def clip_gradients_in_16_bits() -> None:
    weight = Tensor(np.zeros(2, np.float16), requires_grad=True)
    optimizer, scaler = optim.SGD([weight], lr=1.0), amp.GradScaler(init_scale=512.0)
    scaler.scale((weight * np.array([3, 4], np.float16)).sum()).backward()
    nn.clip_grad_norm_([weight], 0.5 * scaler.get_scale())
    scaler.step(optimizer)
    np.testing.assert_allclose(weight.data.astype(float), [-0.3, -0.4], rtol=1e-3)


LAYOUT = {"0": ColumnLinear, "3": RowLinear}  # of small_job's model

RUNS: dict[str, Callable[[], object]] = {
    "F.cat([...])": lambda: keeps_the_gradient(lambda x: F.cat([x, x])),
    "F.stack([...])": lambda: keeps_the_gradient(lambda x: F.stack([x, x])),
    "F.where(condition, a, b)": lambda: keeps_the_gradient(lambda x: F.where(x > 1, x, 0.0)),
    "any(one is x for one in tensors)": finds_itself,
    "astype(np.float32)": lambda: Tensor(np.arange(3).astype(np.float32), requires_grad=True),
    "partial(ShardedDropout, axis=...)": drop_a_share,
    "prepared(job, nodes)": cut_a_model,
    "randint(0, 10, (1,))": lambda: minidl.randint(0, 10, (1,)).item(),
    "randint(0, 10, (2, 3))": lambda: minidl.randint(0, 10, (2, 3)).reshape(3, 2),
    "randn(2, 3)": lambda: minidl.randn(2, 3, requires_grad=True),
    "minidl.random.generator()": graph_without_earlier_gradients,
    "where(mask, x, 0)": lambda: compiler.compile(lambda x: F.where(x > 0, x, 0))(ROWS),
    "zero_grad()": graph_without_earlier_gradients,
    "x.abs()": lambda: keeps_the_gradient(lambda x: (x.abs() ** 3).sum() ** (1 / 3)),
    "x.exp()": lambda: keeps_the_gradient(lambda x: x.exp()),
    "zeros(2, 3)": lambda: minidl.zeros(2, 3, requires_grad=True),
    "ErrorFeedback(QuantizedAllReduce(Sign()))": lambda: trains(ErrorFeedback(QuantizedAllReduce(Sign()))),
    "ErrorFeedback({})": error_feedback_is_stable,
    "Gossip('none')": lambda: train(parallel.Gossip("none")),
    'Offload("optimizer")': offload,
    "PIL.ImageOps.fit(image, ({}, {}))": lambda: ImageOps.fit(Image.new("L", (6, 5)), (4, 5)).resize((4, 5)),
    "Hybrid(pp=2)": lambda: train(parallel.ParameterServer(replica=parallel.Hybrid(pp=2))),
    "Hybrid(tp=4)": lambda: parallel.train(small_job(), parallel.Hybrid(tp=4, layout=LAYOUT), 4, "simulation"),
    "Job(model=report.model())": train_on,
    "Network(alpha, beta)": lambda: add_one("processes", cluster.Network(1e-5, 1e-9)),
    "QSGD(7)": lambda: [trains(QSGD(7), QuantizedAllReduce(QSGD(7))), Lossless(QSGD(7)).encode(np.ones(600))],
    "SGD(momentum_form='v')": correct_momentum,
    "Saving(every=100)": save_within_epochs,
    "Sequential(*modules)": apply_in_turn,
    "parallel.Checkpoint.load(path)": load_a_run,
    "parallel.Synchronous()": lambda: train(parallel.Synchronous()),
    "Sharded(stage=1)": lambda: train(parallel.Sharded(stage=1)),
    "Synchronous()": lambda: [
        train(parallel.Synchronous()),
        parallel.train(small_job(precision="float16"), parallel.Synchronous(), 2, "simulation"),
    ],
    "TopK(0.01)": lambda: trains(ErrorFeedback(TopK(0.01))),
    "cluster.Processes('spawn')": lambda: add_one(cluster.Processes("spawn")),
    "cluster.Simulation(memory=cluster.Memory(device=2e9, link=(10e-6, 16e9)))": offload,
    "cluster.Simulation()": lambda: add_one(cluster.Simulation()),
    "cluster.calibrate()": lambda: cluster.calibrate(),
    "data.Dataset(x, x)": lambda: read(*[np.ones((4, 2))] * 2),
    "data.Dataset(x, y)": lambda: read(np.ones((4, 2)), np.arange(4)),
    "data.Dataset(x[indices], y[indices])": lambda: read(ROWS[[2, 0]], np.arange(4)[[2, 0]]),
    "data.Splits(data.Dataset(x, y), data.Dataset(x_test, y_test))": train_on_splits,
    "comm.split(0 if comm.rank in ranks else None)": receive_from_0_within_ranks_0_and_2,
    "recv(src)": receive_from_0_within_ranks_0_and_2,
    "recv(src, out=x)": receive_from_0_within_ranks_0_and_2,
    "einsum('ij,jk->ik', a, b)": lambda: keeps_the_gradient(lambda x: F.einsum("ij,jk->ik", x[None], x[:, None])),
    "compress.TopK(0.01)": lambda: trains(TopK(0.01)),
    "optim.SGD(parameters, lr={})": lambda: [
        train(parallel.Synchronous(compressor=Signum()), lr=0.001),
        update_weights(),
    ],
    "layer_norm(x, weight, bias)": lambda: F.layer_norm(ROWS, np.ones(6, np.float32), np.zeros(6, np.float32)),
    "model.eval()": lambda: nn.BatchNorm1d(6).eval()(ROWS[:1]),
    "nn.checkpointing(model)": lambda: nn.checkpointing(nn.models.MLP(6, 5, 4, 3))(ROWS).sum().backward(),
    "nn.Flatten()": lambda: F.linear(nn.Flatten()(ROWS.reshape(4, 2, 3)), np.ones((5, 6), np.float32)),
    "nn.LayerNorm(x.shape[-1])": lambda: nn.LayerNorm(ROWS.shape[-1])(ROWS),
    "nn.Linear({}, {})": lambda: nn.Linear(6, 5)(ROWS),
    "x.reshape(1, -1)": lambda: nn.BatchNorm1d(6).eval()(ROWS[0].reshape(1, -1)),
    "x.reshape(2, 3)": lambda: Tensor(np.arange(6.0)).reshape(2, 3),
    "x.reshape(2, -1)": lambda: Tensor(np.arange(6.0)).reshape(2, -1),
    "x.reshape(len(x), -1)": lambda: F.linear(ROWS.reshape(4, 2, 3).reshape(4, -1), np.ones((5, 6), np.float32)),
    "x.transpose(-2, -1)": lambda: F.linear(Tensor(ROWS).transpose(-2, -1), np.ones((5, 4), np.float32)),
    "scaler.get_scale()": clip_gradients_in_16_bits,
    "top_k(0.01)": lambda: train(strategies.parse("synchronous:compressor=top_k(0.01)")[0]),
}


def test_every_call_in_a_message_is_run_or_only_named() -> None:
    found = set().union(*(calls_in(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")))
    assert sorted(RUNS.keys() | NAMED) == sorted(found)


def test_calls_are_found_in_whatever_form_a_message_has() -> None:
    source = """
raise ValueError("give " + f"{name}: use A(B(1), {x!r})" if y else "call b.c()")
raise TypeError(
    f"{len(x)} numbers: "
    "use D(e=1)"
)
one_of("on", name, ENGINES, hint="or give F()")
"""
    assert calls_in(source) == {"A(B(1), {})", "b.c()", "D(e=1)", "F()"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("recommended", all_but_first_exhaustive(list(RUNS)))
def test_what_is_recommended_works(recommended: str) -> None:
    RUNS[recommended]()
