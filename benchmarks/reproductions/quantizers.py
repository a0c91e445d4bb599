"""Random rounding is right on average, and its error is what the papers' formulas say; partial sums cost more.

Alistarh et al., QSGD (arXiv:1610.02132), Lemma 3.1: rounding n numbers to s levels of their norm is unbiased, has a
squared error of at most min(n/s^2, sqrt(n)/s) |v|^2, and leaves at most s (s + sqrt n) numbers that are not zero, on
average. Wen et al., TernGrad (arXiv:1705.07878): the scale is the largest magnitude, so the error is |v|_1 |v|_inf -
|v|^2, and |v|_1/|v|_inf numbers are not zero. For s = 1 QSGD has the forms of TernGrad with |v|_2 for |v|_inf.

Here: 1,024 Gaussian numbers; the "pilot" was measured with other numbers of the same kind. The variance of a rounded
number is known, so the number of draws follows from it: a bias of 2 % is 10 standard errors of the mean. Then the
length of the levels in Huffman's code (less than a bit above the entropy) and in Elias' (without a bound: it leaves out
zeros, and a quantizer's own packing is used where a code does not pay). Then the sum over p nodes: each node's numbers
quantized and gathered, or every partial sum quantized again on its way round a ring. PowerSGD, which is linear, sums
matrices of its rank.

What must show: bounds hold; the exact forms within 5 %; neither the scale nor the offset biased by 5 standard errors (a
correct quantizer exceeds these once in 200,000 runs); words within a bit of the entropy; by gathering the
squared error grows as p, in the ring as p (p + 1)/2 (within 15 %: the shares are independent only on average, and
errors are themselves quantized again); and PowerSGD's sums equal the exact sums to 1e-9.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import cluster, random
from minidl.compress import QSGD, Compressor, Lossless, PowerSGD, QuantizedAllReduce, Quantizer, TernGrad, huffman
from minidl.kernels import Array
from minidl.plots.style import DASHES, SERIES, applied, label_source, new_figure

TITLE = "Quantizers: unbiased, within their bounds, and better gathered than added up (QSGD, TernGrad)"

N, COPIES, LEAST_DRAWS = 1024, 100, 300  # COPIES of the N numbers a message, each of them a draw
VISIBLE_BIAS, VISIBLE_AT, ALLOWED = 0.02, 10, 5  # a bias of 2 % is 10 standard errors; up to 5 pass
PILOT = {1: (24.9, 25.9), 4: (5.44, 103.0), 32: (0.169, 652.0)}  # squared error / |v|^2, numbers that are not zero
CODED: dict[str, Quantizer] = {
    "s=1, one norm": QSGD(1, None),
    "s=1, bucket 512": QSGD(1, 512),
    "s=7, bucket 512": QSGD(7, 512),
    "s=127, bucket 512": QSGD(127, 512),
    "TernGrad": TernGrad(),
}
NODES = (2, 4, 8, 16)
RING_LEVELS, RING_BUCKET, RING_CHUNK, RING_DRAWS = 32, 64, 512, 3


@dataclass(frozen=True)
class Moments:
    """Means over the draws: squared error / |v|^2, the number of nonzeros, and two measures of bias.

    scale    <decoded, v> / |v|^2 - 1: the bias if all decoded numbers are too large by the same factor
    offset   the sum of decoded - v, divided by |v|_1: the bias if a constant is added to all numbers
    """

    draws: int
    error: float
    nonzero: float
    scale: float
    scale_standard_error: float
    offset: float
    offset_standard_error: float

    @property
    def sigmas(self) -> float:
        """The larger of the two biases, in standard errors."""
        return max(abs(self.scale) / self.scale_standard_error, abs(self.offset) / self.offset_standard_error)


def moments(quantizer: Quantizer, v: Array, variance: Array, seed: int = 0) -> Moments:
    """Measure the quantizer on enough draws of v that `VISIBLE_BIAS` is `VISIBLE_AT` standard errors.

    `variance` is that of each decoded number, by formula. It gives the standard errors; measured ones would grow with
    some faults of the quantizer, and hide them.
    """
    random.manual_seed(seed)
    one_draw = float(np.sqrt(v**2 @ variance) / (v @ v))  # the standard deviation of `scale`
    messages = ceil(max((one_draw * VISIBLE_AT / VISIBLE_BIAS) ** 2, LEAST_DRAWS) / COPIES)
    draws, copies = messages * COPIES, np.tile(v, COPIES)
    total, squared_error, nonzero = np.zeros(v.size), 0.0, 0
    for _ in range(messages):
        decoded = quantizer.decode(quantizer.encode(copies)).reshape(COPIES, v.size)
        total += decoded.sum(axis=0)
        squared_error += float(((decoded - v) ** 2).sum())
        nonzero += int(np.count_nonzero(decoded))
    bias = total / draws - v
    return Moments(
        draws,
        error=squared_error / draws / float(v @ v),
        nonzero=nonzero / draws,
        scale=float(bias @ v / (v @ v)),
        scale_standard_error=one_draw / draws**0.5,
        offset=float(bias.sum() / np.abs(v).sum()),
        offset_standard_error=float(np.sqrt(variance.sum() / draws) / np.abs(v).sum()),
    )


def rounding_variance(v: Array, scale: float, s: int) -> Array:
    """Variance of |v| / scale rounded at random to s levels: f (1 - f) steps squared, f the fraction of a step."""
    f = np.abs(v) / scale * s % 1
    return f * (1 - f) * (scale / s) ** 2


def mean_nonzero(v: Array, scale: float, s: int) -> float:
    """The mean number of nonzeros when |v| / scale is rounded at random to s levels."""
    return float(np.minimum(np.abs(v) / scale * s, 1).sum())


def show_moments(reproduction: Reproduction, v: Array) -> None:
    rows, within, close = [], True, []
    norm, squared_norm, largest = float(np.linalg.norm(v)), float(v @ v), float(np.abs(v).max())
    measured: dict[str, Moments] = {}
    for s, (pilot_error, pilot_nonzero) in PILOT.items():
        name, variance = f"QSGD s={s}", rounding_variance(v, norm, s)
        one = measured[name] = moments(QSGD(s, N), v, variance)  # a bucket for each draw
        exact_error, exact_nonzero = float(variance.sum()) / squared_norm, mean_nonzero(v, norm, s)
        bound_error, bound_nonzero = min(N / s**2, N**0.5 / s), s * (s + N**0.5)
        within &= one.error <= bound_error and one.nonzero <= bound_nonzero
        close += [one.error / exact_error, one.nonzero / exact_nonzero]
        rows.append([f"{name}: error / |v|^2", one.error, exact_error, bound_error, pilot_error])
        rows.append([f"{name}: not zero", one.nonzero, exact_nonzero, bound_nonzero, pilot_nonzero])
    one = measured["TernGrad"] = moments(TernGrad(), v, rounding_variance(v, largest, 1))
    exact_error, exact_nonzero = np.abs(v).sum() * largest / squared_norm - 1, np.abs(v).sum() / largest
    close += [one.error / exact_error, one.nonzero / exact_nonzero]
    rows.append(["TernGrad: error / |v|^2", one.error, exact_error, "", ""])
    rows.append(["TernGrad: not zero", one.nonzero, exact_nonzero, "", 199.2])
    reproduction.table(["quantity", "measured", "exact", "bound", "pilot"], rows, f"{N} Gaussian numbers")
    reproduction.accept(within, "the squared errors and the numbers that are not zero are within QSGD's bounds")
    worst = max(abs(ratio - 1) for ratio in close)
    reproduction.accept(worst < 0.05, f"measured and exact moments differ by {worst:.1%} at most (5 % allowed)")
    show_biases(reproduction, measured)


def show_biases(reproduction: Reproduction, measured: dict[str, Moments]) -> None:
    columns = ["quantizer", "draws", "scale, %", "standard error", "offset, %", "standard error", "sigmas"]
    rows = [
        [
            name,
            one.draws,
            *(100 * each for each in (one.scale, one.scale_standard_error, one.offset, one.offset_standard_error)),
            one.sigmas,
        ]
        for name, one in measured.items()
    ]
    note = "bias of the mean of the draws, measured; standard errors by formula; sigmas: the larger bias in these"
    reproduction.table(columns, rows, note)
    worst = max(one.sigmas for one in measured.values())
    reproduction.accept(
        worst < ALLOWED,
        f"the means are right: {worst:.1f} standard errors off at most ({ALLOWED} allowed; "
        f"a bias of {VISIBLE_BIAS:.0%} would be {VISIBLE_AT})",
    )


def show_lossless(reproduction: Reproduction, v: Array) -> None:
    rows, holds = [], True
    for name, quantizer in CODED.items():
        random.manual_seed(1)
        _, symbols = quantizer.quantize(v)
        _, counts = np.unique(symbols, return_counts=True)
        frequencies = counts / counts.sum()
        entropy = float(-(frequencies * np.log2(frequencies)).sum())
        words = float((huffman.word_lengths(counts) * frequencies).sum())
        coded = []
        for code in ("huffman", "elias"):
            random.manual_seed(1)
            coded.append(8 * Lossless(quantizer, code).encode(v).nbytes / v.size)
        holds &= entropy <= words < entropy + 1
        rows.append([name, 8 * quantizer.encode(v).nbytes / v.size, entropy, words, *coded])
    columns = ["quantizer", "packed", "entropy", "Huffman's words", "Huffman in all", "Elias in all"]
    reproduction.table(columns, rows, f"bits a number, {v.size:,} Gaussian numbers; packed and in all: with the scales")
    reproduction.accept(holds, "Huffman's words take less than a bit more than the entropy, for all five")


def all_reduce(comm: cluster.Communicator, compressor: Compressor, arrays: list[Array]) -> list[Array]:
    random.manual_seed((comm.rank, 3))
    return [compressor.begin_all_reduce(arrays[comm.rank], comm)() for _ in range(RING_DRAWS)]


def error_of_sum(compressor: Compressor, arrays: list[Array]) -> float:
    """The mean squared error of a number of the sum, after a first draw (with which PowerSGD warms up)."""
    sums = cluster.launch(all_reduce, (compressor, arrays), nodes=len(arrays), on="simulation").results[0]
    return float(np.mean((np.array(sums[1:]) - sum(arrays)) ** 2))


def show_sums(reproduction: Reproduction) -> Figure:
    rng = np.random.default_rng(2)
    left, right = rng.normal(size=(30, 2)), rng.normal(size=(2, 20))
    gathered, ring, linear = [], [], []
    for p in NODES:
        shares = list(rng.normal(size=(p, RING_CHUNK * p)))
        gathered.append(error_of_sum(QSGD(RING_LEVELS, RING_BUCKET), shares))
        ring.append(error_of_sum(QuantizedAllReduce(QSGD(RING_LEVELS, RING_BUCKET)), shares))
        linear.append(error_of_sum(PowerSGD(2), [left @ np.diag(rng.normal(size=2)) @ right for _ in range(p)]))
    of_one = gathered[0] / NODES[0]
    rows = [
        [p, g, p * of_one, r, p * (p + 1) / 2 * of_one, low]
        for p, g, r, low in zip(NODES, gathered, ring, linear, strict=True)
    ]
    columns = ["nodes", "gathered", "p e", "ring", "p (p + 1)/2 e", "PowerSGD"]
    reproduction.table(columns, rows, "mean squared error of a number of the sum; e: of one quantized share")
    off = max(max(abs(row[1] / row[2] - 1), abs(row[3] / row[4] - 1)) for row in rows)
    reproduction.accept(off < 0.15, f"gathered as p, in the ring as p (p + 1)/2: {off:.0%} off at most (15 % allowed)")
    reproduction.accept(max(linear) < 1e-18, f"of PowerSGD at most {max(linear):.1g}: it adds up what it sends")
    return picture(gathered, ring, of_one)


def picture(gathered: list[float], ring: list[float], of_one: float) -> Figure:
    with applied():
        figure, (axes,) = new_figure(5.5, 3.6)
        p = np.array(NODES)
        for errors, formula, name, i in (
            (ring, p * (p + 1) / 2 * of_one, "quantized at every hop of a ring", 1),
            (gathered, p * of_one, "gathered, then added up", 0),
        ):
            axes.loglog(p, errors, "o", color=SERIES[i], label=name)
            axes.loglog(p, formula, color=SERIES[i], linestyle=DASHES[i])
        axes.set_xticks(NODES, [str(n) for n in NODES])
        axes.minorticks_off()
        axes.set(xlabel="nodes p", ylabel="mean squared error of the sum, a number")
        axes.set_title("Partial sums cost more than shares")
        axes.annotate("p (p + 1) / 2", (p[2], ring[2]), (-58, 4), textcoords="offset points", color=SERIES[1])
        axes.annotate("p", (p[2], gathered[2]), (4, -14), textcoords="offset points", color=SERIES[0])
        axes.legend()
        label_source(figure, ["measured", "formula"], f"QSGD of {RING_LEVELS} levels, buckets of {RING_BUCKET}")
        return figure


def experiment(reproduction: Reproduction) -> None:
    rng = np.random.default_rng(0)
    show_moments(reproduction, rng.normal(size=N))
    show_lossless(reproduction, rng.normal(size=512 * 100))
    reproduction.picture(show_sums(reproduction))


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
