"""The report card lets sound tables pass and names what is wrong with the others."""

import math
import sys

import pytest

from minidl.parallel.measures.report_card import problems


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


def test_a_sound_table_passes_also_as_texts_of_a_reader():
    assert problems(iter(sound())) == problems([]) == []
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


def test_no_seed_and_too_few_seeds_are_rejected():
    rows = sound()
    rows[4]["seed"] = ""
    assert problems(rows) == ["synchronous: no seed is given"]
    rows = [row for row in sound() if row["seed"] == 0 or row["nodes"] == 1]
    assert problems(rows) == ["synchronous: 1 seed where 3 are needed to see the spread"]
    assert problems(rows, seeds=1) == []


def test_a_speedup_over_a_slow_baseline_is_rejected():
    rows = sound()
    tuned = [{**row, "strategy": "serial, tuned", "seconds": 6.0, "speedup": 1.0} for row in rows[:3]]
    found = problems(rows + tuned)
    assert "synchronous: its speedup is relative to 12 s on 1 node, where another run that is no worse has 6 s" in found


def test_a_faster_baseline_that_is_less_accurate_does_not_count():
    rows = sound()
    worse = [{**row, "strategy": "serial, hasty", "accuracy": 0.5, "seconds": 6.0, "speedup": ""} for row in rows[:3]]
    assert problems(rows + worse) == []


def test_a_speedup_over_nothing_in_the_table_is_rejected():
    rows = [row for row in sound() if row["nodes"] == 4]
    assert problems(rows) == [
        "synchronous: its speedup is relative to 12 s, but no run on 4 nodes, network=10gbe has this time"
    ]


# ---- configuration that the report card was not told of ----


def speed_and_quality(speed: dict, quality: dict, seeds: int = 3) -> list[dict]:
    """Rows of speed and rows of accuracy of one method, with columns of their own."""
    common = {"strategy": "ring", "nodes": 4}
    return [
        *({**common, "seed": seed, "seconds": 4.0 + 0.1 * seed, **speed} for seed in range(seeds)),
        *({**common, "seed": seed, "accuracy": 0.95 + 0.001 * seed, **quality} for seed in range(seeds)),
    ]


@pytest.mark.parametrize(
    ("column", "fast", "good"),
    [
        ("dtype", "float16", ""),
        ("dtype", "", "float32"),
        ("augmented", False, True),
        ("layers", [64, 10], [64, 64, 10]),
        ("bits", 16, 32),
        ("density", "0.001", "1.0"),
    ],
)
def test_speed_and_accuracy_with_different_values_of_an_unknown_setting_are_rejected(column, fast, good):
    found = problems(speed_and_quality({column: fast}, {column: good}))
    assert any("the speed with nodes=4" in problem and "comes without the quality" in problem for problem in found)
    assert problems(speed_and_quality({column: good or fast}, {column: good or fast})) == []


@pytest.mark.parametrize(
    "columns",
    [
        lambda i: {"peak_memory_mb": 812.25 + 3.7 * i},  # a measurement, different in every run
        lambda i: {"restarts": (0, 0, 1, 0, 2, 0)[i % 6]},  # a count, which repeats now and then
        lambda i: {"host": ("alpha", "beta")[i % 2], "date": "2026-11-22", "comment": "again" if i == 2 else ""},
        lambda i: {"cache_hits": "" if i % 2 else 7.5 + i},
        lambda i: {"wattage": float("nan") if i % 2 else 100.0 + i},
    ],
)
@pytest.mark.parametrize("is_apart", [False, True])
def test_columns_of_measurements_and_remarks_are_no_configuration(columns, is_apart):
    rows = speed_and_quality({}, {}) if is_apart else sound()
    assert problems([{**row, **columns(i)} for i, row in enumerate(rows)]) == []


def test_a_column_that_is_declared_as_measured_is_none_of_the_configuration():
    rows = speed_and_quality({"bottleneck": "network"}, {})
    assert problems(rows) != []
    assert problems(rows, measured=("bottleneck",)) == []


def test_a_run_that_diverged_counts_as_a_seed():
    rows = [{**row, "epochs": 10, "ended": ""} for row in sound()]
    rows[1] |= {"epochs": 3, "ended": "diverged in epoch 4", "accuracy": "", "speedup": ""}
    assert problems(rows) == []


