"""The swarm: drawn runs keep all invariants, and a defect that is planted is found and shrunk to the smallest run."""

import itertools
import re
from collections import Counter

import pytest

from benchmarks.swarm.__main__ import BROKEN, play
from benchmarks.swarm.choices import drawn
from minidl.cluster.engines.reports import RankReports
from minidl.cluster.engines.simulation.node import Core
from minidl.parallel.run import checkpoint
from minidl.parallel.run.session import Session
from tests.tiers import all_but_first_exhaustive

pytestmark = pytest.mark.timeout(600)

RUNS = 15  # of a case; a run takes about 0.06 s


@pytest.mark.parametrize("case", all_but_first_exhaustive(list(range(60))))
def test_drawn_runs_break_no_invariant(case, capsys):
    ends = play(seed=1, numbers=range(case * RUNS, (case + 1) * RUNS))
    assert ends[BROKEN] == 0, capsys.readouterr().out
    assert sum(ends.values()) == RUNS
    assert ends["trained"] > 0


def test_a_seed_and_a_number_draw_the_same_run_and_others_differ():
    assert drawn(7, 3) == drawn(7, 3)
    different = Counter(str(drawn(seed, number)) for seed, number in itertools.product(range(4), range(25)))
    assert len(different) > 90


def clips_on_few_nodes(session, clip_gradient=Session.clip_gradient):
    if session.comm.size < 3:
        clip_gradient(session)


MORE = itertools.count(1)


def never_twice_as_long(core, *work, seconds=Core.seconds):
    return seconds(core, *work) * (1 + 1e-12 * next(MORE))


PLANTED = {
    "a strategy that promises it equals Serial": (
        (Session, "clip_gradient", clips_on_few_nodes),
        {"strategy": "synchronous", "width": 33, "clip_norm": 0.037, "workers": 5, "strategy.overlap": "true"},
        {"strategy": "synchronous", "clip_norm": 0.037, "workers": 3},
    ),
    "the same run has the same bits and times": (
        (Core, "seconds", never_twice_as_long),
        {"strategy": "gossip", "loss": "padded", "flops_per_s": 3.7e6, "slow": (1, 23.0), "strategy.topology": "full"},
        {"flops_per_s": 1e9},
    ),
    "a resumed run has the bits of one that never stopped": (
        (checkpoint, "load_named_state", lambda *state: None),
        {"strategy": "synchronous", "epochs": 3, "optimizer": "adam:eps=0.01", "resume on": 2},
        {"epochs": 2, "optimizer": "sgd:momentum=0.9,nesterov=true", "resume on": "the same"},
    ),
    "an error names the rank of a planned fault": (
        (RankReports, "_only_one_awake", lambda reports: None),
        {"strategy": "backup_workers", "depth": 2, "network": "slow", "fault 0": ("stop", 1, 8)},
        {"strategy": "backup_workers", "fault 0": ("stop", 0, 1)},
    ),
}


@pytest.mark.parametrize("invariant", all_but_first_exhaustive(list(PLANTED)))
def test_a_planted_defect_is_found_and_shrunk_and_what_is_printed_plays_it_again(invariant, monkeypatch, capsys):
    defect, choices, smallest = PLANTED[invariant]
    monkeypatch.setattr("benchmarks.swarm.__main__.drawn", lambda seed, number: choices)
    monkeypatch.setattr(*defect)
    assert play(seed=0, numbers=[5]) == Counter({BROKEN: 1})
    printed = capsys.readouterr().out
    assert printed.startswith("python -m benchmarks.swarm --seed 0 --run 5\n")
    assert f"BrokenError: {invariant}: " in printed
    assert eval(re.search(r"\ncheck\((.*)\)\n", printed, re.DOTALL)[1]) == smallest
