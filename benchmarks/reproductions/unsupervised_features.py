"""Unsupervised features: units that prefer one letter, learned by a split autoencoder that sees no label.

Le et al. (ICML 2012) trained a sparse autoencoder of a billion weights on 10 million frames of videos: three times
filters without shared weights, L2 pooling and local contrast normalization. Each replica was split over 169 machines;
Downpour trained the replicas. The best unit sorted 81.7 % of images into faces and others, where guessing gives 64.8 %.
The best of 100,000 linear filters sorted 74.0 %, the best unit of the first layer 71.0 %, of random weights 67.0 %,
and of a network without contrast normalization 78.5 %.

Here: two such stages, 116,000 weights, on 4,000 letters of 28 x 28 pixels. Each image has mean 0 and variance 1, and
is white on black or black on white at random. Four replicas, each a pipeline of two ranks, share two servers on a
simulated cluster: Downpour with Adagrad, four epochs of minibatches of 20. The costs of both stages are minimized
together, as in the paper, with its weight of 0.1 for sparseness.

How selective a unit is: the share of images that a threshold on its response sorts rightly, the best of 20 between its
smallest and its largest. A letter weighs 35.2 % and all others together 64.8 %, as faces did. The images are of five
fonts that training lacks. The paper judges the best unit and threshold by the images that it chose them on, which
favours detectors of many units. Here they are chosen on one half of the images, and judged on the other. A detector is
compared by the mean over the 26 letters.

What must show, with each of three seeds: the second stage is more than 2 points above the best pixel, the best of all
4,000 training images as linear filters, random weights, and training without contrast normalization. The most selective
unit's best stimulus of mean 0 and variance 1 excites it more than any image does.

What does not show. The second stage is hardly better than the first. The best stimulus does not look like a letter,
even without fine patterns. If all letters are white on black, linear filters are better than the second stage.
"""

from __future__ import annotations

from functools import cache, partial
from string import ascii_uppercase
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import Tensor, cluster, data, grad, nn, no_grad, optim, parallel
from minidl import functional as F
from minidl.plots import style
from minidl.random import Purpose, stream

TITLE = "Unsupervised features: a unit that prefers one letter, and saw no label (Le et al. 2012)"

SEEDS = (0, 1, 2)
LETTERS, SPARSENESS, FACES = 4000, 0.1, 0.352
PUBLISHED = {"second stage": 81.7, "random weights": 67.0, "first stage": 71.0, "linear filters": 74.0,
             "no contrast normalization": 78.5}  # fmt: skip
"""Images sorted into faces and others, in %."""
Array = NDArray[Any]


# The network


class Stage(nn.Module):
    """Filters of their own at each place, L2 pooling, local contrast normalization; and the cost of its autoencoder.

    Called with images (n, channels, side, side), or with those and costs (n, 1), it returns its maps and the costs.
    The cost of an image x with windows w is the sum over them of |decode encode w - w|^2, plus 0.1 times
    the sum of the pooled values, divided by the number of windows.

    Parameters
        channels, side   of the images
        kernel, stride   of the windows, in pixels
        maps             filters of each window
        pool             side of the squares whose responses are pooled
        normalizes       whether the contrast is normalized
    """

    def __init__(
        self, channels: int, side: int, kernel: int, stride: int, maps: int, pool: int, normalizes: bool = True
    ) -> None:
        self.kernel, self.stride, self.pool, self.normalizes = kernel, stride, pool, normalizes
        self.side = (side - kernel) // stride + 1
        numbers = channels * kernel * kernel
        self.encode = nn.Parameter(np.empty((self.side**2, maps, numbers), np.float32))
        self.decode = nn.Parameter(np.empty((self.side**2, numbers, maps), np.float32))
        for weights in (self.encode, self.decode):
            nn.init.normal_(weights, std=numbers**-0.5)

    def forward(self, given: Any) -> tuple[Tensor, Tensor]:
        x, costs = given if isinstance(given, tuple) else (given, 0.0)
        windows = F.unfold(x, self.kernel, stride=self.stride).transpose(2, 1, 0)
        windows = windows.contiguous()  # (places, numbers, n): products of strided arrays are slow
        filtered = self.encode @ windows
        error = self.decode @ filtered - windows
        maps = filtered.transpose(2, 1, 0).reshape(x.shape[0], -1, self.side, self.side)
        pooled = (self.pool**2 * F.avg_pool2d(maps * maps, self.pool, 1) + 1e-6).sqrt()
        cost = (error * error).sum(axis=(0, 1)) + SPARSENESS * pooled.sum(axis=(1, 2, 3))
        return normalized(pooled) if self.normalizes else pooled, costs + cost.reshape(-1, 1) / self.side**2


def normalized(maps: Tensor) -> Tensor:
    """Local contrast normalization: less the mean of 5 x 5 places of all maps, divided by the deviation there."""

    def around(values: Tensor) -> Tensor:
        return F.avg_pool2d(values.mean(axis=1, keepdims=True), 5, 1, 2, count_include_pad=False)

    centred = maps - around(maps)
    return centred / F.maximum((around(centred * centred) + 1e-6).sqrt(), 0.05)


