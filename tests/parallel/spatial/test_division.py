"""Models whose first stages work on tiles train to the numbers of one node; what cannot be divided is refused."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, kernels, nn, optim, parallel
from minidl import functional as F
from minidl.data import Dataset, Splits
from minidl.parallel import Hybrid, Job, Serial
from minidl.parallel.spatial import division_of, halo_words
from minidl.parallel.tensor import ColumnConv2d, RowConv2d
from tests.parallel.jobs import assert_same_run, two_groups
from tests.parallel.tensor.test_hybrid import assert_trains_as_one_node
from tests.parallel.test_split_models import decay, gpt, momentum, texts
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)


def images(shape: tuple[int, ...], training: int = 11) -> Splits:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(training + 4, *shape)), np.arange(training + 4) % 5
    return Splits(Dataset(x[:training], y[:training]), Dataset(x[training:], y[training:]))


def lenet() -> nn.Module:
    return nn.models.LeNet(28, 5).double()


def resnet() -> nn.Module:
    return nn.models.ResNet(8, 5).double()


def small(kind: type[Any], size: int, features: int) -> nn.Module:
    """AlexNet or VGG16 for small images, whose maps give `features` numbers; few numbers in the linear layers."""
    model = kind(5)
    model.image_size = (size, size)
    model.classifier = nn.Sequential(nn.Dropout(0.5), nn.Linear(features, 7), nn.ReLU(), nn.Linear(7, 5))
    return model.double()


def mixed() -> nn.Module:
    """Everything that works on tiles, with dilation, strides, groups and paddings, then a head with dropout."""
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, padding="same", dilation=2, bias=False),
        nn.BatchNorm2d(6),
        nn.SiLU(),
        nn.Dropout(0.2),
        nn.Conv2d(6, 4, (5, 3), stride=2, padding=(2, 1), groups=2),
        nn.Dropout2d(0.3),
        nn.AvgPool2d(3, 1, 1, count_include_pad=False),
        nn.Conv2d(4, 5, 2),
        nn.AdaptiveMaxPool2d((9, 10)),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(450, 5),
    ).double()


def job(model: Any, shape: tuple[int, ...], **settings: Any) -> Job:
    given = {"batch_size": 4, "epochs": 2, "seed": 5, "clip_norm": 0.7, "optimizer": momentum, "schedule": decay}
    return Job(model, **({"data": partial(images, shape)} | given | settings))


PAIR = {"0": ColumnConv2d, "2": RowConv2d}


def filters() -> nn.Module:
    """A convolution by filters, dropout of its channels, a convolution by channels."""
    convolutions = nn.Conv2d(2, 4, 3, padding=1), nn.Dropout(0.2), nn.Conv2d(4, 3, 3, padding=1)
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(243, 5)).double()


JOBS = {
    "filters": job(filters, (2, 9, 9)),
    "LeNet": job(lenet, (1, 28, 28)),
    "ResNet": job(resnet, (3, 19, 21), optimizer=two_groups),
    "AlexNet": job(partial(small, nn.models.AlexNet, 95, 256 * 4), (3, 95, 95), epochs=1),
    "VGG16": job(partial(small, nn.models.VGG16, 32, 512), (3, 32, 32), epochs=1),
    "mixed": job(mixed, (2, 25, 27)),
}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("LeNet", {"spatial": "2x4"}),
        ("mixed", {"spatial": 3, "dp": 2}),
        ("LeNet", {"spatial": (1, 2), "pp": 2, "micro_batches": 2}),
        ("ResNet", {"spatial": 2, "tp": 2}),
        ("filters", {"spatial": 2, "tp": 2, "layout": PAIR}),
        *exhaustively(
            ("LeNet", {"spatial": (1, 8)}),
            ("ResNet", {"spatial": 3}),
            ("LeNet", {"spatial": 2, "dp": 2, "tp": 2}),
            ("ResNet", {"spatial": (2, 2), "pp": 2, "micro_batches": 2, "schedule": "zb-h1"}),
            ("ResNet", {"spatial": (1, 8)}),
            ("ResNet", {"spatial": (2, 4), "recompute": True}),
            ("VGG16", {"spatial": (2, 2)}),
            ("AlexNet", {"spatial": 3, "dp": 2}),
            ("AlexNet", {"spatial": (1, 2), "pp": 2, "micro_batches": 2}),
            ("mixed", {"spatial": (2, 4)}),
            ("mixed", {"spatial": (1, 8)}),
            ("LeNet", {"spatial": 3, "dp": 2, "pp": 2, "micro_batches": 2}),
        ),
    ],
    ids=str,
)
def test_a_divided_model_trains_as_one_node(name, settings):
    assert_trains_as_one_node(JOBS[name], Hybrid(**({"dp": 1} | settings)))


@pytest.mark.parametrize("on", ["processes", *exhaustively("mpi")])
def test_on_processes_and_over_mpi_too(on):
    if on == "mpi":
        pytest.importorskip("mpi4py", exc_type=ImportError)
    assert_trains_as_one_node(JOBS["mixed"], Hybrid(dp=1, spatial=(2, 2)), on)


def test_in_16_bits_a_divided_model_ends_near_one_node():
    """How far apart: 0.004 in a test loss, of which a step of bfloat16 is 0.008."""
    sixteen = replace(JOBS["ResNet"], model=lambda: resnet().float(), precision="bfloat16")
    whole, divided = (
        parallel.train(sixteen, Hybrid(dp=1, spatial=grid), nodes, "simulation") for grid, nodes in ((1, 1), ("2x2", 4))
    )
    for row, expected in zip(divided.history, whole.history, strict=True):
        for column in ("loss", "test_loss"):
            assert row[column] == pytest.approx(expected[column], abs=0.008)


class PerPixel(nn.Module):
    """Convolutions only: its output is an image, of which the loss needs all."""

    def __init__(self) -> None:
        self.first, self.second = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 2, 3, padding=1)

    def forward(self, x: Any) -> Tensor:
        return nn.run_stages(self.stages(), x)

    def stages(self) -> list[nn.Stage]:
        return [
            nn.Stage(lambda x: (F.tanh(self.first(x)), F.tanh(self.first(x))), self.first),
            nn.Stage(lambda both: self.second(both[0] * both[1]), self.second),
        ]


def squares(outputs: Tensor, images: Any) -> Tensor:
    return ((outputs - images) ** 2).mean()


def test_a_model_whose_output_is_an_image_gathers_it_for_the_loss():
    sets = (Dataset(each.x, each.x[:, ::-1].copy()) for each in images((2, 13, 9)))
    whole = job(lambda: PerPixel().double(), (2, 13, 9), data=Splits(*sets), loss=squares, clip_norm=None)
    assert_trains_as_one_node(whole, Hybrid(dp=1, spatial=(3, 2)))


def test_a_checkpoint_continues_on_other_grids_and_on_one_node(tmp_path):
    long = job(mixed, (2, 25, 27), epochs=2)
    short = replace(long, epochs=1)
    straight = parallel.train(long, Serial(), on="simulation")
    begin = parallel.train(short, Hybrid(dp=1, spatial=(2, 2)), 4, "simulation", folder=tmp_path / "tiles")
    assert list(begin.checkpoint.model) == list(straight.checkpoint.model)
    for strategy, nodes in ((Serial(), 1), (Hybrid(dp=1, spatial=3), 3)):
        resumed = parallel.train(long, strategy, nodes, "simulation", resume=tmp_path / "tiles" / "checkpoint.npz")
        assert_same_run(resumed, straight)


@pytest.mark.parametrize(
    ("model", "shape", "grid", "stages"),
    [
        (nn.models.AlexNet, (3, 224, 224), (1, 8), 12),  # the last pooling leaves 6 columns
        (nn.models.AlexNet, (3, 224, 224), (2, 1), 13),
        (nn.models.VGG16, (3, 224, 224), (2, 4), 31),
        (partial(nn.models.ResNet, 50), (3, 224, 224), (1, 8), 14),
        (partial(nn.models.ResNet, 50), (3, 224, 224), (2, 4), 17),
    ],
    ids=str,
)
def test_the_stages_that_work_on_tiles_are_those_whose_maps_are_large_enough(model, shape, grid, stages):
    with nn.building(lambda model: ()):
        made = model()
    assert division_of(made, shape, grid).stages == stages


def test_a_run_sends_the_halos_of_the_formula_along_the_spatial_axis():
    """Forward, each layer's input; backward, its gradient but for the samples'; evaluation goes forward only."""

    def convolutions() -> nn.Module:
        head = nn.Flatten(), nn.Linear(2 * 12 * 7, 5)
        return nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.Conv2d(3, 2, 5, padding=2), *head).double()

    whole = job(convolutions, (2, 12, 7), epochs=2)
    trace = parallel.train(whole, Hybrid(dp=1, spatial=4), 4, "simulation").trace
    samples, evaluated = 2 * 11, 2 * 4
    first = halo_words(3, width=7, channels=2, samples=samples + evaluated)
    second = halo_words(5, width=7, channels=3, samples=2 * samples + evaluated)
    for rank, share in enumerate((0.5, 1, 1, 0.5)):  # an outer slab has one neighbour
        assert trace.ledger("spatial")[rank]["isend"].nbytes == 8 * share * (first + second)


# ---- data ----


class Looks(Hybrid):
    """Records what a rank reads, and the most memory that its training takes."""

    def run(self, session: parallel.Session) -> None:
        session.record("shape", session.train[0][0].shape)
        tracemalloc.start()
        super().run(session)
        session.record("peak", tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()


class Made(Dataset):
    """Samples that are made when they are read."""

    def __init__(self, count: int, shape: tuple[int, ...]) -> None:
        super().__init__(np.zeros((count, 1)), np.arange(count) % 5)
        self.shape = shape

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        return np.random.default_rng(int(index)).normal(size=self.shape), self.y[index]


@pytest.mark.parametrize("kind", ["file", "made"])
def test_a_rank_reads_its_tile_of_a_sample(kind, tmp_path):
    shape = (2, 25, 27)
    made = Made(9, shape)
    if kind == "file":
        np.save(tmp_path / "x.npy", np.stack([made[i][0] for i in range(9)]))
        made = Dataset(np.load(tmp_path / "x.npy", mmap_mode="r"), made.y)
    whole = job(mixed, shape, data=Splits(made, made))
    report = assert_trains_as_one_node(whole, Looks(dp=1, spatial=(2, 2)))
    shapes = [shapes[0] for shapes in report.recorded["shape"]]
    assert shapes == [(2, 13, 14), (2, 13, 13), (2, 12, 14), (2, 12, 13)]


def weather() -> nn.Module:
    """Reads a field of 512 x 512 points, such as pressures, and says which of two regimes it shows."""
    layers: list[nn.Module] = []
    for channels, filters in ((1, 8), (8, 8), (8, 8)):
        layers += [nn.Conv2d(channels, filters, 3, padding=1), nn.BatchNorm2d(filters), nn.Tanh(), nn.AvgPool2d(4)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * 8 * 8, 2))


def field(count: int) -> Dataset:
    """Waves of two lengths in noise, on 512 x 512 points."""
    rng, at = np.random.default_rng(8), np.linspace(0, 2 * np.pi, 512)
    y = np.arange(count) % 2
    waves = [np.sin((3 + 2 * label) * at + rng.uniform(0, 6))[:, None] * np.cos(at)[None] for label in y]
    noise = rng.normal(size=(count, 1, 512, 512))
    return Dataset((np.stack(waves)[:, None] + 0.3 * noise).astype(np.float32), y)


def test_a_sample_that_fits_no_node_trains_on_eight():
    """A step with one field of 512 x 512 takes 60 MB on one node, and 9 MB on each of eight."""
    budget = 12e6
    fields = Job(weather, Splits(field(2), field(1)), partial(optim.SGD, lr=0.05), batch_size=1, epochs=1)

    def peaks(strategy: Hybrid, nodes: int) -> list[int]:
        with kernels.use("numpy"):
            report = parallel.train(fields, strategy, nodes, "processes")
        return [peak for (peak,) in report.recorded["peak"]]

    (alone,) = peaks(Looks(dp=1), 1)
    together = peaks(Looks(dp=1, spatial=(2, 4)), 8)
    assert alone > 4 * budget
    assert max(together) < budget


# ---- refusals ----


class OwnCode(nn.Module):
    """What it computes from the maps of its convolution is no layer's."""

    def __init__(self, own: Callable[[Tensor], Any]) -> None:
        self.conv, self.own = nn.Conv2d(2, 4, 3, padding=1), own

    def stages(self) -> list[nn.Stage]:
        return [nn.Stage(self.forward, self.conv)]

    def forward(self, x: Any) -> Tensor:
        return self.own(self.conv(x))


