"""Which arguments are accepted: every parameter of every public constructor and of some functions, with odd values.

Records the result for each value, or the type of the error. Texts of errors are not compared.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import minidl
from minidl import Tensor, amp, cluster, compress, data, functional, nn, optim, parallel
from minidl.cluster import cost

from .comparison import REFUSED
from .exact import exact, without_addresses

VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 3, 2.0, 1.5, 0.5, -0.5, 0.0, math.nan, math.inf, "2", "auto", "ring", "sum", ""),
    *(np.int64(2), np.float32(0.5), np.bool_(True), (2,), [1, 2], (0.9, 0.99), {}, {1: 2.0}, b"2"),
)


def job(**settings: Any) -> parallel.Job:
    """A job that is valid but for the settings."""
    defaults = {"model": nn.models.MLP, "data": data.digits, "optimizer": optim.SGD}
    return parallel.Job(**{**defaults, **settings})


def trained(**settings: Any) -> Any:
    """The history of a short run on two simulated nodes."""
    sizes = {"model": lambda: nn.models.MLP(2, 2), "data": lambda: data.spirals(12, classes=2), "epochs": 1}
    made = job(**sizes, optimizer=lambda parameters: optim.SGD(parameters, lr=0.1), batch_size=4)
    report = parallel.train(made, **{"strategy": parallel.Synchronous(), "nodes": 2, "on": "simulation", **settings})
    return [report.nodes, len(report.results), len(report.history)]


def launched(**settings: Any) -> Any:
    """The results of a launch in simulation."""
    return cluster.launch(lambda comm, *args: (comm.size, args), **{"nodes": 2, "on": "simulation", **settings}).results


def communicated(call: str, **arguments: Any) -> Any:
    """The results of one call of the communicator on two ranks."""

    def program(comm: cluster.Communicator) -> Any:
        return exact(getattr(comm, call)(**{name: value(comm) for name, value in arguments.items()}))

    return cluster.launch(program, nodes=2, on="simulation", timeout=5.0, deadline=60.0).results


def optimizer(kind: Callable[..., Any], **settings: Any) -> Any:
    """An optimizer of one parameter, by its settings."""
    made = kind([nn.Parameter(np.ones(2, "float32"))], **settings)
    return {name: value for name, value in made.param_groups[0].items() if name != "params"}


def schedule(kind: Callable[..., Any], **settings: Any) -> list[float]:
    """The learning rates of five steps."""
    made = optim.SGD([nn.Parameter(np.ones(2, "float32"))], lr=0.5)
    steps, rates = kind(made, **settings), []
    for _ in range(5):
        rates.append(made.param_groups[0]["lr"])
        made.step()
        steps.step()
    return rates


def tensor_function(name: str, **settings: Any) -> Any:
    """A function of a small tensor; dropout draws the same in every run."""
    minidl.manual_seed(0)
    return getattr(functional, name)(Tensor(np.arange(24, dtype="float64").reshape(2, 3, 4)), **settings)


def targets() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """What is called, under which name, and valid arguments, each of which is replaced in turn by odd values."""
    kinds: list[Any] = [
        *(parallel.BackupWorkers, parallel.EagerSGD, parallel.ElasticAveraging, parallel.Ensemble, parallel.Gossip),
        *(parallel.Hogwild, parallel.LocalSGD, parallel.OneShotAveraging, parallel.ParameterServer, parallel.Serial),
        *(parallel.SufficientFactors, parallel.Synchronous, parallel.Downpour, parallel.LockedParameterServer),
        *(parallel.PostLocalSGD, parallel.SlowMo, parallel.DiLoCo, parallel.StalenessAwareSGD),
        *(parallel.SandblasterLBFGS, amp.GradScaler),
    ]
    for kind in kinds:
        yield kind.__name__, kind, defaults_of(kind)
    compressors: dict[Any, dict[str, Any]] = {
        compress.DGC: {"density": 0.5}, compress.QSGD: {"levels": 4}, compress.ErrorFeedback: {"compressor": None},
        compress.Half: {}, compress.Lossless: {"quantizer": compress.QSGD(4)}, compress.PowerSGD: {"rank": 1},
        compress.QuantizedAllReduce: {"compressor": compress.QSGD(4)}, compress.RandomK: {"density": 0.5},
        compress.Signum: {}, compress.TernGrad: {}, compress.Threshold: {"tau": 1.0}, compress.TopK: {"density": 0.5},
    }  # fmt: skip
    for kind, given in compressors.items():
        yield kind.__name__, kind, {**defaults_of(kind), **given}
    for kind in (optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad, optim.RMSprop, optim.LARS, optim.LAMB):
        settings = defaults_of(kind, without=("params",))
        yield kind.__name__, partial(optimizer, kind), {"lr": 0.1, **settings}
    schedules: dict[Any, dict[str, Any]] = {
        optim.StepLR: {"step_size": 2}, optim.MultiStepLR: {"milestones": [1, 3]}, optim.LinearLR: {},
        optim.CosineAnnealingLR: {"T_max": 4},
        optim.LargeBatchLR: {"steps_per_epoch": 2, "batch_size": 8, "base_batch_size": 4},
    }  # fmt: skip
    for kind, given in schedules.items():
        yield kind.__name__, partial(schedule, kind), {**defaults_of(kind, without=("optimizer",)), **given}
    yield "Job", job, {"batch_size": 4, "epochs": 1, "shards": "fixed", "seed": 0, "clip_norm": 1.0, "schedule": None}
    yield "train", trained, {"nodes": 2, "strategy": None, "on": None, "network": None, "on_failure": "raise"}
    names = ("nodes", "args", "network", "timeout", "on_failure", "seed", "on", "faults", "listener")
    yield "launch", launched, dict.fromkeys(names)
    yield "Network", cluster.Network, {"alpha": 1e-5, "beta": 1e-9, "gamma": 0.0}
    yield "Node", cluster.Node, {"flops_per_s": 1e9, "bytes_per_s": 1e9, "jitter": 0.0, "speeds": None}
    yield "Simulation", cluster.Simulation, {"network": None, "node": None, "isolated": False, "trace": "full"}
    yield "Processes", cluster.Processes, {"threads": 1, "trace_events": 100}
    yield "Phantom", cluster.Phantom, {"nbytes": 8, "dtype": "float32"}
    plan = cluster.FaultPlan()
    yield "FaultPlan.kill", plan.kill, {"rank": 0, "at": 1}
    yield "FaultPlan.slow", plan.slow, {"rank": 0, "factor": 2}
    yield "FaultPlan.drop", plan.drop, {"rank": 0, "at": 1, "dst": None}
    yield "cost.all_reduce", cost.all_reduce, {"algorithm": "ring", "p": 4, "nbytes": 64, "alpha": 1e-5, "beta": 1e-9}
    yield from communicator_calls()
    yield from layers()
    functions: dict[str, dict[str, Any]] = {
        "sum": {"axis": 0, "keepdims": False}, "softmax": {"axis": 0}, "reshape": {"shape": (6, 4)},
        "transpose": {"axes": None}, "dropout": {"p": 0.5}, "squeeze": {"axis": None}, "max": {"axis": 0},
    }  # fmt: skip
    for call, given in functions.items():
        yield f"F.{call}", partial(tensor_function, call), given
    yield "spirals", data.spirals, {"n": 9, "classes": 3, "noise": 0.1, "seed": 0}
    yield "manual_seed", minidl.manual_seed, {"seed": 0}
    yield "rand", minidl.rand, {"size": (2,)}
    loader = partial(data.DataLoader, data.Dataset(np.zeros((6, 2)), np.zeros(6)))
    yield "DataLoader", loader, {"batch_size": 2, "seed": 0, "rank": 0, "num_replicas": 2}
    yield "DistributedSampler", data.DistributedSampler, {"n": 6, "num_replicas": 2, "rank": 0, "seed": 0}


def communicator_calls() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Calls of the communicator; every rank passes the odd value."""
    array, rank = lambda comm: np.ones(3), lambda comm: 0
    calls: dict[str, dict[str, Callable[..., Any]]] = {
        "all_reduce": {"x": array, "op": lambda comm: "sum", "algorithm": lambda comm: "ring"},
        "broadcast": {"x": array, "src": rank},
        "reduce": {"x": array, "dst": rank, "op": lambda comm: "sum"},
        "gather": {"x": array, "dst": rank},
        "all_gather": {"x": array},
        "reduce_scatter": {"x": array, "op": lambda comm: "sum"},
        "all_to_all": {"x": lambda comm: [1, 2]},
        "sendrecv": {"x": array, "dst": lambda comm: 1 - comm.rank, "src": lambda comm: 1 - comm.rank, "tag": rank},
    }
    for call, given in calls.items():
        yield f"comm.{call}", partial(communicated, call), {name: Constant(value) for name, value in given.items()}