@pytest.mark.parametrize(
    ("seeds", "sound_or_not"), [(5, []), (2, ["ring: 2 seeds where 3 are needed to see the spread"])]
)
def test_a_row_of_means_says_of_how_many_seeds(seeds, sound_or_not):
    assert (
        problems([{"strategy": "ring", "seeds": seeds, "accuracy": 0.95, "accuracy_std": 0.01, "seconds": 2.5}])
        == sound_or_not
    )


# ---- speedups ----


def with_jitter() -> list[dict]:
    """A sound table whose times differ from seed to seed by up to 30 %."""
    rows = sound()
    for row, factor in zip(rows, (0.9, 1.0, 1.2, 1.1, 0.9, 1.0), strict=True):
        row["seconds"] *= factor
    return rows


def test_speedups_of_times_that_differ_from_seed_to_seed_pass_by_seeds_and_by_means():
    by_seeds = with_jitter()
    for own, base in zip(by_seeds, by_seeds[:3] * 2, strict=True):
        own["speedup"] = base["seconds"] / own["seconds"]
    assert problems(by_seeds) == []
    by_means = with_jitter()
    for i, row in enumerate(by_means):
        row["speedup"] = 1.0 if i < 3 else 12.4 / 4.0
    assert problems(by_means) == []


@pytest.mark.parametrize("column", ["accuracy", "test_loss"])
def test_a_speedup_over_a_baseline_of_better_quality_is_rejected(column):
    rows = sound()
    for i, row in enumerate(rows):
        good = i < 3
        del row["accuracy"]
        row[column] = (0.97 if good else 0.93) if column == "accuracy" else (0.10 if good else 0.20)
        row[column] += 0.001 * row["seed"]
    (problem,) = problems(rows)
    assert problem.startswith("synchronous: its speedup is over a run of better quality: ")
    assert problem.endswith(
        {"accuracy": "accuracy 0.931 here, 0.971 there", "test_loss": "test_loss 0.201 here, 0.101 there"}[column]
    )


def test_a_speedup_at_an_accuracy_that_is_lower_by_noise_alone_passes():
    rows = sound()
    for row, accuracy in zip(rows, (0.94, 0.96, 0.95, 0.95, 0.93, 0.955), strict=True):
        row["accuracy"] = accuracy
    assert problems(rows) == []


def test_a_speedup_of_throughput_or_of_the_time_to_a_target_passes():
    for column in ("samples_per_second", "seconds_to_target"):
        rows = sound()
        for row in rows:
            seconds = row.pop("seconds")
            row[column] = 1000 / seconds if column == "samples_per_second" else seconds
            row["target"] = 0.9
        assert problems(rows) == []
    for row in rows[3:]:  # the times are to the target: what accuracy comes in the end is another matter
        row["accuracy"] = 0.91
    assert problems(rows) == []
    for row in rows[3:]:
        row["target"] = 0.8
    assert problems(rows) == ["synchronous: its speedup compares the time to 0.8 with that to 0.9"]


def test_a_speedup_over_another_method_on_as_many_nodes_passes_if_that_is_the_best_one():
    rows = sound()
    compressed = [{**row, "strategy": "compressed", "seconds": 2.0, "speedup": 2.0} for row in rows[3:]]
    assert problems(rows + compressed) == []
    both = [{**row, "strategy": "overlapped", "seconds": 1.5, "speedup": 4.0 / 1.5} for row in rows[3:]]
    assert problems(rows + compressed + both) == []  # two that compete, over the same baseline
    slow = [{**row, "strategy": "slow", "seconds": 8.0, "speedup": ""} for row in rows[3:]]
    for row in compressed:
        row["speedup"] = 4.0
    assert (
        "compressed: its speedup is relative to 8 s on 4 nodes, where another run that is no worse has 4 s"
        in problems(rows + compressed + slow)
    )


def test_the_quality_of_a_speedup_may_stand_in_rows_of_its_own():
    for lower, expected in ((0.0, 0), (0.1, 1)):
        rows = []
        for row in sound():
            rows.append({key: value for key, value in row.items() if key != "accuracy"})
            accuracy = row["accuracy"] - lower * (row["nodes"] == 4)
            rows.append({**row, "accuracy": accuracy, "seconds": "", "speedup": ""})
        found = problems(rows)
        assert len(found) == expected
        assert all("its speedup is over a run of better quality" in problem for problem in found)


