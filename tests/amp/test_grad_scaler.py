"""GradScaler: what its factor is after any row of steps, and which steps it leaves out."""

from __future__ import annotations

import numpy as np
import pytest

from minidl import Tensor, amp, cluster, optim
from minidl.cluster.comm import Communicator


def weight(value: float = 1.0) -> Tensor:
    return Tensor([value], requires_grad=True)


def step(scaler: amp.GradScaler, optimizer: optim.Optimizer, w: Tensor, gradient: float) -> None:
    optimizer.zero_grad()
    scaler.scale((w * gradient).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_a_step_with_a_gradient_that_is_not_finite_is_left_out_and_halves_the_factor() -> None:
    for bad in (np.inf, -np.inf, np.nan):
        w = weight()
        scaler, optimizer = amp.GradScaler(init_scale=8.0), optim.SGD([w], lr=0.5)
        for k in range(1, 4):
            step(scaler, optimizer, w, bad)
            assert (scaler.get_scale(), w.data.tolist(), optimizer.updates) == (8.0 / 2**k, [1.0], 0)
        step(scaler, optimizer, w, 0.75)
        assert w.data.tolist() == [0.625]


def test_the_factor_grows_after_each_interval_of_finite_steps_counted_anew_after_an_infinity() -> None:
    w = weight()
    scaler, optimizer = amp.GradScaler(init_scale=4.0, growth_factor=3.0, growth_interval=5), optim.SGD([w], lr=0.0)
    for n in range(1, 23):
        step(scaler, optimizer, w, 1.0)
        assert scaler.get_scale() == 4.0 * 3.0 ** (n // 5)
    for gradient, factor in ((np.inf, 162.0), *[(1.0, 162.0)] * 4, (1.0, 486.0)):
        step(scaler, optimizer, w, gradient)
        assert scaler.get_scale() == factor


def test_the_factor_stays_a_normal_number_in_a_run_of_one_kind_of_steps() -> None:
    for gradient, limit in ((float("nan"), 2.0**-126), (0.0, 2.0**127)):
        w = weight()
        scaler, optimizer = amp.GradScaler(growth_interval=1), optim.SGD([w], lr=1.0)
        for _ in range(200):
            step(scaler, optimizer, w, gradient)
        assert scaler.get_scale() == limit
        assert w.item() == 1.0


def test_unscaled_gradients_can_be_clipped_and_are_divided_once() -> None:
    w = weight()
    scaler, optimizer = amp.GradScaler(init_scale=64.0), optim.SGD([w], lr=1.0)
    scaler.scale((w * 3).sum()).backward()
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [3.0]
    w.grad[...] = 0.5
    scaler.step(optimizer)
    scaler.update()
    assert w.data.tolist() == [0.5]


def test_two_optimizers_share_a_factor_and_only_the_one_with_infinities_stands_still() -> None:
    a, b = weight(), weight()
    scaler, first, second = amp.GradScaler(init_scale=2.0), optim.SGD([a], lr=1.0), optim.SGD([b], lr=1.0)
    for loss in scaler.scale([(a * np.inf).sum(), (b * 0.25).sum()]):
        loss.backward()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert (a.item(), b.item(), scaler.get_scale()) == (1.0, 0.75, 1.0)


def test_a_resumed_scaler_goes_on_as_the_saved_one() -> None:
    w = weight()
    saved, optimizer = amp.GradScaler(init_scale=4.0, growth_interval=3), optim.SGD([w], lr=0.0)
    step(saved, optimizer, w, 1.0)
    step(saved, optimizer, w, 1.0)
    resumed = amp.GradScaler()
    resumed.load_state_dict(saved.state_dict())
    step(resumed, optimizer, w, 1.0)
    assert resumed.get_scale() == 8.0
    assert resumed.state_dict() == {
        "scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 3, "_growth_tracker": 0
    }  # fmt: skip


def test_a_state_with_a_value_that_makes_no_sense_is_refused_and_changes_nothing() -> None:
    scaler = amp.GradScaler(init_scale=4.0)
    before = scaler.state_dict()
    for entry, value, error in (
        ("scale", "a", TypeError),
        ("scale", 0.0, ValueError),
        ("growth_interval", 2.5, TypeError),
    ):
        with pytest.raises(error, match=f"GradScaler: {entry} must be"):
            scaler.load_state_dict({**before, "growth_factor": 8.0, entry: value})
        assert scaler.state_dict() == before
    with pytest.raises(TypeError, match=r"a state is a dict, .* not a NoneType"):
        scaler.load_state_dict(None)  # type: ignore[arg-type]


def test_a_scaler_that_is_not_enabled_changes_nothing() -> None:
    w = weight()
    scaler, optimizer = amp.GradScaler(enabled=False), optim.SGD([w], lr=1.0)
    step(scaler, optimizer, w, 0.5)
    assert (w.item(), scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (0.5, 1.0, {}, False)


def test_calls_out_of_order_are_refused() -> None:
    w = weight()
    scaler, optimizer = amp.GradScaler(), optim.SGD([w], lr=1.0)
    with pytest.raises(RuntimeError, match=r"update\(\) without a step"):
        scaler.update()
    with pytest.raises(RuntimeError, match="no parameter has a gradient: call scale"):
        scaler.step(optimizer)
    scaler.scale((w * 3).sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) was already called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) was already called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) comes before step\(\)"):
        scaler.unscale_(optimizer)


def test_settings_that_make_no_sense_are_refused() -> None:
    for error, options in (
        (ValueError, {"init_scale": 0, "growth_factor": 1, "backoff_factor": 1, "growth_interval": 0}),
        (TypeError, {"init_scale": "4", "growth_factor": True, "backoff_factor": None, "growth_interval": 2.5}),
        (ValueError, {"init_scale": 1e39}),  # the scaled loss would be infinite
    ):
        for name, value in options.items():
            with pytest.raises(error, match=f"GradScaler: {name} must be"):
                amp.GradScaler(**{name: value})  # type: ignore[arg-type]
    for scale in (0.0, -1.0, float("inf"), float("nan"), 1e39, 1e-39):
        with pytest.raises(ValueError, match="GradScaler: new_scale must be"):
            amp.GradScaler().update(scale)
    with pytest.raises(ValueError, match="the first argument is the device, 'cpu', not 1024"):
        amp.GradScaler(1024.0)  # type: ignore[arg-type]
    w = Tensor(np.ones(1, np.float16), requires_grad=True)
    w.grad = np.ones(1, np.float16)
    with pytest.raises(ValueError, match=r"leave out unscale_\(\).*clip to max_norm"):
        amp.GradScaler().unscale_(optim.SGD([w], lr=1.0))


def test_gradients_in_16_bits_are_unscaled_in_float32_where_they_may_be_less_than_the_least_float16() -> None:
    narrow, wide = Tensor(np.zeros(1, np.float16), requires_grad=True), weight(0.0)
    scaler, optimizer = amp.GradScaler(), optim.SGD([narrow, wide], lr=1.0)
    for scaled in (0.75, np.inf, 0.75):
        scale = scaler.get_scale()
        narrow.grad, wide.grad = np.array([scaled / 1024], np.float16), np.array([scaled * 7], np.float32)
        scaler.step(optimizer)
        scaler.update()
        if np.isfinite(scaled):
            assert np.float16(scaled / 1024 / scale) == 0
            assert wide.grad.item() == np.float32(scaled * 7 / scale)
    assert optimizer.state[narrow]["master_param"].item() == -3 * 0.75 / 1024 / 65_536
    assert wide.item() == -3 * 5.25 / 65_536


def test_a_step_that_one_rank_cannot_take_is_left_out_by_all() -> None:
    def program(comm: Communicator) -> tuple[float, float]:
        w = weight()
        scaler = amp.GradScaler(init_scale=8.0, agree=lambda mine: all(comm.all_gather(mine)))
        optimizer = optim.SGD([w], lr=0.5)
        for bad in (1, None, 2):
            if bad is None or comm.rank > 0:  # else it has no gradient, as a stage without samples
                step(scaler, optimizer, w, np.inf if comm.rank == bad else 1.0)
            else:
                scaler.step(optimizer)
                scaler.update()
        return w.item(), scaler.get_scale()

    assert cluster.launch(program, nodes=3, on="simulation").results == [(0.5, 2.0)] * 3