MORE_THAN_A_PIXEL: list[Callable[[Tensor], Any]] = [
    lambda maps: maps * F.sigmoid(maps.mean(axis=(2, 3), keepdims=True)),
    lambda maps: F.max_pool2d(maps, 2),
    lambda maps: F.softmax(maps, 3),
    lambda maps: F.dropout(maps, 0.1),
    lambda maps: F.max_pool2d(maps, 3, 1, 1),
    lambda maps: maps.transpose(0, 1, 3, 2),
    lambda maps: maps / maps.shape[3],
    lambda maps: maps + np.random.default_rng(1).normal(size=maps.shape),
    lambda maps: maps * np.linspace(1, 2, 12),
]


@pytest.mark.parametrize("number", range(len(MORE_THAN_A_PIXEL)))
def test_own_code_that_does_more_than_treat_every_pixel_is_refused(number):
    with pytest.raises(ValueError, match=r"own code of Stage\(Conv2d\) (computes something else|makes a tensor of)"):
        division_of(OwnCode(MORE_THAN_A_PIXEL[number]), (2, 12, 12), (2, 2))


def test_own_code_that_treats_every_pixel_works_on_tiles():
    pixels = OwnCode(lambda maps: F.tanh(maps) / (maps**2).sum(axis=1, keepdims=True))
    assert division_of(pixels, (2, 9, 7), (2, 2)).stages == 1


