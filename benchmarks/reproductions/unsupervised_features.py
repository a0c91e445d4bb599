"""Unsupervised features: a sparse autoencoder learns units that prefer one letter, without labels.

Le et al. (ICML 2012) trained an autoencoder of a billion weights on 10 million frames of videos: three times filters
without shared weights, L2 pooling and local contrast normalization, each replica split over 169 machines. The best unit
sorted 81.7 % of images into faces and others, where guessing gives 64.8 %. The abstract has the weights and the images,
summaries of the paper have 81.7 %; 169, 64.8 % and the controls in PUBLISHED are quoted from memory.

Here: two such stages, 116,000 weights, trained together on 4,000 letters of 28 x 28 pixels, of mean 0 and variance 1,
white on black or black on white at random. Downpour with Adagrad on a simulated cluster, four epochs of minibatches of
20: four replicas, each a pipeline of two ranks, share two servers. A unit is measured by the share of images that the
best of 20 thresholds on its response sorts rightly. A letter weighs 35.2 %, as faces did, and all others 64.8 %. The
images have five fonts that training lacks; unit and threshold are chosen on one half and judged on the other.

What must show, with each of three seeds: the second stage's mean over 26 letters is more than 2 points above that of
the best pixel, of training images as linear filters, of random weights, and of training without contrast normalization.
The most selective unit's best stimulus of mean 0 and variance 1 excites it more than any image does.

What does not show: the second stage is hardly better than the first; the best stimulus does not look like a letter; if
all letters are white on black, linear filters are better than the second stage, whose squares lose the sign.
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


class Stage(nn.Module):
    """A layer of local filters, L2 pooling and contrast normalization, with the cost of its autoencoder.

    It takes images, or images and the costs (n, 1) of earlier stages; it returns its maps, and the costs with its own:
    the mean over the windows w of |decode encode w - w|^2, and 0.1 times the pooled values per window.
    """

    def __init__(self, channels: int, side: int, kernel: int, stride: int, maps: int, normalizes: bool = True) -> None:
        self.kernel, self.stride, self.normalizes = kernel, stride, normalizes
        self.side = (side - kernel) // stride + 1
        numbers = channels * kernel**2
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
        pooled = (4 * F.avg_pool2d(maps * maps, 2, 1) + 1e-6).sqrt()
        cost = (error * error).sum(axis=(0, 1)) + SPARSENESS * pooled.sum(axis=(1, 2, 3))
        return normalized(pooled) if self.normalizes else pooled, costs + cost.reshape(-1, 1) / self.side**2


def normalized(maps: Tensor) -> Tensor:
    """Local contrast normalization: subtract the mean of 5 x 5 places in all maps, divide by their deviation."""

    def around(values: Tensor) -> Tensor:
        return F.avg_pool2d(values.mean(axis=1, keepdims=True), 5, 1, 2, count_include_pad=False)

    centred = maps - around(maps)
    return centred / F.maximum((around(centred * centred) + 1e-6).sqrt(), 0.05)


class Autoencoder(nn.Module):
    """Two stages; the output is the cost of each image, (n, 1)."""

    def __init__(self, normalizes: bool = True) -> None:
        self.first = Stage(1, 28, 7, 3, maps=8, normalizes=normalizes)
        self.second = Stage(8, 7, 4, 1, maps=16, normalizes=normalizes)

    def stages(self) -> list[nn.Stage]:
        return [nn.Stage(self.first, self.first), nn.Stage(lambda x: self.second(x)[1], self.second)]

    def forward(self, x: Any) -> Tensor:
        return nn.run_stages(self.stages(), x)

    def units(self, x: Any) -> Tensor:
        """The responses of the second stage: a row for each image."""
        maps, _ = self.second(self.first(x))
        return maps.reshape(maps.shape[0], -1)


@cache
def images(seed: int, is_of_one_colour: bool = False) -> tuple[Array, Array, Array]:
    """Training images, test images, and the labels of the test images. One colour: all are white on black."""
    splits = data.glyphs(LETTERS, 2600)
    signs = stream(Purpose.BENCHMARK, seed, "white on black")

    def prepared(x: Array) -> Array:
        x = x + splits.mean
        x = (x - x.mean(axis=(1, 2, 3), keepdims=True)) / x.std(axis=(1, 2, 3), keepdims=True)
        return x if is_of_one_colour else x * signs.choice(np.array([-1, 1], np.float32), (len(x), 1, 1, 1))

    return prepared(splits.train.x), prepared(splits.test.x), splits.test.y


def job(seed: int, normalizes: bool = True, epochs: int = 4) -> parallel.Job:
    """The training of an autoencoder on images without labels."""
    train, test, _ = images(seed)
    datasets = [data.Dataset(x, np.zeros(len(x), np.float32)) for x in (train, test[:200])]
    return parallel.Job(partial(Autoencoder, normalizes), data.Splits(datasets[0], datasets[1]),
                        partial(optim.Adagrad, lr=0.01), loss=lambda costs, _: costs.mean(), batch_size=20,
                        epochs=epochs, seed=seed)  # fmt: skip


def trained(of: parallel.Job, replicas: int = 4) -> Autoencoder:
    """The model, trained by Downpour; each replica is a pipeline of two ranks."""
    strategy = parallel.Downpour(servers=2, replica=parallel.Hybrid(pp=2, micro_batches=1, cuts=(1,)))
    model = parallel.train(of, strategy, 2 * replicas, cluster.Simulation(trace="ledger")).model()
    assert isinstance(model, Autoencoder)
    return model


def most_selective(responses: Array, labels: Array) -> list[tuple[float, int]]:
    """The accuracy and the number of the most selective unit for each letter.

    The unit is chosen on the even images, and its accuracy is measured on the odd ones.
    """

    def sorted_rightly(half: slice, letter: int, units: Any, thresholds: Array) -> Array:
        above, is_letter = responses[half, units] > thresholds, labels[half] == letter
        return FACES * above[is_letter].mean(axis=0) + (1 - FACES) * (~above[~is_letter]).mean(axis=0)

    even, odd = slice(0, None, 2), slice(1, None, 2)
    low, high = responses[even].min(axis=0), responses[even].max(axis=0)
    thresholds = [low + (high - low) * step / 21 for step in range(1, 21)]
    best = []
    for letter in range(26):
        shares = np.array([sorted_rightly(even, letter, slice(None), each) for each in thresholds])
        step, unit = np.unravel_index(shares.argmax(), shares.shape)
        best.append((float(sorted_rightly(odd, letter, unit, thresholds[step][unit])), int(unit)))
    return best


@no_grad()
def responses(model: Autoencoder, x: Array) -> tuple[Array, Array]:
    """The responses of the first and of the second stage: a row for each image."""
    return flat(model.first(x)[0].numpy()), model.units(x).numpy()


def flat(x: Array) -> Array:
    return x.reshape(len(x), -1)


def best_stimulus(model: Autoencoder, unit: int, steps: int = 100, starts: int = 8) -> Array:
    """The image of mean 0 and variance 1 that excites the unit most, found by gradient ascent from random images."""
    found = stream(Purpose.BENCHMARK, 0, "stimulus").normal(size=(starts, 1, 28, 28))
    for step in range(steps):
        x = Tensor(found.astype(np.float32), requires_grad=True)
        slope = np.asarray(grad(model.units(x)[:, unit].sum(), [x])[0])
        found += (1 - step / steps) * 0.3 * slope / slope.std(axis=(1, 2, 3), keepdims=True)
        found -= found.mean(axis=(1, 2, 3), keepdims=True)
        found /= found.std(axis=(1, 2, 3), keepdims=True)
    return found[model.units(found.astype(np.float32)).numpy()[:, unit].argmax()]


def experiment(reproduction: Reproduction) -> None:
    """Compare the trained units with the controls, and picture the most selective unit."""
    accuracies: dict[str, list[list[float]]] = {}  # of each detector: by seed and letter, in %
    models = [trained(job(seed)) for seed in SEEDS]
    for seed, model in zip(SEEDS, models, strict=True):
        train, test, labels = images(seed)
        white_train, white_test, _ = images(seed, is_of_one_colour=True)
        untrained = job(seed).build_model()
        assert isinstance(untrained, Autoencoder)
        first, second = responses(model, test)
        detectors = {
            "second stage": second,
            "first stage": first,
            "no contrast normalization": responses(trained(job(seed, normalizes=False)), test)[1],
            "random weights": responses(untrained, test)[1],
            "linear filters": flat(test) @ flat(train).T,
            "pixels": flat(test),
            "linear filters, one colour": flat(white_test) @ flat(white_train).T,
        }
        for name, of in detectors.items():
            accuracies.setdefault(name, []).append([100 * best[0] for best in most_selective(of, labels)])
    means = {name: np.mean(each, axis=1) for name, each in accuracies.items()}
    rows = [[name, PUBLISHED.get(name, ""), of.mean(), np.ptp(of) / 2, np.max(accuracies[name], axis=1).mean()]
            for name, of in means.items()]  # fmt: skip
    head = ["detector", "faces, published", "mean over letters", "+-", "its best letter"]
    reproduction.table(head, rows, f"sorted rightly, in %; {len(SEEDS)} seeds; guessing gives 64.8 %; simulated")
    for name in ("random weights", "linear filters", "pixels", "no contrast normalization"):
        gaps = means["second stage"] - means[name]
        sentence = f"second stage above {name}: by {gaps.min():.1f} to {gaps.max():.1f} points"
        reproduction.accept(gaps.min() > 2, sentence)
    unit = favourite(models[0], SEEDS[0])
    stimulus, image, *_ = unit.responses
    sentence = (
        f"the best stimulus excites a unit for {unit.letter} to {stimulus:.1f}, and no image to more than {image:.1f}"
    )
    reproduction.accept(stimulus > image, sentence)
    reproduction.picture(unit.picture)


class Favourite(NamedTuple):
    """The most selective unit, with its responses to its best stimulus and to its best images."""

    letter: str
    accuracy: float
    responses: list[float]
    picture: Figure


@style.applied()
def favourite(model: Autoencoder, seed: int) -> Favourite:
    """The unit that sorts its letter best of all units and letters, with a picture of what excites it."""
    _, test, labels = images(seed)
    _, of_test = responses(model, test)
    (accuracy, unit), letter = max(zip(most_selective(of_test, labels), ascii_uppercase, strict=True))
    order = 1 + 2 * of_test[1::2, unit].argsort()[::-1][:19]  # of the odd images, which judge
    tiles = np.stack([best_stimulus(model, unit), *test[order]]).astype(np.float32)
    names = ["stimulus", *(ascii_uppercase[label] for label in labels[order])]
    heights = responses(model, tiles)[1][:, unit].tolist()
    figure, axes = style.new_figure(9.0, 2.4, columns=10, heights=(1, 1))
    for place, tile, name, height in zip(axes, tiles, names, heights, strict=True):
        place.imshow(tile[0], cmap="gray")
        place.set_title(f"{name} {height:.1f}", fontsize=8)
        place.axis("off")
    style.label_source(figure, "simulated", "letter and response; images of fonts that training lacks")
    return Favourite(letter, accuracy, heights, figure)


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
