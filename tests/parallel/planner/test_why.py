"""The three sentences of why: each figure is computed again, on a machine with the setting that the sentence names."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from minidl.parallel.planner import Machine, Transformer, memory, search, step_time, why
from minidl.parallel.planner.why import NAMES
from minidl.plots.style import bytes_text, seconds_text
from minidl.random import Purpose, stream
from tests.tiers import exhaustively

SETTINGS = {"rate between nodes": "between", "rate within a node": "inside", "memory": "memory"}


def drawn(seed: int) -> tuple[Transformer, Machine, int]:
    """A GPT, a machine on which it fits with little or much to spare, and a minibatch."""
    rng = stream(Purpose.MANUAL, seed, "why")
    heads = int(rng.choice([3, 4, 6]))
    gpt = Transformer(
        layers=int(rng.choice([4, 6, 9])),
        width=heads * int(rng.choice([48, 80, 128])),
        heads=heads,
        context=int(rng.integers(200, 900)),
        vocabulary=int(rng.integers(3000, 50_000)),
    )
    machine = Machine(
        int(rng.choice([1, 2, 4])), 10 ** rng.uniform(13, 15), 80e9, 10 ** rng.uniform(11.5, 12.5),
        inside=10 ** rng.uniform(9.5, 11.7), between=10 ** rng.uniform(9, 11.3), nodes=int(rng.choice([1, 2, 3])),
    )  # fmt: skip
    batch = machine.world * int(rng.choice([2, 3, 4]))
    least = min(each.memory.total for each in search(gpt, machine, batch))
    return gpt, replace(machine, memory=least * rng.uniform(1.05, 2.5)), batch


def percent(less: float) -> str:
    return f"{100 * less:.1f}"


@pytest.mark.parametrize("seed", [1, 3, 6, 12, *exhaustively(0, 2, 4, 5, *range(7, 12), *range(13, 40))])
def test_every_figure_of_the_three_sentences_is_true(seed: int) -> None:
    gpt, machine, batch = drawn(seed)
    plans = search(gpt, machine, batch)
    first, limit, gain = why(gpt, machine, plans)
    best, time = plans[0], step_time(gpt, plans[0].arrangement, machine)

    peak = gpt.flops(batch) / time.total / machine.world / machine.flops_per_s
    assert first.startswith(f"{best.arrangement}: {seconds_text(time.total)} a step, {peak:.0%} of the peak (")
    shares = {what: getattr(time, name) / time.total for name, what in NAMES.items()}
    said = {what: share for share, what in re.findall(r"(\d+%) ([^,)]+)[,)]", first.partition("(")[2])}
    assert said == {what: f"{share:.0%}" for what, share in shares.items() if share >= 0.01}

    if limit.startswith("Memory binds: "):
        text = limit.removeprefix("Memory binds: ").partition(" would")[0]
        faster = next(each.arrangement for each in plans if str(each.arrangement) == text)
        seconds, needs = step_time(gpt, faster, machine).total, memory(gpt, faster).total
        assert f"would take {percent(1 - seconds / time.total)}% less, but needs {bytes_text(needs)} of" in limit
        assert seconds < time.total
        assert needs > machine.memory
    else:
        assert f"holds {bytes_text(memory(gpt, best.arrangement).total)} of" in limit
        most = 3 * machine.memory
        assert f"at most {bytes_text(most)} is faster" in limit
        assert search(gpt, replace(machine, memory=most), batch)[0].seconds == time.total
    assert f" of {bytes_text(machine.memory)}" in limit

    gains = {what: less for less, what in re.findall(r"([\d.]+)% less with twice the ([a-z ]+)", gain)}
    has = {"between": machine.nodes > 1, "inside": machine.accelerators > 1, "memory": True}
    assert gains.keys() == {what for what, name in SETTINGS.items() if has[name]}
    for what, less in gains.items():
        better = replace(machine, **{SETTINGS[what]: 2 * getattr(machine, SETTINGS[what])})
        assert less == percent(1 - search(gpt, better, batch)[0].seconds / time.total)
