"""The formulas: exact for what the collectives do, and the published ones where those apply."""

import itertools
import math

import pytest

from minidl import cluster
from minidl.cluster import cost
from minidl.cluster.collectives import ALL_REDUCE
from tests.cluster import rendezvous
from tests.cluster.collective_cases import ALPHA, BETA, GAMMA, cases
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

EVERY_P = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16)
NETWORKS = ((50e-6, 8e-9, 0.0), (12e-6, 8e-11, 2e-10), (1e-6, 4e-11, 0.0), (0.0, 1e-9, 1e-9), (1e-5, 0.0, 0.0))


def published(algorithm: str, p: int, n: float, a: float, b: float, g: float) -> float:
    """The formulas as papers print them: for p a power of two, and chunks that divide evenly."""
    lg, share = math.log2(p), (p - 1) / p
    return {
        "ring": 2 * (p - 1) * a + 2 * share * n * b + share * n * g,
        "ordered": 2 * (p - 1) * a + 2 * share * n * b + share * n * g,
        "tree": 2 * lg * (a + n * b) + lg * n * g,
        "recursive_doubling": lg * a + n * lg * b + n * lg * g,
        "rabenseifner": 2 * lg * a + 2 * share * n * b + share * n * g,
        "parameter_server": 2 * (p - 1) * (a + n * b) + (p - 1) * n * g,
    }[algorithm]


@pytest.mark.parametrize("p", [1, 2, 3, 6, 8, 9, *exhaustively(4, 5, 7, 12, 16)])
def test_the_formulas_are_exact_for_every_collective_on_a_network_of_the_models(p: int) -> None:
    for case in cases((p,), sizes=(0, 1, 5, 17, 1000, 4099), dtypes=("float32", "float64")):
        seconds = rendezvous.run(p, case.on_messages, ALPHA, BETA, GAMMA).seconds
        assert seconds == pytest.approx(case.seconds(), rel=1e-9, abs=1e-18), case


@pytest.mark.parametrize("p", [3, 8, *exhaustively(1, 6, 9)])
def test_the_simulation_takes_the_seconds_of_the_formulas(p: int) -> None:
    network = cluster.Network(ALPHA, BETA, GAMMA)
    for case in cases((p,), sizes=(1, 4099), dtypes=("float64",)):
        run = cluster.launch(case.on_communicator, nodes=p, on=cluster.Simulation(network=network))
        assert run.seconds == pytest.approx(case.seconds(), rel=1e-9), case


def test_for_powers_of_two_the_formulas_are_the_published_ones() -> None:
    names = ("ring", "ordered", "tree", "recursive_doubling", "rabenseifner", "parameter_server")
    for p, algorithm in itertools.product((2, 4, 8, 64, 1024), names):
        ours = cost.all_reduce(algorithm, p, 4 * 1024 * 1000, 50e-6, 1e-9, 0.25e-9)
        assert ours == pytest.approx(published(algorithm, p, 4 * 1024 * 1000, 50e-6, 1e-9, 0.25e-9), rel=1e-12)


def test_the_formulas_have_the_values_of_independent_simulators() -> None:
    assert cost.all_reduce("ring", 8, 8_000_000, 50e-6, 1e-9) == pytest.approx(14.70e-3, rel=1e-12)
    # with ranks beyond a power of two, Rabenseifner's algorithm takes (2 lg p' + 2) alpha + (2 (p' - 1)/p' + 2) n beta
    assert cost.all_reduce("rabenseifner", 6, 8_000_000, 50e-6, 1e-9) == pytest.approx(6 * 50e-6 + 3.5 * 8e-3)
    chain = (8 + 20 - 2) * (2 * 50e-6 + (2e-9 + 0.25e-9) * 8_000_000 / 20)
    assert cost.all_reduce("pipelined_chain", 8, 8_000_000, 50e-6, 1e-9, 0.25e-9, segments=20) == pytest.approx(chain)


def test_uneven_rings_move_the_larger_chunk() -> None:
    assert cost.all_reduce("ring", 4, 9 * 8, 0.0, 1.0, itemsize=8) == 2 * 3 * 3 * 8
    assert cost.all_reduce("ring", 4, 9 * 8, 0.0, 1.0, itemsize=4) == 2 * 3 * 5 * 4


