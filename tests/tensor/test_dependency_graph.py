"""The dependency graph of a step: read from the tape, counted by the kernels."""

from __future__ import annotations

import numpy as np
import pytest

from minidl import Tensor, data, dependency_graph, depth, kernels, nn
from minidl import functional as F
from minidl.tensor.dependency_graph import Task


def losses_of(images: int) -> list[Tensor]:
    """The losses of single images of the digits."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    x, y = data.digits().train[np.arange(images)]
    return [F.cross_entropy(model(x[i : i + 1]), y[i : i + 1]) for i in range(images)]


def test_the_tasks_together_cost_what_the_kernels_count_and_come_after_those_that_they_need() -> None:
    tasks = dependency_graph(lambda: losses_of(3))
    with kernels.counted() as counted:
        for loss in losses_of(3):
            loss.backward()
    assert sum(task.flops for task in tasks.values()) == counted.flops
    place = {name: i for i, name in enumerate(tasks)}
    assert all(place[need] < place[name] for name, task in tasks.items() for need in task.needs)


def test_images_depend_on_each_other_in_the_sums_of_the_gradients_only() -> None:
    tasks = dependency_graph(lambda: losses_of(2))
    sums = [task for task in tasks.values() if task.kind == "sum"]
    assert [len(task.needs) for task in sums] == [2, 2, 2, 2]  # two weights, two biases; one gradient from each image
    chains = [task for task in tasks.values() if task.kind != "sum"]
    assert all(tasks[need].kind != "sum" for task in chains for need in task.needs)
    assert [name for name, task in tasks.items() if not task.needs] == ["linear 0", "linear 4"]


def test_the_gradient_of_a_result_that_is_used_twice_is_summed_before_its_backward() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)

    def forward() -> Tensor:
        a = w * 3.0
        return (a * a.relu()).sum()

    tasks = dependency_graph(forward)
    assert tasks["sum of gradients of binary 0"] == Task("sum", 2, ("binary 2 backward", "unary 1 backward"))
    assert tasks["binary 0 backward"].needs == ("binary 0", "sum of gradients of binary 0")


def test_no_gradient_is_changed_and_counting_ends() -> None:
    model = nn.Linear(2, 1)
    dependency_graph(lambda: model(np.ones((1, 2), np.float32)).sum())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert kernels.counting.active.get() is None


def test_recurrent_layers_are_as_deep_as_the_sequence_is_long_and_attention_is_not() -> None:
    layers = {
        "rnn": nn.RNN(6, 6),
        "lstm": nn.LSTM(6, 6, num_layers=2),
        "attention": nn.MultiheadAttention(6, 2),
    }

    def depth_of(name: str, length: int) -> int:
        x = Tensor(np.ones((length, 3, 6), np.float32))
        return depth(layers[name](*[x] * (3 if name == "attention" else 1))[0])

    growth = {name: [depth_of(name, length) - depth_of(name, 7) for length in (8, 27)] for name in layers}
    assert growth == {"rnn": [3, 60], "lstm": [2, 40], "attention": [0, 0]}


def test_depth_is_the_longest_path_and_not_the_number_of_operations() -> None:
    x = Tensor([1.5, -0.5], requires_grad=True)
    short, long = x * 2.0, ((x * 3.0).exp() + x).tanh()
    assert depth(x) == 0
    assert depth(short) == 1
    assert depth(short + long) == 5
    assert depth([short, long]) == 4
    with pytest.raises(RuntimeError, match="do not require a gradient"):
        depth(Tensor([1.0]))


def test_something_without_a_gradient_is_refused() -> None:
    with pytest.raises(RuntimeError, match="do not require a gradient"):
        dependency_graph(lambda: Tensor([1.0]).sum())
    assert kernels.counting.active.get() is None