def test_a_speedup_without_a_time_or_that_is_no_number_is_rejected():
    rows = sound()
    for row in rows[3:]:
        del row["seconds"]
    assert "synchronous: its speedup of 3 comes without a time" in problems(rows)
    for rate in (math.inf, -400.0, 0.0):  # of no run
        assert "synchronous: its speedup of 3 comes without a time" in problems(
            [row | {"samples_per_second": rate} for row in rows]
        )
    assert "synchronous: its speedup, 3x, is no number" in problems([row | {"speedup": "3x"} for row in sound()])


def test_rows_that_are_no_dictionaries_or_have_no_method_are_refused():
    with pytest.raises(ValueError, match="no row has the column 'method': give name="):
        problems(sound(), name="method")
    with pytest.raises(TypeError, match="each row must be a dictionary from column to value, got 's'"):
        problems("strategy")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no row has a quality or a speed: give one of the columns accuracy, "):
        problems([{"strategy": "ring", "seed": seed, "accuracy_mean": 0.9} for seed in range(3)])


@pytest.mark.parametrize(
    ("column", "text"),
    [("accuracy", "73.1%"), ("test_loss", "about 0.2"), ("seconds", "13.7 s"), ("seconds_to_target", "> 4.1"),
     ("samples_per_second", "1,211"), ("nodes", "4 nodes"), ("last_accuracy", "0,93")],
)  # fmt: skip
def test_a_number_with_a_unit_is_named_since_it_cannot_be_compared(column: str, text: str) -> None:
    rows = [{**row, "speedup": ""} for row in sound()]
    assert f"synchronous: its {column}, {text}, is no number" in problems(
        [*rows[:3], *({**row, column: text} for row in rows[3:])]
    )
    assert problems([{**row, "seconds_to_target": "-", "last_accuracy": "n/a"} for row in rows]) == []


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [("accuracy", math.inf, "a fraction from 0 to 1"), ("accuracy", 97.2, "a fraction from 0 to 1"),
     ("accuracy", -0.1, "a fraction from 0 to 1"),
     ("test_loss", math.inf, "a finite number"), ("seconds", -math.inf, "a finite number")],
)  # fmt: skip
def test_a_number_that_no_run_has_is_named(column: str, value: float, expected: str) -> None:
    rows = [{**row, "speedup": ""} for row in sound()]
    [named] = [one for one in problems([*rows[1:], {**rows[0], column: value}]) if "impossible" in one]
    assert named.endswith(f"its {column} of {value:g} is impossible: expected {expected}")


@pytest.mark.parametrize("words", ["three of five", "3 of the 5", "five of five", "mean of five"])
def test_seeds_that_a_count_in_words_leaves_out_are_named(words: str) -> None:
    for row in ({"seeds": words}, {"seeds": 5, "accuracy_std": 0.01, "note": f"{words} seeds"}):
        found = problems([{"strategy": "ring", "accuracy": 0.95, "seconds": 2.5, **row}])
        assert any("were left out" in one for one in found) == (words[0] in "t3")


def test_the_work_of_a_report_card_grows_as_the_number_of_seeds() -> None:
    def counted(seeds: int) -> int:
        """Calls per row of a table of so many seeds, with a speedup, a setting and a measurement in each row."""
        rows = [{"strategy": method, "nodes": nodes, "seed": seed, "lr": lr, "accuracy": 0.9 + 1e-4 * (seed % 7),
                 "seconds": took, "speedup": 61.3 / took, "memory": 3.7 * seed}
                for method, nodes, took in (("serial", 1, 61.3), ("ring", 3, 23.9))
                for seed in range(seeds) for lr in (0.1, 0.3)]  # fmt: skip
        calls = 0

        def call(*_: object) -> None:
            nonlocal calls
            calls += 1

        before = sys.getprofile()
        sys.setprofile(call)
        try:
            assert problems(rows) == ["the column 'memory' has no unit: name it as seconds, bytes or "
                                      "samples_per_second are named"]  # fmt: skip
        finally:
            sys.setprofile(before)
        return calls // len(rows)

    assert counted(99) < 1.2 * counted(11)
