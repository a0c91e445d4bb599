"""The race of the capstone: what a recipe may be, what a run counts, and that it is the same every time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from course.checks.capstone import pass_times, races
from course.checks.capstone.references import REFERENCES, ours
from course.judging import Wrong
from course.probes import capstone
from minidl import cluster, nn, optim, parallel
from tests.tiers import exhaustively

SGD = {"name": "SGD", "lr": 0.3, "momentum": 0.9}
SLOW = capstone.clusters((31, 8))["slow links"]
QUIET = replace(SLOW, death=(SLOW.death[0], 1e9))
SHORT = {"optimizer": SGD, "epochs": 1, "batch_size": 131}


def test_a_race_is_the_same_each_time_and_another_for_another_seed() -> None:
    once, again, other = (capstone.run(SLOW, SHORT | {"strategy": ours(SLOW)["strategy"]}, seed) for seed in (5, 5, 6))
    assert once == again
    assert once.rows != other.rows
    assert once.score == capstone.MISSED  # one epoch is too few


@pytest.mark.parametrize(("strategy", "second"), [("Synchronous", 0.5), ("Downpour", 1e9)])  # evaluated in it, after it
def test_a_run_ends_at_the_target_or_after_the_budget(
    strategy: str, second: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies = replace(SLOW, death=(SLOW.death[0], second))
    recipe = SHORT | {"strategy": {"name": strategy}, "optimizer": {"name": "SGD", "lr": 0.05}, "epochs": 3}
    monkeypatch.setattr(capstone, "TARGET", 1.1)
    whole = capstone.run(dies, recipe)
    assert len(whole.rows) == 3
    late = capstone.run(replace(dies, budget=1.001 * whole.rows[0][0]), recipe)
    assert (late.rows, late.seconds) == (whole.rows[:2], None)
    monkeypatch.setattr(capstone, "TARGET", whole.rows[1][1])
    until = next(number for number, row in enumerate(whole.rows, 1) if row[1] >= whole.rows[1][1])
    ended = capstone.run(dies, recipe)
    assert ended.rows == whole.rows[:until]
    assert ended.seconds == ended.rows[-1][0]


def test_a_run_takes_the_seconds_of_the_formula() -> None:
    ranks = [SLOW.slow[0], *(r for r in range(SLOW.workers) if r not in (SLOW.slow[0], SLOW.death[0]))]
    for chosen in (ranks, ranks[1:]):
        recipe = SHORT | {"strategy": {"name": "Synchronous", "algorithm": "ring", "bucket_mb": 100}, "ranks": chosen}
        (first, *_), (second, *_) = capstone.run(QUIET, recipe | {"epochs": 2}).rows
        once = cluster.cost.all_reduce("ring", len(chosen), 50_000_000, SLOW.alpha, SLOW.beta)  # for the evaluation
        assert second - first - once == pytest.approx(pass_times.seconds(QUIET, chosen, 131, 1), rel=0.06)


def test_the_flops_of_a_sample_are_those_that_the_kernels_count() -> None:
    job = parallel.Job(
        partial(nn.models.MLP, *capstone.WIDTHS), capstone.digits, partial(optim.SGD, lr=0.1), batch_size=64, epochs=1
    )
    assert sum(parameter.size for parameter in job.build_model().parameters()) == capstone.PARAMETERS
    assert len(capstone.digits().train) == capstone.SAMPLES
    [row] = parallel.train(job, None, 1, cluster.Simulation(node=cluster.Node(1.0, np.inf))).history
    assert row["seconds"] / capstone.SAMPLES == pytest.approx(capstone.FLOPS_A_SAMPLE, rel=0.03)


def test_a_list_of_steps_can_be_synchronous_training_or_local_sgd() -> None:
    same = {("gradients",): {"name": "Synchronous"}, ("weights",): {"name": "LocalSGD", "period": 1}}
    ranks = [r for r in range(SLOW.workers) if r != SLOW.death[0]]
    for (kind,), strategy in same.items():
        listed = capstone.run(QUIET, SHORT | {"strategy": {"name": "Rounds", "steps": [[kind]]}, "ranks": ranks})
        named = capstone.run(QUIET, SHORT | {"strategy": strategy, "ranks": ranks})
        assert listed.rows[0][1] == pytest.approx(named.rows[0][1], abs=2.1 / 359)  # sums in another order
        assert listed.rows[0][2] == pytest.approx(named.rows[0][2], rel=2e-3)
        assert listed.rows[0][0] == pytest.approx(named.rows[0][0], rel=0.3)


def test_groups_of_a_list_average_among_themselves_and_the_others_go_on_alone() -> None:
    rounds = capstone.Rounds([["weights", [0, 2], [1, 3]], ["alone"]])
    job = parallel.Job(
        partial(nn.models.MLP, 64, 10), capstone.digits, partial(optim.SGD, lr=0.1), batch_size=719, epochs=1
    )
    report = parallel.train(job, rounds, 5, "simulation")
    sent = [sum(traffic.nbytes for traffic in row.values()) for row in report.trace.ledger()]
    assert min(sent[:4]) >= sent[4] + 4 * 650  # the weights, once in two steps


def test_an_entry_that_goes_on_after_the_death_trains_and_a_list_of_steps_ends() -> None:
    dies = replace(SLOW, death=(SLOW.death[0], 0.5))
    split = capstone.run(dies, SHORT | {"strategy": {"name": "Sharded", "stage": 1}})
    assert "killed" in split.why  # no new machine takes the place of the dead one
    elastic = capstone.run(dies, SHORT | {"strategy": {"name": "Synchronous"}})
    ended = capstone.run(dies, SHORT | {"strategy": {"name": "Rounds"}})
    assert (len(elastic.rows), elastic.why) == (1, "")
    assert "killed" in ended.why
    assert (ended.rows, ended.score) == ((), capstone.MISSED)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"strategy": {"name": "Hogwild"}}, "strategy: name must be"),
        ({"strategy": {"name": "Synchronous", "compressor": {"name": "launch"}}}, "compressor: name must be"),
        ({"strategy": {"name": "ParameterServer", "servers": 7}, "ranks": [0, 1]}, "leaves none to compute"),
        ({"ranks": [1, 1]}, "different machines"),
        ({"ranks": [-1]}, "from 0 to"),
        ({"epochs": 2.5}, "epochs must be a whole number from 1 to 40, got 2.5"),
        ({"strategy": {"name": "Rounds", "steps": 5}}, "steps must be a list, got 5"),
        ({"strategy": {"name": "Rounds", "steps": "ab"}}, "steps must be a list, got 'ab'"),
        ({"epochs": 10**12}, "from 1 to 40"),
        ({"batch_size": 7, "epochs": 33}, "20,000 gradients"),
        ({"seed": 3}, "a key of the recipe"),
        ({"ranks": None}, "ranks must be a list"),
        ({"rates": [0.4, -0.1]}, "at least 0"),
        ({"optimizer": {"name": "Optimizer"}}, "optimizer: name must be"),
        ({"strategy": {"name": "Rounds", "steps": []}}, "got an empty one"),
        ({"strategy": {"name": "Rounds", "steps": [["weights", 3]]}}, "a group must be a list, got 3"),
    ],
)
def test_what_is_no_recipe_is_refused_in_a_sentence(change: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        capstone.checked(SLOW, {"strategy": {"name": "Synchronous"}, "optimizer": SGD} | change)


def test_a_recipe_with_code_in_it_is_refused_before_it_runs() -> None:
    class Answered:
        def __call__(self, cluster: Any) -> Any:
            return {"strategy": races.Foreign("Synchronous"), "optimizer": SGD}

    with pytest.raises(Wrong, match="a Synchronous in the recipe"):
        races.Field(Answered(), (3, 9)).race("slow links")  # type: ignore[arg-type]


def test_the_score_is_a_geometric_mean_in_which_a_miss_counts_two_budgets() -> None:
    made = [capstone.Race(3.0, 0.25, ()), capstone.Race(None, capstone.MISSED, ())]
    assert capstone.score(made) == pytest.approx(0.5**0.5)


def test_the_seeds_of_the_hidden_runs_are_not_the_practice_ones() -> None:
    seeds = races.Field(None, capstone.PRACTICE).seeds  # type: ignore[arg-type]
    assert len(set(seeds.values())) == 3
    assert 0 not in seeds.values()


@pytest.mark.parametrize(
    ("number", "kinds"), [(0, ["faster links"]), *exhaustively(*((number, [*capstone.KINDS]) for number in range(4)))]
)
def test_the_references_get_better_from_naive_to_ours(number: int, kinds: list[str]) -> None:
    field = races.Field(None, (number, 977 + number))  # type: ignore[arg-type]
    field.clusters = {kind: field.clusters[kind] for kind in kinds}
    scores = [field.reference(name) for name in REFERENCES]
    assert scores[0] > scores[1] > scores[2], scores
