"""The parts of the autoencoder compute what their formulas say; a split replica trains it as one rank does."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.reproductions import unsupervised_features as features
from benchmarks.reproductions.unsupervised_features import Autoencoder, Stage
from minidl import Tensor, gradcheck, manual_seed, parallel


def small_stage(normalizes: bool) -> Stage:
    manual_seed(5)
    return Stage(2, side=8, kernel=3, stride=2, maps=3, normalizes=normalizes).double()


@pytest.fixture
def noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random images in the place of letters."""
    rng = np.random.default_rng(11)
    train, test = (rng.normal(size=(n, 1, 28, 28)).astype(np.float32) for n in (43, 7))
    monkeypatch.setattr(features, "images", lambda seed: (train, test, np.zeros(7, np.int64)))


def test_a_stage_filters_pools_and_costs_what_loops_over_its_places_compute() -> None:
    stage, x = small_stage(normalizes=False), np.random.default_rng(1).normal(size=(4, 2, 8, 8))
    maps, costs = stage((Tensor(x), Tensor(np.full((4, 1), 0.37))))
    filtered, error = np.zeros((4, 3, 3, 3)), np.zeros(4)
    for row in range(3):
        for column in range(3):
            place = 3 * row + column
            windows = x[:, :, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3].reshape(4, 18)
            filtered[:, :, row, column] = windows @ stage.encode.numpy()[place].T
            rebuilt = filtered[:, :, row, column] @ stage.decode.numpy()[place].T
            error += ((rebuilt - windows) ** 2).sum(axis=1)
    squares = filtered**2
    pooled = np.sqrt(sum(squares[:, :, i : i + 2, j : j + 2] for i in (0, 1) for j in (0, 1)) + 1e-6)
    np.testing.assert_allclose(maps.numpy(), pooled, rtol=1e-12)
    np.testing.assert_allclose(costs.numpy()[:, 0], 0.37 + (error + 0.1 * pooled.sum(axis=(1, 2, 3))) / 9, rtol=1e-12)


def test_contrast_is_normalized_by_mean_and_deviation_of_all_maps_around_a_place() -> None:
    maps = np.random.default_rng(2).normal(size=(2, 3, 6, 7))
    maps[1] *= 1e-3  # fainter than the least divisor

    def around(values: np.ndarray, row: int, column: int) -> np.ndarray:
        return values[:, :, max(0, row - 2) : row + 3, max(0, column - 2) : column + 3].mean(axis=(1, 2, 3))

    def everywhere(values: np.ndarray) -> np.ndarray:
        return np.stack([[around(values, row, column) for column in range(7)] for row in range(6)]).transpose(2, 0, 1)

    centred = maps - everywhere(maps)[:, None]
    divisor = np.maximum(np.sqrt(everywhere(centred**2) + 1e-6), 0.05)
    np.testing.assert_allclose(features.normalized(Tensor(maps)).numpy(), centred / divisor[:, None], rtol=1e-10)
    assert (divisor[0] > 0.05).all()
    assert (divisor[1] == 0.05).all()


def test_the_gradients_of_both_outputs_of_a_stage_are_those_of_differences() -> None:
    stage, x = small_stage(normalizes=True), np.random.default_rng(3).normal(size=(2, 2, 8, 8))
    for output in (0, 1):
        assert gradcheck(lambda x, output=output: stage(x)[output], [x])


@pytest.mark.usefixtures("noise")
def test_a_replica_of_two_ranks_trains_the_weights_of_one_rank() -> None:
    job = features.job(seed=4, epochs=2)
    split, whole = features.trained(job, replicas=1), parallel.train(job, parallel.Serial(), 1, "simulation").model()
    for name, weights in whole.state_dict().items():
        np.testing.assert_allclose(split.state_dict()[name], weights, rtol=1e-4, atol=1e-6, err_msg=name)
    start = job.build_model()
    moved = [np.abs(new.data - old.data).max() for new, old in zip(whole.parameters(), start.parameters(), strict=True)]
    assert min(moved) > 0.01


def test_a_unit_and_its_threshold_are_chosen_on_one_half_and_judged_on_the_other() -> None:
    rng, labels = np.random.default_rng(6), np.arange(2600) // 100
    responses = rng.normal(size=(2600, 40))
    responses[:, 13] += 9.0 * (labels == 7)
    responses[:, 21][(labels == 3) & (np.arange(2600) % 2 == 0)] += 9.0  # on the half that chooses alone
    accuracies, units = zip(*features.most_selective(responses, labels), strict=True)
    assert (units[7], units[3]) == (13, 21)
    assert accuracies[7] > 0.98
    assert accuracies[3] == pytest.approx(0.648, abs=0.02)
    assert np.mean(accuracies) < 0.68, "noise sorts no better than guessing"


@pytest.mark.usefixtures("noise")
def test_the_best_stimulus_has_mean_0_and_variance_1_and_excites_more_than_images() -> None:
    manual_seed(8)
    model, unit = Autoencoder(), 77
    of_images = model.units(features.images(0)[0]).numpy()[:, unit]
    found = features.best_stimulus(model, unit, steps=30, starts=3)
    assert found.mean() == pytest.approx(0, abs=1e-5)
    assert found.std() == pytest.approx(1, abs=1e-4)
    assert model.units(found[None].astype(np.float32)).numpy()[0, unit] > of_images.max()
