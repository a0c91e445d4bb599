"""The reproductions that are fast enough show what they must, fresh; of some others the counts and formulas do."""

from __future__ import annotations

import importlib
import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
from rich.console import Console

from benchmarks.reproductions import (
    activation_checkpointing,
    pipeline_schedules,
    progressive_resizing,
    quantizers,
    tensor_parallelism,
    weight_stashing,
)
from benchmarks.reproductions.backup_workers import finishing, together
from benchmarks.reproductions.learning_per_second import steps_to_target
from benchmarks.reproductions.reproduction import RESULTS, Reproduction
from minidl import data, kernels, optim
from minidl.compress import QSGD
from minidl.kernels import Array
from minidl.nn import segments
from minidl.parallel import EagerSGD, pipeline
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

# names of files in benchmarks/reproductions/, each of a few seconds
FAST: list[str] = [
    "overlap",
    "sufficient_factors",
    "synchronous_equals_serial",
    "all_reduce_crossovers",
    "sign_and_error_feedback",
    "stability_of_stale_gradients",
    "growing_batches",
    "quantizers",
    "sparse_all_reduce",
    "learning_per_second",
    "communication_volumes",
    "distributed_convolution",
]

QUICK = ["quantizers"]

# the tables of other experiments that an experiment reads from its folder
READS: dict[str, list[str]] = {"learning_per_second": ["steps_to_target.csv"]}


@pytest.fixture(autouse=True)
def _with_the_kernels_of_numpy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MINIDL_KERNELS", "numpy")
    with kernels.use("numpy"):
        yield


def silent(folder: Path, name: str = "name", title: str = "") -> Reproduction:
    return Reproduction(name, title, folder, Console(file=io.StringIO()))


@pytest.mark.parametrize("name", [*QUICK, *exhaustively(*(name for name in FAST if name not in QUICK))])
def test_what_an_experiment_must_show_does_show(name: str, tmp_path: Path) -> None:
    module = importlib.import_module(f"benchmarks.reproductions.{name}")
    for table in READS.get(name, []):
        shutil.copy(RESULTS / table, tmp_path)
    reproduction = silent(tmp_path, name, module.TITLE)
    module.experiment(reproduction)
    assert reproduction.verdicts, "an experiment that must show nothing"
    assert [sentence for holds, sentence in reproduction.verdicts if not holds] == []
    assert (tmp_path / f"{name}.csv").exists()
    assert (tmp_path / f"{name}.png").exists()


def test_the_time_of_workers_is_by_harmonic_numbers_and_an_eager_majority_counts_late_gradients() -> None:
    for workers, published in ((8, 2.718), (9, 1.829), (10, 1.429)):
        assert together(8, workers) == pytest.approx(published, abs=5e-4)
    assert finishing(8, 8) == pytest.approx(together(8, 8))
    assert finishing(1, 2) == pytest.approx(1 / 2 + 1 / 2 * 1 / 2)  # half of the first gradients are outdated
    needed = EagerSGD("majority").needed(8)
    assert together(needed, 8) == pytest.approx(0.635, abs=5e-4)
    assert finishing(needed, 8) / together(needed, 8) > 1.6


