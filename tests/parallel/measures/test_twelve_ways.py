"""Each way to fool the masses that a table can show: a planted example that is named, and a clean twin that passes."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from minidl.parallel.measures.report_card import problems
from minidl.parallel.measures.result_files import read_results

Change = dict[str, Any]


def table(base: Change, own: Change, seeds: tuple[int, ...] = (0, 1, 2)) -> list[dict[str, Any]]:
    """One node and four, three times as fast, with a little spread; columns with a list have a value per seed."""
    rows = []
    for method, nodes, seconds, change in (("serial", 1, 37.3, base), ("ring", 4, 12.7, own)):
        for place, seed in enumerate(seeds):
            common = {"strategy": method, "nodes": nodes, "batch_size": 64, "epochs": 7, "seed": seed,
                      "accuracy": 0.941 + 0.003 * seed, "seconds": seconds * (1 + 0.01 * seed),
                      "speedup": "" if nodes == 1 else 37.3 / 12.7}  # fmt: skip
            rows.append(common | {key: value[place] if isinstance(value, list) else value
                                  for key, value in change.items()})  # fmt: skip
    return rows


WORSE, NOISY = [0.911, 0.914, 0.917], [0.939, 0.946, 0.943]
NONE: Change = {"accuracy": ""}
PLANTED: dict[str, tuple[Change, Change, Change, Change, str]] = {
    "1 worse accuracy": ({}, {"accuracy": WORSE}, {}, {"accuracy": NOISY}, "over a run of better quality: accuracy"),
    "1 larger minibatch": (NONE, {**NONE, "batch_size": 256}, {}, {"batch_size": 256}, "another minibatch size"),
    "1 fewer epochs": (NONE, {**NONE, "epochs": 3}, {}, {"epochs": 3}, "a run of another length, and no quality"),
    "2 training loss": (
        {},
        {**NONE, "training_loss": 0.01},
        {"training_loss": 0.2},
        {"training_loss": 0.01},
        "its only quality is that of the training set",
    ),
    "4 hardware": (
        {"device": "cpu"},
        {"device": "gpu"},
        {"device": "gpu", "gpu": 1},
        {"device": "gpu", "gpu": 4},  # a number of them
        "is one of more nodes and of other hardware: device=gpu here, device=cpu there",
    ),
    "7 peak rate": (
        {},
        {"samples": 9000, "samples_per_second": 1211.0},
        {"samples": 9000},
        {"samples": 9000, "samples_per_second": [708.0, 701.0, 695.0]},
        "its 1211 samples/s are a peak: 9000 samples took 12",
    ),
    "7 peak column": (
        {},
        {"peak_gflops": [91.5, 92.1, 90.7]},
        {},
        {"peak_gflops": [91.5, 92.1, 90.7], "gflops": [33.1, 32.8, 32.6]},
        "the column 'peak_gflops' is a peak, and there is no column 'gflops'",
    ),
    "10 best epoch": (
        {},
        {"last_accuracy": [0.931, 0.92, 0.947]},
        {},
        {"last_accuracy": [0.941, 0.944, 0.947]},
        "is that of an earlier epoch; after the last one it is 0.9",
    ),
    "11 weak as strong": (
        {},
        {"batch_size": 256, "scaling": "Strong scaling"},
        {},
        {"batch_size": 256, "scaling": "weak"},
        "called strong scaling, but the minibatch grows: batch_size=256 here, batch_size=64 there",
    ),
    "12 a slower baseline": ({}, {"speedup": 5.3}, {}, {}, "but no run on 1 node has this time"),
    "extrapolated": (
        {},
        {"note": ["", "extrapolated from 2 nodes", ""]},
        {},
        {"note": ["", "again, after a reboot", ""]},
        "a row was not measured: note=extrapolated",
    ),
    "best of the seeds, in words": (
        {},
        {"statistic": "best of 5"},
        {"statistic": "mean"},
        {"statistic": "mean"},
        "a row is not the mean of its runs: statistic=best of 5",
    ),
    "no unit": ({"time": [3.1, 3.2, 2.9]}, {}, {"time": "12:31"}, {}, "the column 'time' has no unit"),
}


@pytest.mark.parametrize("way", PLANTED)
def test_a_way_to_fool_the_masses_is_named_and_its_clean_twin_passes(way: str) -> None:
    base, own, clean_base, clean_own, says = PLANTED[way]
    found = problems(table(base, own))
    assert found, way
    assert all(says in problem for problem in found), found
    assert problems(table(clean_base, clean_own)) == []


def test_seeds_that_a_method_left_out_are_named_but_not_a_method_of_fewer_runs() -> None:
    rows = table({}, {}, seeds=(0, 1, 2, 3, 4))
    chosen, fewer = (
        [row for row in rows if row["nodes"] == 1 or row["seed"] in kept] for kept in ((0, 2, 4), range(3))
    )
    assert problems(chosen) == ["ring: its runs with seed 1, 3 were left out"]
    named = [{**row, "seed": ("first", "second", "third", "fourth", "fifth")[row["seed"]]} for row in reversed(chosen)]
    assert problems(named[::-1]) == ["ring: its runs with seed second, fourth were left out"]
    assert problems(fewer) == problems(rows) == []


def test_a_row_of_the_best_seed_is_named_beside_the_rows_of_all_and_a_row_of_their_mean_passes() -> None:
    rows = table({}, {})
    summary = {**rows[3], "seed": "", "seeds": 3, "speedup": "", "seconds": ""}
    (problem,) = problems([*rows, summary | {"accuracy": 0.947}])
    assert problem == "ring: its accuracy of 0.947 is the best of its seeds, not their mean, 0.944"
    assert problems([*rows, summary | {"accuracy": 0.944}]) == []


def test_a_mean_without_its_spread_is_named() -> None:
    row = {"strategy": "ring", "seeds": 5, "accuracy": 0.951}
    assert problems([row]) == ["ring: its accuracy is a mean of 5 seeds without their spread"]
    assert problems([row | {"accuracy_std": 0.003}]) == []


def test_sizes_that_a_method_left_out_are_named() -> None:
    rows = [
        {"strategy": method, "nodes": nodes, "seed": seed, "seconds": took / nodes**0.9 + 0.1 * seed}
        for method, took in (("ring", 40.3), ("tree", 44.1))
        for nodes in (2, 8, 32)
        for seed in range(3)
    ]
    without = [row for row in rows if (row["strategy"], row["nodes"]) != ("tree", 8)]
    assert problems(without) == ["tree: its runs with nodes=8 are missing, which other methods have"]
    single = [{**row, "strategy": "serial", "nodes": 1} for row in rows[:3]]
    assert problems([*rows, *single]) == []  # one node alone is no selection


@pytest.mark.parametrize(
    ("column", "spoilt", "clean"),
    [
        ("note", "projected to 64 nodes", "for the project of May"),
        ("source", "projection", "a model with a linear projection"),
        ("comment", "predicted by the model", "next-word prediction"),
        ("source", "estimate", "straight-through estimator"),
        ("note", "by extrapolation", "not extrapolated"),
        ("statistic", "maximum of 5", "mean top-1 accuracy"),
        ("statistic", "min", "mean over minibatches"),
        ("statistic", "minimal loss", "mean of minidl's runs"),
        ("statistic", "top of 5 seeds", "mean per minute"),
        ("note", "best of 5 runs", "mean, not the best of 5 runs"),
        ("comment", "Fastest run of 3", "max run time 2 h"),
        ("source", "maximum over seeds", "best hyperparameters by grid search"),
    ],
)
def test_words_that_only_begin_like_a_trick_pass(column: str, spoilt: str, clean: str) -> None:
    says = ("was not measured", "is not the mean of its runs")
    [problem] = problems(table({}, {column: spoilt}))
    assert problem in [f"ring: a row {each}: {column}={spoilt}" for each in says]
    assert problems(table({}, {column: clean})) == []


# ---- files ----


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_the_best_epoch_is_found_in_a_folder_by_its_history(tmp_path: Path) -> None:
    rows = [{"network": "none", **row} for row in table({}, {})]
    write(tmp_path / "runs.csv", rows)
    assert problems(read_results(tmp_path)) == problems(read_results(tmp_path / "runs.csv")) == []
    epochs = [{**row, "epoch": epoch} for row in rows for epoch in (1, 2)]
    epochs[-1]["accuracy"] = 0.92
    write(tmp_path / "history.csv", epochs)
    (problem,) = problems(read_results(tmp_path))
    assert problem == "ring: its accuracy of 0.947 is that of an earlier epoch; after the last one it is 0.92"


def test_run_folders_are_rows_and_a_run_that_was_stopped_is_no_result(tmp_path: Path) -> None:
    for seed in range(3):
        folder = tmp_path / f"run-{seed}"
        row = {"loss": 0.2, "test_loss": 0.3, "accuracy": 0.9 + 0.01 * seed, "seconds": 2.5, "samples": 90, "steps": 6}
        write(folder / "metrics.csv", [{"epoch": epoch, **row} for epoch in range(1, 3 - (seed == 2))])
        (folder / "config.json").write_text(json.dumps({"strategy": "gossip", "epochs": 2, "seed": seed, "extra": {}}))
    rows = read_results(tmp_path)
    assert [(row["strategy"], row["seed"], row["ended"]) for row in rows] == [
        ("gossip", 0, ""), ("gossip", 1, ""), ("gossip", 2, "after epoch 1"),
    ]  # fmt: skip
    assert problems(rows) == []
    assert problems(rows[:2]) == ["gossip: 2 seeds where 3 are needed to see the spread"]
    assert len(read_results(tmp_path / "run-0")) == 1


def test_a_folder_or_a_file_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has neither runs\.csv nor run folders: give a CSV file"):
        read_results(tmp_path)
    (tmp_path / "empty.csv").write_text("strategy,seed\n")
    with pytest.raises(ValueError, match="has no rows"):
        read_results(tmp_path / "empty.csv")


def test_a_byte_order_mark_is_skipped_and_columns_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    write(path, table({}, {}))
    text = path.read_text()
    path.write_text(text, encoding="utf-8-sig")
    assert problems(read_results(path)) == []
    path.write_text(text.replace("seconds", "accuracy", 1))
    with pytest.raises(ValueError, match=r"runs\.csv has two columns of the name 'accuracy': rename one"):
        read_results(path)
    path.write_text(text.replace(",37.3,", ",37,3,", 1))
    with pytest.raises(ValueError, match="a row has more values than the table has columns"):
        problems(read_results(path))


@pytest.mark.parametrize(
    ("separator", "point", "columns", "accuracy", "seconds"),
    [(",", ".", ("accuracy (%)", "time [min]"), "{:.3f}", 1 / 60), (";", ",", ("Test Accuracy", "time_s"), "{:.5f}", 1),
     ("\t", ".", ("accuracy_pct", "Runtime (ms)"), "{:.3f}", 1000), (";", ",", ("accuracy", "seconds"), "{:.3f}%", 1),
     ("|", ".", ("ACCURACY", "seconds [s]"), "{:.3f}", 1)],
)  # fmt: skip
@pytest.mark.parametrize("is_worse", [False, True])
def test_files_of_other_units_separators_and_decimals_are_judged_alike(
    separator: str, point: str, columns: tuple[str, str], accuracy: str, seconds: float, is_worse: bool, tmp_path: Path
) -> None:
    lines = [("Method", "nodes", "seed", *columns, "speedup [x]", "memory_gb")]
    for method, nodes, took in (("serial", 1, 91.7), ("ring", 5, 30.4)):
        for seed in (3, 5, 11):
            share = 0.931 + seed / 1e4 - (0.05 if is_worse and nodes > 1 else 0)
            text = accuracy.format(share if accuracy == "{:.5f}" else 100 * share)
            numbers = (text, f"{took * seconds:.6f}", f"{91.7 / took:.4f}")
            memory = "n/a" if seed == 5 else "\N{EN DASH}"
            lines.append((method, str(nodes), str(seed), *(one.replace(".", point) for one in numbers), memory))
    path = tmp_path / "theirs.csv"
    path.write_text("\n".join(separator.join(line) for line in lines), encoding="utf-8")
    found = problems(read_results(path, "Method"), "Method")
    assert ["speedup is over a run of better quality" in one for one in found] == [True] * is_worse


def test_columns_that_only_look_like_known_ones_keep_their_names_and_other_encodings_are_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "theirs.csv"
    head = ["strategy", "Model", "accuracy (training)", "test_loss_min", "Seconds", "seconds", "time"]
    path.write_text(",".join(head) + "\nring,a,0.93,0.1,3,4,5\n")
    assert list(read_results(path, "Model")[0]) == head
    path.write_text("strategy,seconds\nGröße,3\n", encoding="latin-1")
    with pytest.raises(ValueError, match=r"is not in UTF-8: save it as CSV in UTF-8"):
        read_results(path)