class Autoencoder(nn.Module):
    """Two stages; its output is their cost for each image, (n, 1)."""

    def __init__(self, normalizes: bool = True) -> None:
        self.first = Stage(1, 28, 7, 3, maps=8, pool=2, normalizes=normalizes)
        self.second = Stage(8, 7, 4, 1, maps=16, pool=2, normalizes=normalizes)

    def stages(self) -> list[nn.Stage]:
        return [nn.Stage(self.first, self.first), nn.Stage(lambda x: self.second(x)[1], self.second)]

    def forward(self, x: Any) -> Tensor:
        return nn.run_stages(self.stages(), x)

    def units(self, x: Any) -> Tensor:
        """The responses of the second stage, a row for each image."""
        maps, _ = self.second(self.first(x))
        return maps.reshape(maps.shape[0], -1)


# Images and training


class Images(NamedTuple):
    """Training images without labels; test images with labels."""

    train: Array
    test: Array
    labels: Array


@cache
def images(seed: int, is_of_one_colour: bool = False) -> Images:
    """Letters of mean 0 and variance 1, each white on black or black on white at random, or all white on black."""
    splits = data.glyphs(LETTERS, 2600)
    signs = stream(Purpose.BENCHMARK, seed, "white on black")

    def prepared(x: Array) -> Array:
        x = x + splits.mean
        x = (x - x.mean(axis=(1, 2, 3), keepdims=True)) / x.std(axis=(1, 2, 3), keepdims=True)
        return x if is_of_one_colour else x * signs.choice(np.float32([-1, 1]), (len(x), 1, 1, 1))

    return Images(prepared(splits.train.x), prepared(splits.test.x), splits.test.y)


def job(seed: int, normalizes: bool = True, **settings: Any) -> parallel.Job:
    train, test, _ = images(seed)
    unlabeled = data.Splits(*(data.Dataset(x, np.zeros(len(x), np.float32)) for x in (train, test[:200])))
    optimizer = partial(optim.Adagrad, lr=0.01)
    given = {"batch_size": 20, "epochs": 4, **settings}
    model = partial(Autoencoder, normalizes)
    return parallel.Job(model, unlabeled, optimizer, loss=lambda costs, _: costs.mean(), seed=seed, **given)


def trained(of: parallel.Job, replicas: int = 4) -> Autoencoder:
    """The model after Downpour, each replica a pipeline of two ranks."""
    strategy = parallel.Downpour(servers=2, replica=parallel.Hybrid(pp=2, micro_batches=1, cuts=(1,)))
    model = parallel.train(of, strategy, 2 * replicas, cluster.Simulation(trace="ledger")).model()
    assert isinstance(model, Autoencoder)
    return model


# How selective units are


def sorted_rightly(responses: Array, is_letter: Array, thresholds: Array) -> Array:
    """The share of images that a threshold sorts rightly, for each unit; the letter weighs 35.2 %."""
    above = responses > thresholds
    return FACES * above[is_letter].mean(axis=0) + (1 - FACES) * (~above[~is_letter]).mean(axis=0)


class Best(NamedTuple):
    """A letter's most selective unit."""

    unit: int
    accuracy: float


def most_selective(responses: Array, labels: Array) -> list[Best]:
    """For each letter the unit that the even images choose, with its accuracy on the odd ones."""
    chosen, judged = responses[::2], responses[1::2]
    low, high = chosen.min(axis=0), chosen.max(axis=0)
    thresholds = [low + (high - low) * step / 21 for step in range(1, 21)]
    best = []
    for letter in range(26):
        shares = np.array([sorted_rightly(chosen, labels[::2] == letter, each) for each in thresholds])
        step, unit = np.unravel_index(shares.argmax(), shares.shape)
        accuracy = sorted_rightly(judged[:, [unit]], labels[1::2] == letter, thresholds[step][unit])
        best.append(Best(int(unit), float(accuracy[0])))
    return best


@no_grad()
def responses(model: Autoencoder, x: Array) -> tuple[Array, Array]:
    """Those of the first stage, and of the second."""
    first = model.first(x)[0].numpy()
    return first.reshape(len(x), -1), model.units(x).numpy()


def best_stimulus(model: Autoencoder, unit: int, smoothings: int = 0, steps: int = 100, starts: int = 8) -> Array:
    """The image of mean 0 and variance 1 that excites the unit most, by gradient ascent from random images.

    smoothings: how often the image is averaged over 3 x 3 pixels, which leaves it no finer patterns
    """
    free = stream(Purpose.BENCHMARK, 0, "stimulus").normal(size=(starts, 1, 28, 28))
    for step in range(steps):
        x = Tensor(free.astype(np.float32), requires_grad=True)
        (slope,) = grad(model.units(smoothed(x, smoothings))[:, unit].sum(), [x])
        free += (1 - step / steps) * 0.3 * slope / slope.std(axis=(1, 2, 3), keepdims=True)
        free /= free.std(axis=(1, 2, 3), keepdims=True)
    found = smoothed(Tensor(free.astype(np.float32)), smoothings).numpy()
    return found[model.units(found).numpy()[:, unit].argmax()]