def test_hierarchical_counts_messages_within_and_between_groups_apart() -> None:
    fast, slow = (1e-6, 1e-10), (50e-6, 8e-9)
    seconds = cost.all_reduce("hierarchical", 32, 8_000_000, *slow, per_group=8, intra=fast, inter=slow)
    within = 2 * 7 * fast[0] + 2 * 7 / 8 * 8_000_000 * fast[1]
    between = 2 * 3 * slow[0] + 2 * 3 / 4 * 1_000_000 * slow[1]
    assert seconds == pytest.approx(within + between)


@pytest.mark.parametrize(("p", "factor"), [(4, 4.0), (5, 4.0), (8, 2.4), (12, 2.4), (16, 32 / 17)])
def test_rabenseifner_overtakes_recursive_doubling_at_the_crossover(p: int, factor: float) -> None:
    n = cost.crossover(p, 50e-6, 1e-9)
    assert n == pytest.approx(factor * 50e-6 / 1e-9)
    for gamma in (0.0, 3e-10):
        n = cost.crossover(p, 50e-6, 1e-9, gamma)
        for size, overtaken in ((int(0.99 * n), False), (int(1.01 * n), True)):
            doubling, rabenseifner = (
                cost.all_reduce(name, p, size, 50e-6, 1e-9, gamma) for name in ("recursive_doubling", "rabenseifner")
            )
            assert (rabenseifner < doubling) == overtaken
    assert [cost.crossover(few, 50e-6, 1e-9) for few in (1, 2, 3)] == [math.inf] * 3  # a single round


@pytest.mark.parametrize("p", EVERY_P)
def test_no_algorithm_beats_the_lower_bound_and_auto_takes_the_fastest(p: int) -> None:
    for alpha, beta, gamma in NETWORKS:
        for nbytes in (0, 4, 400, 40_000, 4_000_000, 400_000_000):
            seconds = {name: cost.all_reduce(name, p, nbytes, alpha, beta, gamma) for name in ALL_REDUCE}
            bound = cost.lower_bound(p, nbytes, alpha, beta, gamma)
            assert min(seconds.values()) >= bound * (1 - 1e-12)
            best = cost.best_all_reduce(p, nbytes, cluster.Network(alpha, beta, gamma))
            assert seconds[best] == min(seconds.values()) == cost.all_reduce("auto", p, nbytes, alpha, beta, gamma)


def test_rings_meet_the_lower_bound_where_bytes_are_all_that_counts() -> None:
    for name in ("ring", "rabenseifner", "hierarchical"):
        assert cost.all_reduce(name, 16, 1 << 20, 0.0, 1e-9) == pytest.approx(cost.lower_bound(16, 1 << 20, 0.0, 1e-9))


def test_the_best_number_of_segments_is_the_best_of_all() -> None:
    assert cost.best_segments(8, 8_000_000, 100e-6, 1e-9) == round(math.sqrt(6 * 8_000_000 * 1e-9 / 100e-6))
    for p, nbytes in ((3, 840 * 4), (8, 5040 * 4), (16, 5040 * 40)):
        best = cost.best_segments(p, nbytes, 2e-7, 1e-9, 1e-10)
        evenly = [k for k in range(1, 200) if nbytes // 4 % k == 0]
        seconds = {k: cost.all_reduce("pipelined_chain", p, nbytes, 2e-7, 1e-9, 1e-10, segments=k) for k in evenly}
        assert (p + best - 2) * (4e-7 + 2.1e-9 * nbytes / best) <= min(seconds.values()) * (1 + 1e-12)
    assert cost.best_segments(2, 1000, 1e-6, 1e-9) == 1


def test_nonsense_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"algorithm must be 'auto', .* got 'star'"):
        cost.all_reduce("star", 4, 100, 1e-6, 1e-9)
    with pytest.raises(ValueError, match=r"algorithm must be .* got 'star'"):
        cost.traffic("star", 4, 100)
    for nonsense in ({"p": 0, "nbytes": 4}, {"p": 2, "nbytes": -1}, {"p": 2, "nbytes": 4, "itemsize": 0}):
        with pytest.raises(ValueError, match="p >= 1 ranks, nbytes >= 0 and itemsize >= 1"):
            cost.all_reduce("ring", alpha=1e-6, beta=1e-9, **nonsense)
    with pytest.raises(ValueError, match="per_group must divide the number of ranks, 6; got 4"):
        cost.all_reduce("hierarchical", 6, 100, 1e-6, 1e-9, per_group=4)
    with pytest.raises(ValueError, match="segments must be at least 1, got 0"):
        cost.all_reduce("pipelined_chain", 6, 100, 1e-6, 1e-9, segments=0)
