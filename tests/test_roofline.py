"""The roofline: each operation of a step has its own work and time, and a picture shows them below the roof."""

from __future__ import annotations

import numpy as np
import pytest

from minidl import Tensor, cluster, kernels, nn, optim, roofline
from minidl import functional as F
from minidl.roofline import Machine, TimedOperation


def training_step() -> object:
    model, x = nn.models.LeNet(8), np.full((3, 1, 8, 8), 0.3, np.float32)
    optimizer = optim.SGD(model.parameters(), lr=0.07, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        out = model(x)
        (F.cross_entropy(out + out.exp() * 0.1, [1, 7, 3])).backward()
        optimizer.step()

    return step


def test_the_operations_of_a_step_are_all_that_is_counted() -> None:
    step = training_step()
    found = roofline.profile(step, repetitions=2)
    with kernels.counted() as work:
        step()
    assert sum(each.flops for each in found) == work.flops
    assert sum(each.nbytes for each in found) == work.nbytes
    assert all(each.seconds > 0 for each in found)
    names = [each.name for each in found]
    assert names[:3] == ["conv2d", "tanh", "conv2d"]
    assert names.count("sgd") == len(list(nn.models.LeNet(8).parameters()))
    assert {"add", "mul", "exp", "cross_entropy", "conv2d_backward_weight", "sum of gradients"} <= set(names)
    assert kernels.counting.active.get() is None


def test_steps_with_different_work_are_refused_and_counting_ends() -> None:
    sizes = iter(range(1, 9))
    with pytest.raises(RuntimeError, match="on minibatches of one size"):
        roofline.profile(lambda: Tensor(np.ones(next(sizes))) * 2.5, repetitions=2)

    def broken() -> None:
        raise OSError("no data")

    with pytest.raises(OSError, match="no data"):
        roofline.profile(broken)
    assert kernels.counting.active.get() is None


def test_the_least_time_is_the_larger_one_of_computing_and_moving() -> None:
    machine = Machine(flops_per_s=3e10, bytes_per_s=7e9)
    assert machine.seconds(6e10, 7e8) == pytest.approx(2.0)
    assert machine.seconds(3e9, 2.1e10) == pytest.approx(3.0)
    assert cluster.Node(*machine).seconds(6e10, 2.1e10) == machine.seconds(6e10, 2.1e10)


def test_a_machine_is_measured() -> None:
    machine = roofline.measure_machine(repetitions=1, size=64)
    assert min(machine) > 0
    with pytest.raises(ValueError, match="measure_machine: threads must be at least 1, got 0"):
        roofline.measure_machine(threads=0)


def test_operations_of_one_name_are_one_point_below_the_roof() -> None:
    machine = Machine(flops_per_s=2e9, bytes_per_s=1e9)
    operations = [
        TimedOperation("matmul", 600, 20, 5e-7),
        TimedOperation("relu", 30, 240, 3e-7),
        TimedOperation("matmul", 300, 40, 7e-7),
        TimedOperation("copy", 0, 100, 4e-7),
        TimedOperation("tiny", 3, 5, 1e-9),
    ]
    axes = roofline.draw(machine, operations).axes[0]
    roof, *points = axes.get_lines()
    assert [line.get_label() for line in points] == ["matmul, 63%", "relu, 16%", "tiny, 0%"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in points] == [
        (pytest.approx(900 / 60), pytest.approx(900 / 1.2e-6)),
        (pytest.approx(30 / 240), pytest.approx(30 / 3e-7)),
        (pytest.approx(3 / 5), pytest.approx(3 / 1e-9)),
    ]
    many = [TimedOperation(f"kernel {i}", 10 + i, 20, 1e-6 * (9 - i)) for i in range(9)]
    looks = {(line.get_color(), line.get_marker()) for line in roofline.draw(machine, many).axes[0].get_lines()}
    assert len(looks) == 1 + roofline.MOST
    assert list(roof.get_ydata())[1:] == [2e9, 2e9]
    assert roof.get_xdata()[1] == 2.0
