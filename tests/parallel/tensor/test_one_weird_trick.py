"""Convolutions divided by samples and linear layers by features train to the numbers of one node."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from minidl import nn, parallel
from minidl.data import Dataset, Splits
from minidl.parallel import Hybrid, Job
from minidl.parallel.tensor import ColumnLinear
from tests.parallel.jobs import small_job, two_groups
from tests.parallel.tensor.test_hybrid import assert_trains_as_one_node, decay, hybrid
from tests.parallel.test_split_models import JOBS
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)


class NarrowAlexNet(nn.models.AlexNet):
    """AlexNet's kinds of layers in its order, for its images; few and narrow."""

    def __init__(self) -> None:
        self.features = nn.Sequential(
            nn.Conv2d(3, 6, 11, stride=16, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2),  # 14 x 14 -> 6 x 6
            nn.Conv2d(6, 12, 3),
            nn.ReLU(),
            nn.Conv2d(12, 6, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),  # 4 x 4 -> 2 x 2
        )
        self.classifier = nn.Sequential(
            nn.Dropout(0.3),
            nn.Linear(24, 18),
            nn.ReLU(),
            nn.Dropout(0.4),
            nn.Linear(18, 12),
            nn.ReLU(),
            nn.Linear(12, 6),
        )
        self.double()


def photographs() -> Splits:
    rng = np.random.default_rng(6)
    train, test = (Dataset(rng.normal(size=(n, 3, 224, 224)), rng.integers(6, size=n)) for n in (19, 5))
    return Splits(train, test)


ALEXNET = Job(NarrowAlexNet, photographs, two_groups, decay, batch_size=8, epochs=1, seed=5, clip_norm=0.7)


@pytest.mark.parametrize(("dp", "pp", "tp"), [(1, 1, 3), (2, 1, 2), *exhaustively((1, 2, 3), (1, 1, 6))])
def test_one_weird_trick_trains_as_one_node_where_samples_do_not_divide_and_a_node_has_none(dp, pp, tp):
    """Micro-batches of 4, 2 and 1 samples, with three kinds of dropout."""
    assert_trains_as_one_node(ALEXNET, hybrid(dp, pp, tp, sample_slices=True))


def test_alexnet_is_divided_in_pairs_too_with_shares_of_the_mask():
    assert_trains_as_one_node(ALEXNET, hybrid(1, 1, 3))


@pytest.mark.parametrize("on", ["simulation", *exhaustively("processes")])
def test_lenet_does_the_trick(on):
    assert_trains_as_one_node(JOBS["LeNet"], hybrid(1, 1, 2, sample_slices=True), on=on)


@pytest.mark.parametrize("kind", [nn.models.AlexNet, nn.models.VGG16])
def test_the_layouts_of_alexnet_and_vgg_name_layers_that_they_have(kind):
    for sample_slices in (False, True):
        Hybrid(tp=2, sample_slices=sample_slices).check(replace(ALEXNET, model=kind), 2)


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        (
            partial(nn.models.MLP, 5, 6, 4),
            {},
            "for convolutions before linear layers, .* not for MLP: leave out sample_slices",
        ),
        (
            partial(nn.models.ResNet, 8),
            {},
            "before linear layers, of AlexNet, VGG16 or LeNet, not for ResNet: leave out",
        ),
        (
            nn.models.LeNet,
            {"layout": {"fc1": ColumnLinear}},
            "sample_slices=True chooses the layout: leave out layout, or lea",
        ),
        (
            nn.models.LeNet,
            {"sequence": True},
            "slices are of positions or of samples: leave out sequence, or leave out sample_slices",
        ),
        (nn.models.LeNet, {"spatial": "2x1"}, "spatial=2x1, or the samples: leave out spatial, or leave out sample_sl"),
        (nn.models.LeNet, {"sample_slices": 1}, "Hybrid: sample_slices must be True or False, got 1"),
        (partial(nn.models.LeNet, num_classes=7), {}, r"fc3 cannot be divided by 2 ranks: .* make it 8 wide, or"),
    ],
)
def test_a_model_or_a_setting_that_does_not_go_with_slices_of_the_samples_is_refused_before_the_run(
    model, settings, message
):
    with pytest.raises((ValueError, TypeError), match=message):
        parallel.train(small_job(model=model), Hybrid(tp=2, **({"sample_slices": True} | settings)), 2, on="simulation")