def with_own_code() -> nn.Module:
    """Its own code needs whole rows of the maps, behind a convolution of tiles."""
    own = OwnCode(lambda maps: F.softmax(maps, 3))
    return nn.Sequential(nn.Conv2d(2, 2, 3), own, nn.Flatten(), nn.Linear(4 * 7 * 9, 5)).double()


def test_own_code_behind_the_tiles_may_do_anything():
    assert_trains_as_one_node(job(with_own_code, (2, 9, 11)), Hybrid(dp=1, spatial=(2, 2)))


class Shrinking(nn.Module):
    """One convolution reads maps of two sizes."""

    def __init__(self) -> None:
        self.conv = nn.Conv2d(2, 2, 3)

    def stages(self) -> list[nn.Stage]:
        return [nn.Stage(lambda x: self.conv(self.conv(x)), self.conv)]


class Twice(nn.Module):
    """One convolution works on tiles, and again behind a linear layer."""

    def __init__(self) -> None:
        self.conv, self.linear = nn.Conv2d(2, 2, 3, padding=1), nn.Linear(12, 12)

    def stages(self) -> list[nn.Stage]:
        return [nn.Stage(self.conv, self.conv), nn.Stage(self.linear, self.linear), nn.Stage(self.conv, self.conv)]


@pytest.mark.parametrize(
    ("model", "shape", "grid", "sentence"),
    [
        (partial(nn.models.MLP, 12, 5, 3), (12,), (2, 1), r"^MLP cannot be divided by pixels: .* shape \(12,\)"),
        (partial(nn.models.MLP, 12, 5, 3), (1, 3, 4), (2, 1), r"^MLP .*Linear, reads a tensor of shape \(1, 12\)"),
        (partial(nn.models.LeNet, 8), (1, 8, 8), (9, 1), r"^LeNet .*conv1: an image of height 8 .* use at most 8"),
        (partial(nn.Sequential, nn.Conv2d(2, 3, 9, padding=4)), (2, 12, 12), (1, 6), r"wider than a slab: along"),
        (partial(nn.Sequential, nn.GroupNorm(1, 2)), (2, 12, 12), (1, 6), r"0, a GroupNorm, is none of the layers"),
        (
            partial(nn.Sequential, nn.BatchNorm2d(2, track_running_stats=False)),
            (2, 9, 9),
            (2, 2),
            r"0, a BatchNorm2d, has no running statistics",
        ),
        (partial(nn.Sequential, nn.MaxPool2d(2, return_indices=True)), (2, 8, 8), (2, 2), r"0, a MaxPool2d, returns"),
        (Shrinking, (2, 12, 12), (2, 2), r"conv, a Conv2d, reads images of \(12, 12\) and of \(10, 10\)"),
        (Twice, (2, 12, 12), (2, 2), r"Twice cannot be divided by pixels: conv is used on tiles and again"),
    ],
    ids=str,
)
def test_what_cannot_be_divided_is_refused_by_name(model, shape, grid, sentence):
    with pytest.raises(ValueError, match=sentence):
        division_of(model(), shape, grid)


def test_a_plan_that_cannot_be_is_refused_before_the_run():
    with pytest.raises(ValueError, match=r"^GPT cannot be divided by pixels: its samples have shape \(6,\)"):
        parallel.train(Job(gpt, texts, momentum), Hybrid(spatial=2), 2, "simulation")
    with pytest.raises(ValueError, match=r"dp=1, pp=1, tp=1, spatial=2x2 need 4 nodes, got 3"):
        parallel.train(JOBS["LeNet"], Hybrid(dp=1, spatial="2x2"), 3)
    for wrong in ("2x", "x", "a", "2x2x2", (1, 2, 3), ""):
        with pytest.raises(ValueError, match="Hybrid: spatial is a number of slabs of rows, or rows x columns"):
            Hybrid(spatial=wrong)
    for wrong in (0, (2, 0), 2.5, None):
        with pytest.raises((TypeError, ValueError), match="Hybrid: spatial"):
            Hybrid(spatial=wrong)