class Constant:
    """A valid argument that is a function of the communicator."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, comm: Any) -> Any:
        return self.function(comm)


def layers() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Layers and models."""
    for kind, given in {
        nn.Linear: {"in_features": 2, "out_features": 3}, nn.Embedding: {"num_embeddings": 3, "embedding_dim": 2},
        nn.Conv2d: {"in_channels": 1, "out_channels": 2, "kernel_size": 3}, nn.MaxPool2d: {"kernel_size": 2},
        nn.BatchNorm1d: {"num_features": 2}, nn.LayerNorm: {"normalized_shape": 2}, nn.Dropout: {},
        nn.GroupNorm: {"num_groups": 1, "num_channels": 2}, nn.LSTM: {"input_size": 2, "hidden_size": 3},
        nn.MultiheadAttention: {"embed_dim": 4, "num_heads": 2}, nn.models.ResNet: {"depth": 8}, nn.models.LeNet: {},
    }.items():  # fmt: skip
        yield kind.__name__, kind, {**defaults_of(kind), **given}


def defaults_of(function: Callable[..., Any], without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The defaults of a function's parameters."""
    found = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in found if one.default is not one.empty and one.name not in without}


def outcome(function: Callable[..., Any], valid: dict[str, Any], name: str, value: Any) -> Any:
    """What the function makes of the value, or the type of its error; of a launch, also of what the program raised."""
    given = value if not isinstance(valid[name], Constant) else Constant(lambda comm: value)
    try:
        return shown(function(**{**{key: one for key, one in valid.items() if one is not None}, name: given}))
    except cluster.ClusterError as raised:
        return f"{REFUSED} {type(raised).__name__} of {type(raised.cause).__name__}"
    except Exception as raised:
        return f"{REFUSED} {type(raised).__name__}"


def shown(made: Any) -> Any:
    """Objects by their text, data exactly."""
    is_data = isinstance(made, (dict, list, tuple, str, int, float, np.ndarray, Tensor))
    return exact(made) if is_data else without_addresses(repr(made))


def outcomes(function: Callable[..., Any], valid: dict[str, Any], name: str) -> dict[str, Any]:
    """The outcome of every odd value of one parameter."""
    return {f"{type(value).__name__} {value!r}": outcome(function, valid, name, value) for value in VALUES}


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The cases of this group."""
    for text, function, valid in targets():
        for name in valid:
            yield f"{text}({name})", partial(outcomes, function, valid, name)
