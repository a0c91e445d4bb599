"""The report card lets sound tables pass and names what is wrong with the others."""

import pytest

from minidl.parallel.report_card import problems


def sound() -> list[dict]:
    """Three seeds of two methods, on one node and on four."""
    return [
        {
            "strategy": strategy,
            "network": "10gbe",
            "nodes": nodes,
            "batch_size": 64,
            "seed": seed,
            "accuracy": 0.95 + 0.001 * seed,
            "seconds": seconds,
            "speedup": 12.0 / seconds,
        }
        for strategy, nodes, seconds in (("serial", 1, 12.0), ("synchronous", 4, 4.0))
        for seed in range(3)
    ]


def test_a_sound_table_passes():
    assert problems(sound()) == []


def test_a_sound_table_of_texts_passes():
    assert problems([{key: str(value) for key, value in row.items()} for row in sound()]) == []


def test_speed_and_accuracy_of_different_configurations_are_rejected():
    rows = sound()
    for row in rows[3:]:
        row["accuracy"] = ""
    rows += [{**row, "batch_size": 8, "accuracy": 0.97, "seconds": "", "speedup": ""} for row in rows[3:]]
    found = problems(rows)
    fast, good = (f"network=10gbe, nodes=4, batch_size={size}" for size in (64, 8))
    assert found == [
        f"synchronous: the speed with {fast} comes without the quality of that configuration",
        f"synchronous: the quality with {good} comes without the speed of that configuration",
    ]


@pytest.mark.parametrize("missing", [None, ""])
def test_a_missing_seed_is_rejected(missing):
    rows = sound()
    rows[4]["seed"] = missing
    assert problems(rows) == ["synchronous: no seed is given"]


def test_one_seed_is_too_few():
    rows = [row for row in sound() if row["seed"] == 0 or row["nodes"] == 1]
    assert problems(rows) == ["synchronous: 1 seed where 3 are needed to see the spread"]
    assert problems(rows, seeds=1) == []


def test_one_run_copied_three_times_is_still_one_seed():
    rows = sound()
    for row in rows[:3]:
        row["seed"] = 0
    assert problems(rows) == ["serial: 1 seed where 3 are needed to see the spread"]


def test_a_speedup_over_a_slow_baseline_is_rejected():
    rows = sound()
    tuned = [{**row, "strategy": "serial, tuned", "seconds": 6.0, "speedup": 1.0} for row in rows[:3]]
    found = problems(rows + tuned)
    assert (
        "synchronous: its speedup is relative to 12 s on 1 node(s), where another run that is no worse took 6 s"
        in found
    )


def test_a_faster_baseline_that_is_less_accurate_does_not_count():
    rows = sound()
    worse = [{**row, "strategy": "serial, hasty", "accuracy": 0.5, "seconds": 6.0, "speedup": ""} for row in rows[:3]]
    assert problems(rows + worse) == []


def test_a_speedup_over_nothing_in_the_table_is_rejected():
    rows = [row for row in sound() if row["nodes"] == 4]
    assert problems(rows) == ["synchronous: its speedup is relative to 12 s, but no run on 4 node(s) took so long"]
