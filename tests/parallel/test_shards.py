"""Jobs that say which samples a node reads."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from minidl import data, nn, parallel
from minidl import functional as F
from tests.parallel.jobs import small_job


@dataclass(frozen=True)
class Reading(parallel.Strategy):
    """Records the labels and the samples that each node sees; learns nothing."""

    kind: str = "local_batches"

    def run(self, session):
        for batch in getattr(session, self.kind)():
            for label, x in zip(batch.y, batch.x, strict=True):
                session.record("labels", (session.epoch, int(label)))
                session.record("samples", (session.epoch, float(x[0])))


def read(kind: str, shards: str, nodes: int = 3) -> dict:
    return parallel.train(small_job(shards=shards, batch_size=15), Reading(kind), nodes, on="simulation").recorded


@pytest.mark.parametrize("kind", ["local_batches", "shard_batches"])
def test_shards_by_label_give_each_of_three_nodes_one_of_three_classes(kind):
    labels = read(kind, "by_label")["labels"]
    assert [{label for _, label in node} for node in labels] == [{0}, {1}, {2}]
    assert [len(node) for node in labels] == [60, 60, 60]  # 3 epochs of 20 samples


@pytest.mark.parametrize(
    ("kind", "shards"), [("local_batches", "fixed"), ("shard_batches", "fixed"), ("shard_batches", "shuffled")]
)
def test_fixed_shards_stay_and_shuffled_ones_are_dealt_anew_in_every_epoch(kind, shards):
    for node in read(kind, shards)["samples"]:
        first, second = ({x for epoch, x in node if epoch == number} for number in (0, 1))
        assert (first == second) == (shards == "fixed")
        assert len(first) == 20


def test_what_does_not_fit_is_said_in_a_sentence():
    with pytest.raises(ValueError, match="shards must be 'shuffled', 'fixed' or 'by_label', got 'sorted'"):
        small_job(shards="sorted")
    x = np.zeros((8, 5))
    splits = data.Splits(data.Dataset(x, x), data.Dataset(x, x))
    job = small_job(data=splits, model=partial(nn.Linear, 5, 5), loss=F.mse_loss, shards="by_label")
    with pytest.raises(ValueError, match=r"needs one label a sample, but the targets have shape \(8, 5\)"):
        parallel.train(job, parallel.Synchronous(), nodes=2)