def test_images_of_half_the_width_take_a_third_of_the_operations_and_the_rate_falls_in_the_last_phase(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rates: list[float] = []
    step = optim.SGD.step
    monkeypatch.setattr(optim.SGD, "step", lambda self: (rates.append(self.param_groups[0]["lr"]), step(self))[1])
    letters = data.glyphs(52, 26)
    (small, *_, all_of_it), errors = progressive_resizing.train([(14, 2), (28, 2)], letters, 3)
    (large,), _ = progressive_resizing.train([(28, 1)], letters, 3)
    assert small / large == pytest.approx(16 / 49, rel=0.01)  # pixels of the maps of all but the first convolution
    assert all_of_it == 2 * small + 2 * large
    assert len(errors) == 4
    assert np.array(rates[:8:2]) / progressive_resizing.RATE == pytest.approx([1, 1, 1, 0.5])  # two steps an epoch


class ScaledQSGD(QSGD):
    """Every decoded number is too large by 2 %."""

    def dequantize(self, scales: Array, symbols: Array, shape: tuple[int, ...]) -> Array:
        return 1.02 * super().dequantize(scales, symbols, shape)


def test_a_bias_of_2_percent_fails_the_verdict_on_quantizers(tmp_path: Path) -> None:
    v = np.random.default_rng(5).normal(size=300)
    for quantizer, holds in ((ScaledQSGD, False), (QSGD, True)):
        variance = quantizers.rounding_variance(v, float(np.linalg.norm(v)), 4)
        reproduction = silent(tmp_path)
        quantizers.show_biases(reproduction, {"one": quantizers.moments(quantizer(4, v.size), v, variance)})
        assert [verdict for verdict, _ in reproduction.verdicts] == [holds]


def test_the_cases_cover_every_schedule_and_equal_their_formulas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_schedules, "STAGES", (2, 4))
    monkeypatch.setattr(pipeline_schedules, "MICRO_BATCHES", (2, 8, 12))
    assert {schedule.name for schedule, _ in pipeline_schedules.cases()} == {*pipeline.SCHEDULES} - {"pipedream"}
    reproduction = silent(tmp_path)
    pipeline_schedules.exact(reproduction)
    pipeline_schedules.slots(reproduction)
    assert reproduction.is_accepted


def test_sleeping_stages_execute_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_schedules, "UNIT", 0.001)
    (timeline,) = pipeline_schedules.execute("zb-h1", 2, 4, minibatches=1)
    simulated = pipeline.simulate(pipeline.ZeroBubbleH1(2, 4))
    assert pipeline_schedules.order(timeline) == pipeline_schedules.order(simulated)
    assert {bar.action.kind for bar in timeline.bars} >= {"F", "I", "W"}


@pytest.mark.parametrize(("seeds", "epochs"), [(1, 4), *exhaustively((2, 6))])
def test_eight_stages_train_with_stashing_and_fail_without(seeds: int, epochs: int) -> None:
    stashing, latest = (
        [weight_stashing.error(rule, 0.15, seed, epochs=epochs) for seed in range(seeds)]
        for rule in ("stashing", "latest")
    )
    assert mean(latest) > mean(stashing) + 20


def test_the_activations_that_live_are_k_plus_n_over_k_and_fewer_in_unequal_segments() -> None:
    for n, k, kept in ((16, 4, 8), (16, 1, 17), (12, 6, 8)):
        assert activation_checkpointing.live_activations(n, k) == kept
    chain = [activation_checkpointing.UNIT] * 16
    best = segments.least_peak(chain)
    assert activation_checkpointing.live_activations(16, best) == segments.peak(chain, best) == 6


@pytest.mark.parametrize("name", ["MLP of 8 layers", *exhaustively("GPT, dropout 0.2, tied")])
def test_a_checkpointed_step_has_the_bits_of_the_plain_one_and_a_forward_pass_more(name: str) -> None:
    build, x = activation_checkpointing.MODELS[name]
    plain, forward, _ = activation_checkpointing.step(build, x, None)
    again, _, calls = activation_checkpointing.step(build, x, "sqrt")
    assert again[0] - plain[0] == forward
    assert set(calls) == {2}
    assert all(np.array_equal(a, b) for a, b in zip(plain[1:], again[1:], strict=True))


@pytest.mark.parametrize("part", ["calls", *exhaustively("words", "order")])
def test_calls_words_and_the_order_of_layers_hold_in_tensor_parallelism(tmp_path: Path, part: str) -> None:
    reproduction = silent(tmp_path)
    getattr(tensor_parallelism, part)(reproduction)
    assert reproduction.is_accepted


def test_the_steps_to_the_target_are_those_of_the_table_in_the_given_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="run steps_to_target with the same --folder first"):
        steps_to_target(tmp_path)
    table = "target loss,minibatch,steps\n0.2,8,123.0\n0.2,16,77.0\n0.1,16,99.0\n"
    (tmp_path / "steps_to_target.csv").write_text(table)
    assert steps_to_target(tmp_path) == {8: 123.0, 16: 77.0}
