"""A pipeline without a flush trains as SGD with delayed gradients does in one process."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from minidl import cluster, nn
from minidl.parallel import Job, Pipeline, pipeline, train
from minidl.parallel.pipeline.weight_versions import WeightVersions
from minidl.parallel.run.minibatches import common_minibatches
from minidl.tape import allow_overwritten
from tests.parallel.jobs import small_job
from tests.tiers import exhaustively

STAGES = 4
CUTS = (1, 2, 3)


def deep_model() -> nn.Module:
    return nn.models.MLP(5, 8, 7, 6, 8, 3).double()


def delayed_sgd(job: Job, delays: list[int], stashing: bool) -> dict[str, Any]:
    """The state after a run: stage s computes minibatch m of an epoch with its weights after m - delays[s] updates.

    Without stashing, backward reads the weights after m updates.
    """
    model, train_set = job.build_model(), job.build_data().train
    optimizer = job.build_optimizer(model)
    schedule = job.build_schedule(optimizer, len(train_set))
    chunks = Pipeline(stages=STAGES, cuts=CUTS).chunks(model)
    stage_of = {p: s for s, units in enumerate(chunks) for unit in units for p in unit.parameters()}

    def load(versions: list[dict[str, Any]], version_of: Any) -> None:
        for name, parameter in model.named_parameters():
            parameter.copy_(versions[version_of(stage_of[parameter])][name])

    for epoch in range(job.epochs):
        versions = [model.state_dict()]
        loader = common_minibatches(job, train_set, 1, 0, epoch)
        loader.set_epoch(epoch)
        for m, batch in enumerate(loader):
            load(versions, lambda stage, m=m: max(0, m - delays[stage]))
            loss = job.loss(model(batch.x), batch.y)
            if not stashing:
                load(versions, lambda stage, m=m: m)
            model.zero_grad()
            with allow_overwritten():
                loss.backward()
            load(versions, lambda stage, m=m: m)
            optimizer.step()
            schedule.step()
            versions.append(model.state_dict())
    return model.state_dict()


@pytest.mark.parametrize(
    ("weight_versions", "delays", "versions"),
    [
        ("stashing", [3, 2, 1, 0], [4, 3, 2, 1]),
        ("vertical_sync", [3, 3, 3, 3], [4, 4, 4, 4]),
        ("latest", [3, 2, 1, 0], [1, 1, 1, 1]),
    ],
)
def test_stages_train_as_delayed_sgd(weight_versions: str, delays: list[int], versions: list[int]):
    job = small_job(model=deep_model, batch_size=7)  # 9 minibatches an epoch, the last one of 4 samples
    strategy = Pipeline(STAGES, schedule="pipedream", cuts=CUTS, weight_versions=weight_versions)
    report = train(job, strategy, STAGES, on="simulation")
    expected = delayed_sgd(job, delays, stashing=weight_versions != "latest")
    for name, array in report.model().state_dict().items():
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=1e-10)
    assert report.recorded["weight versions"] == [[count] * job.epochs for count in versions]
    sizes = [sum(p.data.nbytes for unit in units for p in unit.parameters()) for units in strategy.chunks(deep_model())]
    assert [epochs[0] for epochs in report.recorded["bytes of weight versions"]] == list(np.multiply(versions, sizes))


@pytest.mark.parametrize("weight_versions", ["stashing", "vertical_sync", "latest"])
def test_no_array_of_weights_outlives_its_version(weight_versions: str, monkeypatch: pytest.MonkeyPatch):
    """After each update the arrays of weights that are still in memory are those that the stage says it keeps."""
    arrays: dict[WeightVersions, dict[int, weakref.ref[np.ndarray]]] = {}
    update, most = WeightVersions.update, dict[WeightVersions, int]()

    @contextmanager
    def watched(self: WeightVersions) -> Iterator[None]:
        of_stage = arrays.setdefault(self, {})
        of_stage.update({id(array): weakref.ref(array) for array in self.weights(self.latest).values()})
        with update(self):
            yield
        of_stage.update({id(array): weakref.ref(array) for array in self.weights(self.latest).values()})
        live = sum(array.nbytes for each in of_stage.values() if (array := each()) is not None)
        assert live == self.nbytes
        most[self] = max(most.get(self, 0), live)

    monkeypatch.setattr(WeightVersions, "update", watched)
    job = small_job(model=deep_model, batch_size=7, epochs=1)
    strategy = Pipeline(STAGES, schedule="pipedream", cuts=CUTS, weight_versions=weight_versions)
    report = train(job, strategy, STAGES, on="simulation")
    assert sorted(most.values()) == sorted(count for (count,) in report.recorded["bytes of weight versions"])


def test_a_pipeline_of_one_stage_trains_as_serial():
    job = small_job(model=deep_model)
    report = train(job, Pipeline(stages=1, schedule="pipedream"), 1, on="simulation")
    assert report.digests == train(job, on="simulation").digests


@pytest.mark.timeout(300)
@pytest.mark.parametrize("on", ["simulation", *exhaustively("processes")])
def test_replicas_of_an_asynchronous_pipeline_share_each_minibatch(on: str):
    job = small_job(model=deep_model, batch_size=7)
    one, two = (
        train(job, Pipeline(stages=2, schedule="pipedream", replicas=replicas), 2 * replicas, on=on)
        for replicas in (1, 2)
    )
    for name, array in two.model().state_dict().items():
        np.testing.assert_allclose(array, one.model().state_dict()[name], rtol=0, atol=1e-10)


def test_the_executed_order_is_the_schedules():
    job = small_job(model=deep_model, epochs=2)  # 4 minibatches an epoch
    engine = cluster.Simulation(node=cluster.Node(1e9, 1e9))
    report = train(job, Pipeline(stages=3, schedule="pipedream"), 3, on=engine)
    timeline = pipeline.executed(report.trace, report.strategy.made_schedule(), minibatch=1)
    made = pipeline.PipeDream(stages=3, micro_batches=4)
    for stage in range(3):
        expected = [action for action in made.actions(stage) if action.kind != "U"]
        assert [bar.action for bar in timeline.of(stage)] == expected


def test_vertical_sync_without_stashing_is_refused():
    with pytest.raises(ValueError, match="needs stashing=True"):
        WeightVersions(nn.Linear(1, 1), stashing=False, at_entry=[0])


def frozen_first_layer() -> nn.Module:
    model = deep_model()
    model.layers[0].requires_grad_(False)
    return model


def test_a_stage_without_gradients_lets_go_of_the_versions_of_minibatches_that_are_done():
    job = small_job(model=frozen_first_layer, batch_size=7, epochs=1)
    report = train(job, Pipeline(stages=STAGES, schedule="pipedream"), STAGES, on="simulation")
    assert report.recorded["weight versions"] == [[4], [3], [2], [1]]
