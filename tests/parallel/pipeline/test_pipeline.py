"""A model split by layers trains to the numbers of one node, by every schedule that flushes."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from minidl import amp, cluster, nn, optim, parallel
from minidl import functional as F
from minidl.parallel import Job, Pipeline, Serial, pipeline
from minidl.parallel.pipeline.stage_execution import StageExecution
from tests.parallel.jobs import assert_same_run, blobs, small_job, two_layers
from tests.parallel.pipeline.models import CASES, Cut
from tests.parallel.pipeline.test_independent_judge import Judge
from tests.parallel.test_split_models import JOBS
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

SYNCHRONOUS = [kind for kind in pipeline.SCHEDULES if kind != "pipedream"]


def truth_of(job: Job, strategy: Pipeline, dp: int = 1):
    return parallel.train(job, Serial(shards=dp, micro_batches=strategy.made_schedule().micro_batches), on="simulation")


def assert_trains_as_one_node(job: Job, strategy: Pipeline, dp: int = 1, on: object = "simulation", **tolerance: float):
    report = parallel.train(job, strategy, strategy.stages * dp, on=on)
    truth = truth_of(job, strategy, dp)
    assert_same_run(report, truth, **tolerance)
    assert len(set(report.digests)) == 1
    return report, truth


@pytest.mark.parametrize(
    ("kind", "job", "dp", "on"),
    [
        *((kind, "tied GPT", 2, "simulation") for kind in SYNCHRONOUS),
        ("zb-h1", "ResNet", 1, "processes"),
        *exhaustively(("zb-h1", "tied GPT", 2, "processes"), ("zb-h1", "ResNet", 2, "simulation")),
        *exhaustively(*((kind, "ResNet", 1, "processes") for kind in ("1f1b", "zb-v", "interleaved"))),
    ],
)
def test_every_schedule_trains_to_the_numbers_of_one_node(kind: str, job: str, dp: int, on: str):
    """A ResNet with batch norm, skips over cuts, frozen weights and clipping; a GPT with a tie and dropout."""
    epochs = 2 if (kind, on) == ("zb-h1", "simulation") else 1
    assert_trains_as_one_node(
        replace(JOBS[job], epochs=epochs), Pipeline(stages=2, micro_batches=4, schedule=kind), dp, on
    )


@pytest.mark.parametrize("kind", ["1f1b", "zb-v"])
def test_on_one_replica_the_bits_are_those_of_one_node(kind: str):
    job = replace(JOBS["LeNet"], epochs=1)
    report, truth = assert_trains_as_one_node(job, Pipeline(stages=2, micro_batches=4, schedule=kind))
    np.testing.assert_equal(report.checkpoint.model, truth.checkpoint.model)


def test_the_all_reduce_of_replicas_may_overlap_with_backward():
    strategy = Pipeline(stages=3, micro_batches=3, schedule="zb-h2", overlap=True, bucket_mb=0.0001)
    assert_trains_as_one_node(replace(JOBS["tied GPT"], epochs=1), strategy, dp=2, on=cluster.Simulation("10gbe"))


@pytest.mark.parametrize("kind", ["zb-v", "interleaved"])
def test_a_replica_without_samples_sums_its_chunks_in_the_order_of_the_others(kind: str):
    """The last minibatch of an epoch has one sample, so the second replica skips every backward of it."""
    job = small_job(model=mlp, data=partial(blobs, 33), epochs=2)
    strategy = Pipeline(stages=2, micro_batches=2, schedule=kind, overlap=True)
    assert_trains_as_one_node(job, strategy, dp=2, on=cluster.Simulation("10gbe"))


@pytest.mark.parametrize("kind", ["zb-v", *exhaustively("interleaved")])
def test_a_tie_may_lead_from_one_chunk_of_a_rank_to_another(kind: str):
    """In a V the first and the last chunk are on the first rank; interleaved they are on different ones."""
    job = replace(JOBS["tied GPT"], model=partial(deep_gpt, 0.2), epochs=1)
    assert_trains_as_one_node(job, Pipeline(stages=2, micro_batches=4, schedule=kind), dp=2)


def mlp() -> nn.Module:
    return nn.models.MLP(5, 8, 7, 6, 3).double()


def deep_gpt(dropout: float) -> nn.Module:
    return nn.models.GPT(vocab_size=11, block_size=6, n_layer=5, n_head=2, n_embd=8, dropout=dropout).double()


def test_a_last_minibatch_may_have_fewer_samples_than_micro_batches():
    """60 samples in minibatches of 19: the last one has 3, of which the second replica gets one."""
    job = small_job(batch_size=19, model=mlp, optimizer=partial(optim.Adam, lr=0.01))
    assert_trains_as_one_node(job, Pipeline(stages=2, micro_batches=4, schedule="zb-v"), dp=2)


class Around(nn.Module):
    """A model whose stages are those of the checkpointed model inside, which nobody calls."""

    def __init__(self) -> None:
        self.inner = nn.checkpointing(nn.models.MLP(5, 8, 7, 6, 3), segments=2)

    def stages(self) -> list[nn.Stage]:
        return self.inner.stages()

    def forward(self, x):
        return self.inner(x)


def test_a_model_that_is_checkpointed_as_a_whole_is_refused_with_advice():
    for make in (Around, lambda: nn.checkpointing(two_layers())):
        with pytest.raises(ValueError, match=r"nn.checkpointing would have no effect.*recompute=True"):
            parallel.train(small_job(model=make), Pipeline(2, 4), 2, on="simulation")


class InSixteenBits(nn.Module):
    """An MLP whose units compute in bfloat16."""

    def __init__(self) -> None:
        self.layers = nn.models.MLP(5, 8, 7, 3)

    def stages(self):
        def cast(unit):
            def function(x):
                with amp.autocast():
                    return unit(x)

            return nn.Stage(function, *unit.modules)

        return [cast(unit) for unit in self.layers.stages()]

    def forward(self, x):
        return nn.run_stages(self.stages(), x)


def drawn_schedule(rng: random.Random, stages: int, micro_batches: int, chunks_per_stage: int) -> pipeline.Listed:
    """Some valid schedule: the actions in an order in which one node could do them, each on the line of its stage."""
    places = [stage for stage in range(stages) for _ in range(chunks_per_stage)]
    rng.shuffle(places)
    judge = Judge([[] for _ in range(stages)], places, micro_batches, asynchronous=False)
    waiting = [("U", 0, chunk) for chunk in range(len(places))]
    for m, chunk in itertools.product(range(micro_batches), range(len(places))):
        waiting += [(kind, m, chunk) for kind in rng.choice(["FB", "FIW"])]
    done: set[tuple[str, int, int]] = set()
    while waiting:
        action = rng.choice([each for each in waiting if all(done & {*some} for some in judge.needs(*each))])
        waiting.remove(action)
        done.add(action)
        judge.lines[places[action[2]]].append(action)
    lines = [[pipeline.Action(*action) for action in line] for line in judge.lines]
    return pipeline.Listed(stages, micro_batches, chunks_per_stage, lines=lines, places=places)


@pytest.mark.parametrize("seed", [*range(5), *exhaustively(*range(5, 60))])
def test_every_valid_schedule_trains_to_the_numbers_of_one_node(seed: int):
    """In particular one whose forwards are in another order on the next stage."""
    rng = random.Random(seed)
    made = drawn_schedule(rng, 2, rng.randint(3, 6), 2)
    job = replace(CASES["skips over all cuts"], epochs=1)
    assert_trains_as_one_node(job, Pipeline(schedule=made, recompute=rng.random() < 0.5), dp=rng.randint(1, 2))


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "pipedream"])
def test_a_loss_that_trains_nothing_is_refused_as_on_one_node(schedule: str):
    def detached(output, labels):
        return F.cross_entropy(output.detach(), labels)

    strategy = Pipeline(2, None if schedule == "pipedream" else 2, schedule, recompute=schedule == "zb-h1")
    for job in (small_job(loss=detached), small_job(model=frozen)):
        for each, nodes in ((Serial(), 1), (strategy, 2)):
            with pytest.raises(cluster.RankFailed, match=r"backward\(\) on a tensor that does not require a gradient"):
                parallel.train(job, each, nodes, on="simulation")


def frozen() -> nn.Module:
    return two_layers().requires_grad_(False)


class OneNorm(Cut):
    """Two stages use one batch norm."""

    def __init__(self) -> None:
        self.first, self.second, self.norm = nn.Linear(5, 6), nn.Linear(6, 3), nn.BatchNorm1d(6)

    def stages(self) -> list[nn.Stage]:
        return [
            nn.Stage(lambda x: F.tanh(self.norm(self.first(x))), self.first, self.norm),
            nn.Stage(lambda h: self.second(self.norm(h)), self.second, self.norm),
            nn.Stage(F.tanh),
        ]


def test_a_batch_norm_of_two_chunks_is_refused():
    job = small_job(model=lambda: OneNorm().double(), epochs=1)
    with pytest.raises(ValueError, match="stages of two chunks use the BatchNorm1d norm, and each would count its own"):
        parallel.train(job, Pipeline(2, 2, cuts=[1]), 2, on="simulation")
    assert_trains_as_one_node(job, Pipeline(2, 2, cuts=[2]))


def test_activations_of_sixteen_bits_pass_between_stages():
    assert_trains_as_one_node(
        small_job(model=InSixteenBits, data=partial(blobs, dtype="float32"), epochs=1),
        Pipeline(3, 2, cuts=(1, 2)),
        tolerance=1e-6,
    )


# ---- a run of many parts ----


def test_a_run_resumes_to_the_same_bits_and_on_another_number_of_stages(tmp_path):
    job, strategy = replace(JOBS["ResNet"], epochs=2), Pipeline(stages=2, micro_batches=4, schedule="zb-h1")
    whole = parallel.train(job, strategy, 2, on="simulation")
    parallel.train(replace(job, epochs=1), strategy, 2, on="simulation", folder=tmp_path)
    resume = tmp_path / "checkpoint.npz"
    again = parallel.train(job, strategy, 2, on="simulation", resume=resume)
    assert again.digests == whole.digests
    other = Pipeline(stages=4, micro_batches=4, schedule="gpipe")
    assert_same_run(parallel.train(job, other, 4, on="simulation", resume=resume), whole, 1e-9)


def test_a_loss_that_is_no_number_ends_the_run():
    job = small_job(optimizer=partial(optim.SGD, lr=1e308))
    with pytest.raises(parallel.NonFiniteLoss), np.errstate(all="ignore"):
        parallel.train(job, Pipeline(stages=2, micro_batches=4), 2, on="simulation")


@pytest.mark.parametrize("kind", ["zb-v", "pipedream"])
def test_a_hundred_steps_keep_nothing(kind: str, monkeypatch):
    """After every epoch a stage has nothing of a micro-batch left, and has sent what others have received."""
    left = []

    def finish(self):
        finished(self)
        left.append([len(kept) for kept in vars(self).values() if isinstance(kept, (dict, list))])

    finished = StageExecution.finish
    monkeypatch.setattr(StageExecution, "finish", finish)
    job = small_job(epochs=25, model=partial(nn.models.MLP, 5, 8, 7, 6, 3), data=partial(blobs, dtype="float32"))
    strategy = Pipeline(stages=2, micro_batches=None if kind == "pipedream" else 4, schedule=kind)
    assert parallel.train(job, strategy, 2, on="simulation").history[-1]["steps"] == 100
    assert len(left) >= 50
    assert all(counts == left[0] or counts == left[1] for counts in left)  # those of the two ranks


@pytest.mark.parametrize(
    ("settings", "nodes", "message"),
    [
        ({"stages": 9}, 9, r"5 stages of the model cannot fill 9 chunks.*use at most 5 chunks"),
        ({"stages": 2, "micro_batches": 17}, 2, r"16 samples, cannot be cut into 17 micro-batches: use at most 16"),
        ({"stages": 3}, 4, r"1 replica of 3 stages needs 3 nodes, got 4"),
        ({"stages": 4, "replicas": 2}, 4, r"2 replicas of 4 stages need 8 nodes, got 4"),
        ({"stages": 2, "micro_batches": 3, "schedule": "interleaved"}, 2, r"3 micro-batches cannot be divided"),
        ({"stages": 2, "cuts": (0,)}, 2, r"cuts must be 1 rising number from 1 to 4"),
        ({"stages": 2, "micro_batches": 2, "schedule": "pipedream"}, 2, r"leave out micro_batches"),
        ({"stages": 2, "schedule": pipeline.GPipe(3, 4)}, 2, "the schedule has stages=3, not 2: give stages=3"),
        (
            {"stages": 1, "schedule": pipeline.Listed.read(["F0 B0 U0 F1 B1 U1"])},
            1,
            r"with an update for each micro-batch, can be drawn and simulated only: use schedule='pipedream'",
        ),
        ({"stages": 2, "schedule": pipeline.Listed.read(["F0 U0", "F0 B0 U0"])}, 2, r"stage 0: U0 .* needs B0"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_the_run(settings, nodes, message):
    with pytest.raises(ValueError, match=message):
        parallel.train(JOBS["LeNet"], Pipeline(**settings), nodes, on="simulation")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stages": 0}, "Pipeline: stages must be at least 1, got 0"),
        ({"schedule": "1fb1"}, "Pipeline: schedule must be .*did you mean '1f1b'"),
        ({"weight_versions": "latest"}, "weight_versions='latest' is for schedule='pipedream'"),
        ({"bucket_mb": 0}, "Pipeline: bucket_mb must be above 0, got 0"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Pipeline(**settings)