def smoothed(x: Tensor, times: int) -> Tensor:
    for _ in range(times):
        x = F.avg_pool2d(x, 3, 1, 1)
    x = x - x.mean(axis=(1, 2, 3), keepdims=True)
    return x / (x * x).mean(axis=(1, 2, 3), keepdims=True).sqrt()


# What is shown


def compared(seed: int, model: Autoencoder) -> dict[str, tuple[float, float]]:
    """For each detector the mean over letters, and the most selective unit's accuracy."""
    given, plain = images(seed), images(seed, is_of_one_colour=True)
    flat, white = given.test.reshape(len(given.test), -1), plain.test.reshape(len(plain.test), -1)
    detectors = {
        "second stage": responses(model, given.test)[1],
        "first stage": responses(model, given.test)[0],
        "no contrast normalization": responses(trained(job(seed, normalizes=False)), given.test)[1],
        "random weights": responses(job(seed).build_model(), given.test)[1],
        "linear filters": flat @ given.train.reshape(LETTERS, -1).T,
        "pixels": flat,
        "second stage, one colour": responses(model, plain.test)[1],
        "linear filters, one colour": white @ plain.train.reshape(LETTERS, -1).T,
    }
    accuracies = {name: [best.accuracy for best in most_selective(of, given.labels)] for name, of in detectors.items()}
    return {name: (float(np.mean(each)), max(each)) for name, each in accuracies.items()}


def experiment(reproduction: Reproduction) -> None:
    models = [trained(job(seed)) for seed in SEEDS]
    of_seeds = [compared(*each) for each in zip(SEEDS, models, strict=True)]
    rows = []
    for name in of_seeds[0]:
        means, bests = ([100 * each[name][what] for each in of_seeds] for what in (0, 1))
        rows.append([name, PUBLISHED.get(name, ""), np.mean(means), np.ptp(means) / 2, np.mean(bests)])
    head = ["detector", "faces, published", "mean over letters", "+-", "its best letter"]
    reproduction.table(head, rows, f"sorted rightly, in %; {len(SEEDS)} seeds; guessing gives 64.8 %; simulated")
    for name in ("random weights", "linear filters", "pixels", "no contrast normalization"):
        gaps = [100 * (each["second stage"][0] - each[name][0]) for each in of_seeds]
        reproduction.accept(min(gaps) > 2, f"second stage above {name}: by {min(gaps):.1f} to {max(gaps):.1f} points")
    unit = favourite(models[0], images(SEEDS[0]))
    reproduction.accept(
        min(unit.excited) > unit.responses.max(),
        f"a unit for {unit.letter} responds with {unit.responses.max():.1f} to the image that excites it most, with "
        f"{unit.excited[0]:.1f} to its best stimulus, and with {unit.excited[1]:.1f} to its best smooth one",
    )
    reproduction.picture(picture(unit))


class Favourite(NamedTuple):
    """The most selective unit: what it prefers, and how it responds to the images that it is judged by."""

    letter: str
    accuracy: float
    images: Array
    labels: Array
    responses: Array
    stimuli: list[Array]
    excited: list[float]


def favourite(model: Autoencoder, given: Images) -> Favourite:
    of_test = responses(model, given.test)[1]
    letter, best = max(enumerate(most_selective(of_test, given.labels)), key=lambda each: each[1].accuracy)
    stimuli = [best_stimulus(model, best.unit, smoothings) for smoothings in (0, 4)]
    excited = model.units(np.stack(stimuli)).numpy()[:, best.unit].tolist()
    judged = given.test[1::2], given.labels[1::2], of_test[1::2, best.unit]
    return Favourite(ascii_uppercase[letter], best.accuracy, *judged, stimuli, excited)


@style.applied()
def picture(unit: Favourite) -> Figure:
    """The unit's best stimuli, and the 18 images that excite it most."""
    figure, axes = style.new_figure(9.0, 2.4, columns=10, heights=(1, 1))
    order = unit.responses.argsort()[::-1][:18]
    tiles = [*unit.stimuli, *unit.images[order]]
    names = ["stimulus", "smooth", *(ascii_uppercase[label] for label in unit.labels[order])]
    heights = [*unit.excited, *unit.responses[order]]
    for tile, name, height, place in zip(tiles, names, heights, axes, strict=True):
        place.imshow(tile[0], cmap="gray")
        place.set_title(f"{name} {height:.1f}", fontsize=8)
        place.axis("off")
    style.label_source(figure, "simulated", "letter and response; images of fonts that training lacks")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
