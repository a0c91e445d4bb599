# %% [markdown]
# # 03b. Where do the seconds and the bytes go?
#
# *Read [03a](03a_operators.ipynb) first: convolution, its algorithms, attention. Reading time: about 26 minutes.
# Figures are* measured *on one core of the computer that ran this page, or come from a* formula.
#
# ## The question
#
# In 03a we counted multiplications. Do they tell how long an operation takes? Here are two operations on float32
# arrays, the *product* of two matrices of 500 rows and columns, and the *sum* of two arrays of 15.625 million numbers.
#
# A *flop* is one floating-point operation, such as an addition or a multiplication. Each of the 500² results of the
# product takes 500 multiplications and 500 additions: 250 million flops. The sum has a sixteenth of that, 15.625
# million.

# %%
from course.interaction import bar, explore, guess, warm_up

warm_up()

# %%
guess_product = guess("The product has 16 times as many flops. How many times as long as the sum does it take?",
                      unit="times")  # fmt: skip

# %% source_hidden=true
import math
import time
from functools import partial

import numba
import numpy as np
from threadpoolctl import threadpool_limits

import minidl
from course.figures.page import say, see, table
from minidl import functional as F
from minidl import nn, optim, roofline
from minidl.functional import micro_batches
from minidl.plots import lines, style
from minidl.plots.lines import Line, Panel
from minidl.plots.style import bytes_text, time_text

one_thread = threadpool_limits(1)  # products on one core, as numpy's sums are


# %%
def seconds(*calls, repetitions=5):
    """The least seconds of each call. They take turns, so that a busy moment of the computer hits all of them."""
    least = [math.inf] * len(calls)
    for repetition in range(1 + repetitions):
        for i, call in enumerate(calls):
            began = time.thread_time()  # the seconds of this thread, without those of other programs
            call()
            if repetition > 0:  # the first call may compile, or touch new memory
                least[i] = min(least[i], time.thread_time() - began)
    return least


rng = np.random.default_rng(3)
n = 500
a, b = rng.normal(size=(2, n, n)).astype(np.float32)
c = np.empty_like(a)
u, v = rng.normal(size=(2, 15_625_000)).astype(np.float32)
w = np.empty_like(u)
t_product, t_sum = seconds(lambda: np.matmul(a, b, out=c), lambda: np.add(u, v, out=w), repetitions=20)

# %% source_hidden=true
# measured: differs from run to run
flops, nbytes = {"product": 2 * n**3, "sum": u.size}, {"product": 3 * a.nbytes, "sum": 3 * u.nbytes}
table(
    ["operation", "flops", "bytes read and written", "time", "GFLOP/s", "GB/s"],
    [[name, f"{flops[name] / 1e6:,.1f} million", f"{nbytes[name] / 1e6:.1f} MB", time_text(t),
      f"{flops[name] / t / 1e9:.1f}", f"{nbytes[name] / t / 1e9:.1f}"]
     for name, t in (("product", t_product), ("sum", t_sum))],
    f"flops and bytes by formula, time measured: the product takes {t_product / t_sum:.2f} times as long as the sum; "
    f"your guess: {guess_product.against(t_product / t_sum)}",
)  # fmt: skip

# %% [markdown]
# Flops alone do not tell. The numbers of the sum come from memory, each is used once, and the result goes back to
# memory. The core could add faster than memory delivers, as the end of this page shows. The product reads few numbers
# and uses each of them 500 times.
#
# ## Build: the roofline
#
# So there are two limits. A core computes at most $P$ flops per second, and memory delivers at most $B$ bytes per
# second (the *bandwidth*). An operation of $f$ flops and $m$ bytes takes at least
#
# $$t \ge \max\left(\frac{f}{P},\ \frac{m}{B}\right), \qquad\text{so its rate is}\qquad \frac{f}{t} \le
# \min(P,\ I \cdot B), \qquad I = \frac{f}{m}.$$
#
# $I$ is the operation's *intensity*, in flops per byte. This bound is the *roofline*. Over $I$, with both axes
# logarithmic, it rises along $I \cdot B$ and is flat at $P$. At the corner, the *ridge*, $I = P/B$. Left of it an
# operation is *memory-bound*, right of it *compute-bound*. The two operations above measure both limits:

# %%
P_peak, B_peak = flops["product"] / t_product, nbytes["sum"] / t_sum
machine = roofline.measure_machine()  # minidl measures a product and a sum, too, and keeps the best of 30 times


def bound(flops, nbytes):
    """The least seconds that an operation can take on this core; machine.seconds(flops, nbytes) is the same."""
    return max(flops / machine.flops_per_s, nbytes / machine.bytes_per_s)


# %% source_hidden=true
# measured: differs from run to run
ridge = machine.flops_per_s / machine.bytes_per_s
table(
    ["measured", "P, GFLOP/s", "B, GB/s", "ridge P/B, flops per byte"],
    [["above", f"{P_peak / 1e9:.0f}", f"{B_peak / 1e9:.0f}", f"{P_peak / B_peak:.1f}"],
     ["minidl's", f"{machine.flops_per_s / 1e9:.0f}", f"{machine.bytes_per_s / 1e9:.0f}", f"{ridge:.1f}"]],
    "from here on, the second row is this core's roof; other programs on the computer make both limits look smaller",
)  # fmt: skip

# %% [markdown]
# ReLU of one number is a flop for 8 bytes, 4 read and 4 written: $I = 1/8$, left of the ridge. A linear
# layer with $h$ inputs and $h$ outputs (*features*) has $2mh^2$ flops for $m$ samples. It reads $h^2$ weights and $mh$
# inputs and writes $mh$ outputs, of 4 bytes each:
#
# $$I = \frac{2mh^2}{4\,(h^2 + 2mh)} = \frac{m}{2 + 4m/h}.$$
#
# It reads its weights once, for one sample as for a hundred. Small weights can stay in a *cache*, a small fast memory
# next to the core, and then do not come from memory each time. Turn the samples and the features:


# %% source_hidden=true
def turn(axes, samples, features):
    x, weight = np.full((samples, features), 0.73, np.float32), np.full((features, features), 0.37, np.float32)
    (t,) = seconds(partial(np.matmul, x, weight, out=np.empty_like(x)), repetitions=12_000 // features)
    f, m = 2 * samples * features**2, 4 * (features**2 + 2 * samples * features)
    ends = [0.1, ridge, 1000]
    axes.loglog(ends, [e / bound(e, 1) / 1e9 for e in ends], color="black", label="roof")
    axes.plot(f / m, f / bound(f, m) / 1e9, "o", color=style.SERIES[0], fillstyle="none", markersize=9,
              label="this layer at best (formula)")  # fmt: skip
    axes.plot(f / m, f / t / 1e9, "^", color=style.SERIES[1], label="measured")
    axes.set(
        xlabel="flops per byte", ylabel="GFLOP/s", ylim=(0.1 * machine.bytes_per_s / 1e9, 2 * machine.flops_per_s / 1e9)
    )
    axes.legend(loc="lower right", fontsize=7)


# measured: differs from run to run
explore(
    turn,
    "the more samples, the further right and the higher the layer. With one sample it is on the slanted line, bound by "
    "memory, with many on the flat one, bound by computing. Near the corner the measured layer can be well below: the "
    "bound there needs memory and core to be busy all the time. Small weights stay in a cache; then a layer with few "
    "samples can be above the slanted line, which is for memory.",
    samples=[1, 2, 4, 8, 16, 64, 256],
    features=[4000, 1000, 250],
    multiples=[{}, {"samples": 8}, {"samples": 256}, {"features": 250}],
    height=2.9,
    source=["measured", "formula"],
)

# %% [markdown]
# So a minibatch not only makes the gradient less noisy (chapter 02), it also uses each byte more often.
#
# ## A training step under the roof
#
# Here is a small GPT, with the attention of 03a: two blocks, 64 features, 16 texts of 64 tokens. The tokens are random,
# because the seconds do not depend on which ones they are. A GPT also has *GELU*, a smooth ReLU, and *layer norm*,
# which does for each token what batch norm does for each map.

# %%
minidl.manual_seed(0)
model = nn.models.GPT(vocab_size=65, block_size=64, n_layer=2, n_head=4, n_embd=64)
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
tokens, targets = rng.integers(65, size=(2, 16, 64))


def step():
    optimizer.zero_grad()
    F.cross_entropy(model(tokens).reshape(-1, 65), targets.reshape(-1)).backward()
    optimizer.step()


operations = roofline.profile(step)

# %% source_hidden=true
PRODUCTS = ("matmul", "linear")
NORMS = ("layer_norm", "attention_softmax", "cross_entropy")
kinds = {"matrix products": [], "norms, softmax, loss": [], "all others": []}
for each in operations:
    kind = 0 if each.name in PRODUCTS else 1 if each.name.startswith(NORMS) else 2
    list(kinds.values())[kind].append(each)
share = {kind: {what: sum(getattr(one, what) for one in ones) / sum(getattr(one, what) for one in operations)
                for what in ("flops", "nbytes", "seconds")} for kind, ones in kinds.items()}  # fmt: skip
say(f"The step has {len(operations)} operations, forward, backward and update, with "
    f"{sum(each.flops for each in operations) / 1e6:,.0f} million flops. "
    f"{share['matrix products']['flops']:.1%} of the flops are in matrix products.")  # fmt: skip

# %%
guess_rest = guess("Which share of the step's seconds goes to everything that is not a matrix product?", unit="%")

# %% source_hidden=true
# measured: differs from run to run
rest = 1 - share["matrix products"]["seconds"]
table(
    ["operations", "number", "of the flops", "of the bytes", "of the seconds", "flops per byte", "of the roof"],
    [[kind, len(ones), *(f"{share[kind][what]:.1%}" for what in ("flops", "nbytes", "seconds")),
      f"{sum(one.flops for one in ones) / sum(one.nbytes for one in ones):.2g}",
      f"{sum(bound(one.flops, one.nbytes) for one in ones) / sum(one.seconds for one in ones):.0%}"]
     for kind, ones in kinds.items()],
    "flops and bytes counted, seconds measured; of the roof: the least seconds, by `bound`, divided by the measured "
    f"ones. Not in products: {rest:.0%} of the seconds; your guess: {guess_rest.against(100 * rest)}",
)  # fmt: skip
see(
    roofline.draw(machine, operations),
    "the six kinds of operations that take most time, with their shares. Matrix products are at the right and reach "
    "the highest rates. The others are far to the left, where the roof is low, and below even that, for reasons that "
    "come next.",
)

# %% [markdown]
# Outside the products there are few flops, many bytes, and a share of the seconds that the flops do not explain.
# Two more things keep an operation below its bound: what is not counted, such as Python between the operations, and
# functions such as the exponential, which take many instructions but count as one flop. And as above, what stays in a
# cache can be above the slanted line.
#
# So there are three ways to make a step faster: bring products up to the flat roof, move fewer bytes, or choose another
# algorithm. We try all three.
#
# ## Up to the roof: the same flops in another order
#
# Three ways to multiply, compiled by numba. The first is the textbook's. The second swaps its two inner loops. The
# third is the second one in *tiles*: it takes 4×4 numbers of `a` at a time.


# %%
@numba.njit
def textbook(a, b, c):
    for i in range(len(a)):
        for j in range(b.shape[1]):
            total = np.float32(0)
            for k in range(len(b)):
                total += a[i, k] * b[k, j]
            c[i, j] = total


@numba.njit
def by_rows(a, b, c):
    c[:] = 0
    for i in range(len(a)):
        for k in range(len(b)):
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@numba.njit
def in_tiles(a, b, c):
    """Rows and columns of a are multiples of 4."""
    c[:] = 0
    for i in range(0, len(a), 4):
        for k in range(0, len(b), 4):
            for j in range(b.shape[1]):
                b0, b1, b2, b3 = b[k, j], b[k + 1, j], b[k + 2, j], b[k + 3, j]
                for r in range(i, i + 4):
                    c[r, j] += a[r, k] * b0 + a[r, k + 1] * b1 + a[r, k + 2] * b2 + a[r, k + 3] * b3


# %%
guess_swap = guess("by_rows does the multiplications of textbook, only in another order. How many times as fast is it?",
                   unit="times")  # fmt: skip

# %% source_hidden=true
# measured: differs from run to run
WAYS = {"textbook": textbook, "by_rows": by_rows, "in_tiles": in_tiles, "BLAS (numpy)": np.matmul}
results = {name: np.empty_like(a) for name in WAYS}
taken = dict(zip(WAYS, seconds(*(partial(way, a, b, results[name]) for name, way in WAYS.items()),
                               repetitions=3), strict=True))  # fmt: skip
ACCESSES = {"textbook": "2", "by_rows": "3", "in_tiles": "(4 + 4 + 4) / 16 = 0.75", "BLAS (numpy)": "not counted"}
exact = a.astype(float) @ b
table(
    ["product of 500x500 matrices", "loads and stores for each multiplication", "GFLOP/s", "of BLAS", "off by at most"],
    [[name, ACCESSES[name], f"{2 * n**3 / t / 1e9:.1f}", f"{taken['BLAS (numpy)'] / t:.1%}",
      f"{np.abs(results[name] - exact).max():.0e}"] for name, t in taken.items()],
    "measured, but loads and stores, which are counted in the inner loop; off: from the product in float64. by_rows is "
    f"{taken['textbook'] / taken['by_rows']:.0f} times as fast as textbook; "
    f"your guess: {guess_swap.against(taken['textbook'] / taken['by_rows'])}",
)  # fmt: skip
say(
    f"textbook and by_rows add up every number of c in the same order: their results are "
    f"{'equal to the bit' if np.array_equal(results['textbook'], results['by_rows']) else 'not equal to the bit'}."
)

# %% [markdown]
# `textbook` goes down a column of `b`. Memory and caches hand over *lines*, of 64 bytes on most processors, and of each
# line this loop uses one number, 4 bytes. It also adds to one total, so each addition waits for the one before.
# `by_rows` goes along rows: it uses whole lines, its additions are independent, and the compiler does several of them
# in one instruction (*vector instructions*). That outweighs its larger number of loads and stores: a number of `b`, and
# one of `c` forth and back, for every multiplication. `in_tiles` keeps 16 numbers of `a` in *registers*, the core's own
# few variables. Each number of `b` that it loads serves four rows, and each number of `c` gets four products at a time.
#
# That is tiling: *load a few numbers, use each many times*. BLAS, the library behind numpy's `@`, does this for the
# registers and again for each cache, with instructions chosen by hand.
#
# ## Fewer bytes: fusion
#
# A layer adds its bias and applies ReLU. In numpy these are two passes over the array: read, write, read, write.
# *Fused* into one loop, each number is read once, changed twice and written once.


# %%
@numba.njit
def fused(z, bias, out):
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            out[i, j] = max(z[i, j] + bias[j], np.float32(0))


def two_passes(z, bias, out):
    np.add(z, bias, out=out)
    np.maximum(out, 0, out=out)


# %% source_hidden=true
# measured: differs from run to run
bias = rng.normal(size=1000).astype(np.float32)
rows = []
for samples in (60, 15_625):
    z = u[: samples * 1000].reshape(samples, 1000)
    out, other = w[: z.size].reshape(z.shape), np.empty_like(z)
    t_two, t_one = seconds(partial(two_passes, z, bias, out), partial(fused, z, bias, other), repetitions=10)
    rows.append([bytes_text(z.nbytes), time_text(t_two), f"{4 * z.nbytes / t_two / 1e9:.0f} GB/s", time_text(t_one),
                 f"{2 * z.nbytes / t_one / 1e9:.0f} GB/s", f"{t_two / t_one:.1f}",
                 "yes" if np.array_equal(out, other) else "no"])  # fmt: skip
table(
    ["array", "two passes", "at", "fused", "at", "times as fast", "same bits"],
    rows,
    "measured; at: bytes read and written for each second. By formula, the fused loop has half the bytes",
)

# %% [markdown]
# The flops are the same, and so is every bit of the result. The large array makes one trip to memory and back instead
# of two. What goes beyond a factor of 2 is not in the bytes: numpy's passes move them at a lower rate than the compiled
# loop. The small array stays in a cache, so there the rates matter more than the trips. In [03c](03c_compiler.ipynb) a
# compiler finds such loops by itself.
#
# ## Another algorithm: fewer multiplications, more bytes
#
# In 03a Winograd's algorithm had 16 multiplications where im2col has 36, but was hardly faster where it was fastest,
# and mostly slower. Put the steps of both under the roof: im2col unfolds the image and has one large matrix product.
# Winograd's algorithm has 16 smaller products, and transforms of the image, the filters and the result. Here are 8
# images of 64 channels and 16x16 pixels, with 64 filters of 3x3.

# %%
guess_transforms = guess("Which share of the time of Winograd's algorithm do its transforms take?", unit="%")

# %% source_hidden=true
# measured: differs from run to run
N, C, PIXELS = 8, 64, 256  # images; channels, as many as filters; pixels
TILES = N * PIXELS // 4  # of four results
WORK = {  # flops, and bytes if each array is read or written once
    "im2col: unfolding": (0, 4 * 10 * N * C * PIXELS),
    "im2col: product": (18 * N * C * C * PIXELS, 4 * (10 * N * C * PIXELS + 9 * C * C)),
    "Winograd: transforms": (
        TILES * C * (32 + 24) + 28 * C * C,
        4 * (2 * N * C * PIXELS + 32 * TILES * C + 25 * C * C),
    ),
    "Winograd: 16 products": (32 * TILES * C * C, 4 * 16 * (2 * TILES * C + C * C)),
}
x, filters, columns, as_rows, d, g = (rng.normal(size=shape).astype(np.float32) for shape in (
    (N, C, 16, 16), (C, C, 3, 3), (9 * C, N * PIXELS), (C, 9 * C), (16, C, TILES), (16, C, C)))  # fmt: skip
all_im2col, all_winograd, one, sixteen = seconds(
    partial(F.conv2d, x, filters, padding=1, algorithm="im2col"),
    partial(F.conv2d, x, filters, padding=1, algorithm="winograd"),
    partial(np.matmul, as_rows, columns), partial(np.matmul, g, d), repetitions=10)  # fmt: skip
took = dict(zip(WORK, (all_im2col - one, one, all_winograd - sixteen, sixteen), strict=True))
least = {name: bound(*work) for name, work in WORK.items()}
part = took["Winograd: transforms"] / all_winograd
table(
    ["step", "million flops", "MB", "flops per byte", "at least", "measured"],
    [[name, f"{flops / 1e6:.1f}", f"{moved / 1e6:.1f}", f"{flops / moved:.2g}", time_text(least[name]),
      time_text(took[name])] for name, (flops, moved) in WORK.items()],
    "flops and bytes by formula, each array read or written once; measured: the products alone, and what is left of "
    f"the whole convolution. The transforms take {part:.0%} of Winograd's algorithm; your guess: "
    f"{guess_transforms.against(100 * part)}",
)  # fmt: skip
at_best = [sum(time for name, time in least.items() if name.startswith(way)) for way in ("Winograd", "im2col")]
say(f"By the bounds, Winograd's algorithm would take {at_best[0] / at_best[1]:.2f} times as long as im2col. Measured, "
    f"it takes {all_winograd / all_im2col:.2f} times as long: its transforms need "
    f"{took['Winograd: transforms'] / least['Winograd: transforms']:.0f} times their bound.")  # fmt: skip

# %% [markdown]
# The multiplications that Winograd's algorithm saves are the cheapest of all, those in matrix products near the flat
# roof. The transforms that it adds have a low intensity, and their bound is for one pass that reads and writes each
# number once. minidl's transforms are in numpy, which makes a pass for each of the additions, over numbers that are not
# next to each other. A gain is left only if the transforms are fused, too.
#
# ## The bytes that an algorithm needs meanwhile
#
# Algorithms also need memory that is not in their result: the *workspace*. im2col unfolds the image; FFT, in 03a the
# fastest for large windows, keeps transformed images and filters. The default of minidl slides filters over the image
# or unfolds it in blocks, and needs little. On a GPU without much free memory a library must often take a slower
# algorithm with a smaller workspace. Oyama et al. (2018) divide the minibatch instead: some images after the others, in
# *micro-batches*, each by an algorithm whose workspace fits. Which division is fastest? Measure what a micro-batch of
# $i$ images takes, for a few $i$ and each algorithm. Whatever the last micro-batch of a fastest division is, the images
# before it are divided in their fastest way. So the least time of $b$ images follows from those of fewer (*dynamic
# programming*):


# %%
def least_seconds(batch, times, limit):
    """Of all divisions into micro-batches within the limit; times[images, algorithm]: (seconds, workspace)."""
    least = [0.0] + [math.inf] * batch
    for b in range(1, batch + 1):
        for (images, _), (t, workspace) in times.items():
            if images <= b and workspace <= limit:
                least[b] = min(least[b], least[b - images] + t)
    return least[batch]


BATCH, SHAPE, FILTERS = 16, (24, 16, 16), (24, 24, 15, 15)  # 16 images of 24 channels, 16x16; windows of 15x15
CASES = [(images, name) for images in (1, 2, 4, 8, 16) for name in ("default", "im2col", "fft")]
times = {}
for images, name in bar(CASES, "measuring"):
    times[images, name] = micro_batches.measured(
        (images, *SHAPE), FILTERS, padding=7, algorithm=None if name == "default" else name, repetitions=2
    )


# %% source_hidden=true
def every_division(batch, most):
    """All ways to write batch as a sum of images, the largest first."""
    if batch == 0:
        yield ()
    for images in range(min(batch, most), 0, -1):
        yield from ((images, *rest) for rest in every_division(batch - images, images))


def by_trying(batch, times, limit):
    """The least seconds over all divisions and, for each micro-batch, all algorithms."""
    quickest = {images: min((t for (i, _), (t, space) in times.items() if i == images and space <= limit),
                            default=math.inf) for images in range(1, batch + 1)}  # fmt: skip
    return min(sum(quickest[images] for images in division) for division in every_division(batch, batch))


# measured: differs from run to run
limits = sorted({space for _, space in times.values()})
cases = [(size, limit) for size in range(1, BATCH + 1) for limit in limits]
agree = sum(math.isclose(least_seconds(size, times, limit), by_trying(size, times, limit)) for size, limit in cases)
say(f"`least_seconds` and trying every division find the same time in {agree} of {len(cases)} cases: minibatches of 1 "
    f"to {BATCH} images, {len(limits)} limits.")  # fmt: skip
whole = {name: times[BATCH, name] for name in ("default", "im2col", "fft")}
quickest = min(whole, key=lambda name: whole[name].seconds)
free = least_seconds(BATCH, times, math.inf)
limit = whole[quickest].workspace - 1
table(
    ["all 16 images by", "time", "workspace"],
    [[name, time_text(each.seconds), bytes_text(each.workspace)] for name, each in whole.items()],
    "measured: forward and both gradients",
)

# %%
guess_limit = guess("The limit is one byte below the workspace of the fastest. How many times as long as without a "
                    "limit do the best micro-batches take?", unit="times")  # fmt: skip

# %% source_hidden=true
# measured: differs from run to run
within, division = least_seconds(BATCH, times, limit), micro_batches.best_micro_batches(BATCH, times, limit)
alone = min(((each.seconds, name) for name, each in whole.items() if each.workspace <= limit), default=None)
parts = " + ".join(f"{images} images by {name}" for images, name in division)
planned = sum(times[part].seconds for part in division)
say(f"Micro-batches, by minidl's `best_micro_batches`: {parts}, {time_text(planned)}; by `least_seconds` "
    f"{time_text(within)}. That is **{within / free:.2f} times** as long as without a limit (your guess: "
    f"{guess_limit.against(within / free)}). All at once within the limit: "
    + (f"by {alone[1]}, {alone[0] / free:.2f} times." if alone else "no algorithm can."))  # fmt: skip
say(f"By fft a single image takes {times[1, 'fft'].seconds / times[BATCH, 'fft'].seconds:.0%} of the time of all "
    f"{BATCH}: each micro-batch transforms all filters again, and their gradients. That is the price of the smaller "
    "workspace.")  # fmt: skip
grid = np.linspace(limits[0], 1.2 * whole[quickest].workspace, 200)
undivided = [min((each.seconds for each in whole.values() if each.workspace <= at), default=math.nan) for at in grid]
panel = Panel([Line("all at once", grid / 1e6, np.array(undivided) * 1e3, tone=1),
               Line("in micro-batches", grid / 1e6, [1e3 * least_seconds(BATCH, times, at) for at in grid], tone=0)],
              "limit of the workspace (MB)", "time (ms)")  # fmt: skip
see(
    lines.draw([panel], source="measured"),
    "with more workspace the time never grows, and it falls where a faster division fits. Micro-batches are never "
    "slower than all at once, since one micro-batch of all images is one of the divisions.",
)

# %% [markdown]
# The result and the gradients do not depend on the division, but for rounding: images are convolved independently of
# each other, and gradients of filters add up. `micro_batches.conv2d_in_micro_batches` runs such a plan:

# %% source_hidden=true
x = minidl.Tensor(rng.normal(size=(BATCH, *SHAPE)).astype(np.float32), requires_grad=True)
filters = minidl.Tensor(rng.normal(size=FILTERS).astype(np.float32), requires_grad=True)
found = []
for plan in ([(16, None)], [(8, "fft"), (5, "im2col"), (3, None)]):
    x.grad = filters.grad = None
    y = micro_batches.conv2d_in_micro_batches(x, filters, plan, padding=7)
    (y * y).sum().backward()
    found.append((y.numpy(), x.grad, filters.grad))
off = [np.abs(one - other).max() / np.abs(one).max() for one, other in zip(*found, strict=True)]
say(f"8 images by fft, 5 by im2col, 3 by the default against 16 by the default, in float32: outputs differ by "
    f"{off[0]:.0e} of the largest, gradients by {max(off[1:]):.0e}.")  # fmt: skip

# %% [markdown]
# ## Break it
#
# A classic mistake: somebody measures the bandwidth $B$ with a small array, because it is quick.

# %% source_hidden=true
# measured: differs from run to run
sizes, rates = [1000 * 4**k for k in range(7)] + [u.size], []
for size in sizes:
    calls = max(1, 2_000_000 // size)
    (t,) = seconds(lambda size=size, calls=calls: [np.add(u[:size], v[:size], out=w[:size]) for _ in range(calls)])
    rates.append(12 * size * calls / t / 1e9)
see(
    lines.draw([Panel([Line("sum of two arrays", [12 * size for size in sizes], rates, "both", 0),
                       Line("the roof's B", [12 * sizes[0], 12 * sizes[-1]], [machine.bytes_per_s / 1e9] * 2, tone=1)],
                      "bytes of the three arrays", "GB/s", log="x")], source="measured"),
    "at the left the calls themselves take most of the time. In the middle the arrays stay in a cache, which is faster "
    "than memory. At the right they do not fit, and what remains is memory's bandwidth.",
)  # fmt: skip
t_sum, t_fused = seconds(lambda: np.add(u, v, out=w), partial(fused, z, bias, other))
right, wrong, reached = 3 * u.nbytes / t_sum, 1e9 * max(rates), 2 * u.nbytes / t_fused
say(f"With the fastest of these as $B$, the roof is {wrong / right:.1f} times too high for large arrays. The fused "
    f"loop on {bytes_text(u.nbytes)} would seem to reach {reached / wrong:.0%} of what is possible, and somebody would "
    f"try to improve it. In truth it is at {reached / right:.0%}.")  # fmt: skip

# %% [markdown]
# Measure a limit with arrays of the size for which you use it, and let the calls that you compare take turns, as
# `seconds` does.
#
# ## What the papers report
#
# **Williams, Waterman, Patterson (2009)**, *Roofline* (CACM 52), introduced the picture for multicore processors.
#
# **Ivanov et al. (2021)**, *Data Movement Is All You Need* (arXiv:2007.00072, table 1), did on a V100 what we did
# above, for one layer of BERT, a transformer:

# %% source_hidden=true
# measured: differs from run to run
PUBLISHED = {"matrix products": (99.80, 61.0), "norms, softmax, loss": (0.17, 25.5), "all others": (0.03, 13.5)}
table(
    ["", "flops, published", "seconds, published", "flops, our GPT", "seconds, our GPT"],
    [[kind, f"{theirs[0]:.2f} %", f"{theirs[1]:.1f} %", f"{share[kind]['flops']:.2%}", f"{share[kind]['seconds']:.1%}"]
     for kind, theirs in PUBLISHED.items()],
    "ours measured; theirs: tensor contractions, statistical normalization, element-wise. Outside the products: "
    f"{100 - 61.0:.0f} % of their seconds, {rest:.0%} of ours",
)  # fmt: skip
CHIPS = {"NVIDIA V100 (2017)": (125e12, 900e9), "NVIDIA A100 80 GB (2020)": (312e12, 2.039e12),
         "NVIDIA H100 SXM (2022)": (989e12, 3.35e12)}  # fmt: skip
table(
    ["chip", "16-bit matrix products", "memory", "ridge"],
    [["one core here, float32", f"{machine.flops_per_s / 1e12:.2g} TFLOP/s", f"{machine.bytes_per_s / 1e9:.0f} GB/s",
      f"{ridge:.1f} flops per byte"],
     *([name, f"{peak / 1e12:.0f} TFLOP/s", f"{rate / 1e9:,.0f} GB/s", f"{peak / rate:.0f} flops per byte"]
       for name, (peak, rate) in CHIPS.items())],
    "published in the makers' data sheets; the first row measured, the ridge by formula",
)  # fmt: skip

# %% [markdown]
# Hardware for deep learning made products faster by more than memory: the ridge moves to the right, and more
# operations become memory-bound.
#
# **Oyama, Ben-Nun, Hoefler, Matsuoka (2018)**, *Accelerating Deep Learning Frameworks with Micro-batches* (CLUSTER,
# "μ-cuDNN"), find the divisions by dynamic programming, as above, and share the workspace among layers by integer
# linear programming. They report that AlexNet is 1.63 times as fast and ResNet-18 1.21 times on a P100, and the
# convolutions of the DeepBench collection up to 4.54 times, on average 1.60, on a V100.
#
# **Lavin and Gray (2015)** (arXiv:1509.09308) brought Winograd's algorithm to convolutions, with transforms fused into
# the products on a GPU.
#
# ## The answer
#
# Nearly all flops are in matrix products, and near the flat roof these take little time for so many flops. So
# operations with hardly any flops, which move every number through memory, have a far larger share of the seconds than
# of the flops. An operation takes at least the longer of two times, for its flops and for its bytes, and its intensity
# says which one that is. Count both. Tiles bring a product nearer to the roof, fusion saves bytes, and an algorithm
# with fewer multiplications is faster only if its transforms do not cost more. The bytes of its workspace count, too:
# under a limit, micro-batches keep a fast algorithm, at the price of transforming the filters more often.
#
# ## To the exercises
#
# [Exercises of chapter 03](../exercises/03_operators/03_operators.ipynb), or `python3 -m course start 03`:
# `micro_batches` and `im2col` belong to this page, `winograd` to 03a, `fuse` to 03c.
#
# **Three questions to argue about**
#
# 1. A GPT writes a text one token at a time. Where on the roofline is a linear layer then, and what would help?
# 2. A chip with twice the flops per second and the same memory: which of the tables above change, and by how much?
# 3. In float16 every number has half the bytes. Which operations get twice as fast, and which do not?
#
# Next: [03c. Why is a line of numpy slower than it needs to be?](03c_compiler.ipynb)
