# %% [markdown]
# # 09d. How few bits does a number of the gradient need?
#
# *Read [05a](05a_data_parallelism.ipynb) (every node computes a gradient, an all-reduce adds them up) and
# [09a](09a_top_k.ipynb) (compressors) first. Reading time: about 25 minutes. Figures are* measured, simulated *or come
# from a* formula.
#
# ## The question
#
# A gradient has one number for each weight, and each number takes 32 bits on the network. The lectures before this one
# send only a few of the numbers. This one sends all of them, with fewer bits each.
#
# Here are four ways, with a network 64-128-10 on the 8x8 digits. The first two send numbers of 32 and of 16 bits. The
# other two replace every number by one of *three* values, $-c$, $0$ or $+c$. Three values fit into 2 bits. The two
# differ in one point only: which numbers have the same $c$. In one case all numbers of a matrix have the same, in the
# other each **bucket** of 64 numbers has its own. Each way is tried with three learning rates.

# %% source_hidden=true
from bisect import insort
from functools import partial

import numpy as np
from ml_dtypes import bfloat16
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, amp, cluster, compress, data, nn, optim, parallel, random
from minidl import functional as F
from minidl.plots import lines, style

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread

# %%
guess_bits = guess(
    "Three values for all numbers, learning rate 0.15: which ones end with an error below 5 %?",
    ["neither", "one c for all", "one c for each bucket", "both"],
)

# %%
SEEDS, RATES = range(3), (0.075, 0.15, 0.3)


def train(compressor, seed, rate, epochs=8):
    model, optimizer = partial(nn.models.MLP, 64, 128, 10), partial(optim.SGD, lr=rate, momentum=0.9)
    job = parallel.Job(model, data.digits, optimizer, batch_size=64, epochs=epochs, seed=seed)
    return parallel.train(job, parallel.Synchronous(compressor=compressor), 1, cluster.Simulation(trace="ledger"))


def errors(compressor):
    """By learning rate: the test errors of all seeds, in percent."""
    return {rate: [100 * (1 - train(compressor, seed, rate).accuracy) for seed in SEEDS] for rate in RATES}


METHODS = {
    "float32": (None, 32),
    "16 bits (fp16)": (compress.Half("fp16"), 16),
    "three values, one c for each 64": (compress.QSGD(1, 64), 2 + 32 / 64),
    "three values, one c for all": (compress.QSGD(1, None), 2),
}


# %% source_hidden=true
def median_and_range(found):
    return f"{np.median(found):.1f} ({min(found):.1f} to {max(found):.1f})"


tested = {name: errors(compressor) for name, (compressor, _) in bar(METHODS.items(), "training")}
below = [np.median(tested[f"three values, one c for {which}"][0.15]) < 5 for which in ("all", "each 64")]
answer = {(False, False): "neither", (True, False): "one c for all", (False, True): "one c for each bucket",
          (True, True): "both"}[tuple(below)]  # fmt: skip
table(["a number is sent as", "bits", *(f"learning rate {rate}" for rate in RATES)],
      [[name, bits, *map(median_and_range, tested[name].values())] for name, (_, bits) in METHODS.items()],
      f"test error (%), measured: one node, momentum 0.9, 8 epochs, median (range) of {len(SEEDS)} seeds; your "
      f"guess: {guess_bits.against(answer)}")  # fmt: skip

# %% [markdown]
# With 16 bits no difference shows here. With three values it depends on the learning rate. At the lowest, 2 bits are
# as good as 32. At 0.15 each bucket needs its own $c$ (half a bit more a number). At 0.3 that is not enough. **A number
# may have few bits, if the learning rate is low; the bucket decides how low.** This page finds out why.
#
# ## Sixteen bits: which ones?
#
# A floating-point number has three fields. One bit is the sign. The **exponent** says between which two powers of two
# the magnitude lies. The **mantissa** says where between them. There are two ways to spend 16 bits: **fp16** keeps more
# mantissa, **bf16** (for *brain float*) keeps the whole exponent of float32.

# %% source_hidden=true
FORMATS = {"float32": (8, 23), "fp16": (5, 10), "bf16": (8, 7)}  # bits of exponent and mantissa
TYPES = {"float32": np.float32, "fp16": np.float16, "bf16": bfloat16}


def bits_of(number, name):
    """The bits of a number in this format, highest first."""
    return np.unpackbits(np.array([number], TYPES[name]).view(np.uint8)[::-1])


def fields(number):
    with style.applied():
        figure, [axes] = style.new_figure(9.5, 2.6)
        for height, (name, (exponent, mantissa)) in zip((2, 1, 0), FORMATS.items(), strict=True):
            tones = [3] + [4] * exponent + [5] * mantissa
            for place, (bit, tone) in enumerate(zip(bits_of(number, name), tones, strict=True)):
                axes.barh(height, 0.9, 0.62, left=place, color=style.SERIES[tone], **style.BORDER)
                axes.text(place + 0.45, height, bit, ha="center", va="center")
            axes.text(len(tones) + 0.6, height, f"is read as {float(TYPES[name](number)):.10g}", va="center")
        for place, word in ((0, "sign"), (1, "exponent"), (9, "mantissa")):
            axes.text(place, 2.5, word, color="0.2", fontweight="bold", ha="right" if not place else "left")
        axes.tick_params(left=False)
        axes.set(yticks=(2, 1, 0), yticklabels=FORMATS, xticks=[], xlim=(-1.5, 44), ylim=(-0.5, 2.9))
        axes.spines[:].set_visible(False)
        style.label_source(figure, "measured", f"the number {number}")
    return figure


see(
    fields(0.001),
    "the bits of 0.001 in the three formats. bf16 is float32 without the last 16 bits (rounded): same sign, same "
    "exponent, a mantissa of 7 bits instead of 23. fp16 has a shorter exponent and 10 bits of mantissa, so it is "
    "closer to 0.001.",
)

# %% [markdown]
# bf16 is easy to build. Take the 32 bits as a whole number, add half of the last bit that stays, cut 16 bits off. (If
# the number lies exactly in the middle, the even neighbour is taken.) It must agree with minidl's `Half`, which is the
# compressor that sends 16 bits:


# %%
def to_bf16(x):
    """x rounded to bf16, as float32 numbers; for finite x."""
    whole = x.view(np.uint32)
    even = whole >> 16 & 1  # the last bit that stays
    return (whole + 0x7FFF + even & 0xFFFF0000).view(np.float32)


# %% source_hidden=true
x = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
half = compress.Half("bf16")
assert np.array_equal(to_bf16(x), half.decode(half.encode(x)))
rows = []
for name, (exponent, mantissa) in FORMATS.items():
    bias = 2 ** (exponent - 1) - 1
    largest, smallest = (2 - 2.0**-mantissa) * 2.0**bias, 2.0 ** (1 - bias - mantissa)
    kind = TYPES[name]
    assert kind(smallest) > kind(smallest / 2) == 0
    assert float(kind(largest)) == largest
    rows.append([name, mantissa + 1, f"{2.0 ** -(mantissa + 1):.0e}", f"{smallest:.1e}", f"{largest:.3g}"])
table(["format", "significant bits", "relative error up to", "smallest above 0", "largest"], rows,
      f"formula; to_bf16 and minidl's Half agree on {x.size:,} numbers to the bit")  # fmt: skip

# %% [markdown]
# (A leading 1 of the mantissa is not stored; hence 24, 11 and 8 significant bits. The smallest numbers have fewer.)
#
# The column that decides is the fourth. What is smaller than half of fp16's smallest number becomes 0. Do gradients get
# so small? Here are those of a network with 10 hidden layers, in its first step:


# %% source_hidden=true
def magnitudes(depth=10):
    random.manual_seed(0)
    model = nn.models.MLP(64, *[32] * depth, 10)
    images, labels = data.digits().train[np.arange(64)]
    F.cross_entropy(model(Tensor(images)), labels).backward()
    return np.concatenate([np.abs(layer.weight.grad).reshape(-1) for layer in model.layers[:3]])


found = magnitudes()
found = found[found > 0]
lost = np.mean(found.astype(np.float16) == 0)
with style.applied():
    picture, [axes] = style.new_figure(7.5, 2.8)
    axes.hist(np.log10(found), 60, color=style.SERIES[0], **style.BORDER)
    for at, words in ((2.0**-24, "fp16's\nsmallest"), (2.0**-14, "fp16 is precise\nfrom here on")):
        axes.axvline(np.log10(at), color=style.SERIES[1], linestyle="--")
        axes.text(np.log10(at) + 0.06, 0.99, words, transform=axes.get_xaxis_transform(), va="top")
    axes.set(xlabel="magnitude of the gradient", ylabel="numbers", xlim=(-11, -3.4))
    axes.set_xticks(range(-11, -3), [f"$10^{{{power}}}$" for power in range(-11, -3)])
    style.label_source(picture, "measured", "first three of 11 layers, zeros left out")
see(
    picture,
    f"the magnitudes of the gradient of the first three layers. fp16 turns {100 * lost:.0f} % of them into 0, those "
    "left of the first dashed line (to be exact: of half its value). Right of the second line fp16 has its full "
    f"precision; the largest number here is {found.max():.0e}. bf16's smallest number is far "
    "outside of the picture, on the left.",
)

# %% [markdown]
# ### Loss scaling
#
# Multiply the loss by a factor, and all gradients are multiplied by it. Divide the learning rate by the same factor,
# and in exact arithmetic every weight is the same as before. So how large gradients are depends on the *unit* of the
# loss. (A mean over a million pixels instead of their sum has a millionth of the gradient.) We train with the factors
# 1, $2^{-10}$ and $2^{-20}$, about a thousandth and a millionth. `amp.autocast` stores the activations and their
# gradients in 16 bits.

# %%
guess_units = guess("The loss divided by a million (2²⁰): who still learns?", ["fp16", "bf16", "both", "neither"])


# %%
def mixed(dtype, factor, scaled, seed, epochs=3):
    """The test error in percent, with the loss times `factor` and the learning rate divided by it."""
    random.manual_seed(seed)
    training, tests = data.digits()
    model = nn.models.MLP(64, 64, 10)
    optimizer = optim.SGD(model.parameters(), lr=0.5 / factor)
    scaler, order = amp.GradScaler(enabled=scaled), np.random.default_rng(seed)
    for _ in range(epochs):
        for chosen in np.array_split(order.permutation(len(training)), 22):
            images, labels = training[chosen]
            optimizer.zero_grad()
            with amp.autocast(dtype=dtype or "float16", enabled=dtype is not None):
                outputs = model(Tensor(images))
            scaler.scale(F.cross_entropy(outputs, labels) * factor).backward()
            scaler.step(optimizer)
            scaler.update()
    return 100 * np.mean(model(Tensor(tests.x)).numpy().argmax(1) != tests.y)


# %% source_hidden=true
WAYS = {"float32": (None, False), "fp16": ("float16", False), "bf16": ("bfloat16", False),
        "fp16, loss scaled": ("float16", True)}  # fmt: skip
FACTORS = (1.0, 2.0**-10, 2.0**-20)
cases = [(name, factor) for name in WAYS for factor in FACTORS]
learned = {(name, factor): [mixed(WAYS[name][0], factor, WAYS[name][1], seed) for seed in range(3)]
           for name, factor in bar(cases, "training in four formats")}  # fmt: skip
fine = [max(learned[name, 2.0**-20]) < 50 for name in ("fp16", "bf16")]
answer = {(True, True): "both", (True, False): "fp16", (False, True): "bf16", (False, False): "neither"}[tuple(fine)]
table(["activations and gradients in", "loss x 1", "x $2^{-10}$", "x $2^{-20}$"],
      [[name, *(median_and_range(learned[name, factor]) for factor in FACTORS)] for name in WAYS],
      "test error (%) after 3 epochs, measured, median (range) of three seeds; guessing is wrong in 90 %; "
      f"your guess: {guess_units.against(answer)}")  # fmt: skip

# %% [markdown]
# The last row is the cure, **loss scaling**: multiply the loss by a large factor, run backward, divide the gradients by
# the factor in float32. `GradScaler` searches for the factor. It starts at $2^{16}$. If a gradient overflows it skips
# the step and halves the factor; after many steps without overflow it doubles it. bf16 needs none of this.
#
# ## Rounding at random
#
# Few bits have a second problem. Add 0.001 a thousand times to 1, and keep the sum in bf16:

# %%
to_nearest = np.float32(1)
for _ in range(1000):
    to_nearest = to_bf16(np.array([to_nearest + np.float32(0.001)]))[0]
step = 2.0**-7  # between two neighbours of bf16 from 1 to 2


def at_random(x, step, rng):
    """x rounded up or down to a multiple of `step`, so that the expected value is x."""
    return step * np.floor(x / step + rng.random(np.shape(x)))


rng, sums = np.random.default_rng(0), np.ones(100)
for _ in range(1000):
    sums = at_random(sums + 0.001, step, rng)
say(f"1 + 1,000 x 0.001, rounded to a multiple of 1/128 after every addition: to nearest **{to_nearest:g}**; at random "
    f"**{sums.mean():.3f}** (mean of {sums.size} runs; they lie between {sums.min():.2f} and {sums.max():.2f}); exact: "
    "2. Measured.")  # fmt: skip

# %% [markdown]
# Rounding to nearest loses every single addition, because 0.001 is less than half a step. Rounding at random goes up
# rarely, but by a whole step. Let $\phi$ be the fraction of a step by which $x$ lies above its lower neighbour. Add a
# random number of steps between 0 and 1, then round down: the result is the upper neighbour with probability $\phi$, so
#
# $$E[\text{rounded } x] = x - \phi\cdot\text{step} + \phi\cdot\text{step} = x, \qquad
#   \text{variance} = \phi(1-\phi)\,\text{step}^2 \le \tfrac14\text{step}^2.$$
#
# A compressor that is right on average is called **unbiased**, any other **biased**. The errors of an unbiased one are
# noise with mean zero, like that of minibatches.
#
# ## QSGD: a few levels of the norm
#
# **QSGD** (Alistarh et al., 2017) rounds at random on a coarse grid. A gradient $g$ has $n$ numbers and the norm $|g|$,
# the root of the sum of their squares. QSGD sends the norm once, as a float32, and for each number its sign and one of
# the **levels** $0, 1, \dots, s$: the multiples of $|g|/s$. With $s = 1$ these are the three values of the first table.


# %%
def qsgd(g, s, rng):
    """g with each magnitude rounded at random to one of the multiples 0, 1, ..., s of norm / s."""
    norm = np.linalg.norm(g)
    return np.sign(g) * at_random(np.abs(g), norm / s, rng)


# %% source_hidden=true
n = 1024
g = np.random.default_rng(0).standard_normal(n)
random.manual_seed(5)
ours = qsgd(g, 4, random.generator())
random.manual_seed(5)
quantizer = compress.QSGD(levels=4, bucket=None)
theirs = quantizer.decode(quantizer.encode(g))
assert np.allclose(ours, theirs)
say(f"the same random numbers, the same result as minidl's QSGD: {np.allclose(ours, theirs)}; "
    f"{8 * quantizer.encode(g).nbytes / n:.2f} bits a number")  # fmt: skip

# %% [markdown]
# How large is its error? We measure it relative to the gradient: the **relative squared error** is
# $|\text{decoded} - g|^2 / |g|^2$. From $\phi(1-\phi)$ the expected squared error of every number is known exactly,
# once $g$ is. For any $g$ there is a bound (QSGD, Lemma 3.1):
#
# $$E\,\frac{|\text{decoded} - g|^2}{|g|^2} \le \min\!\left(\frac n{s^2}, \frac{\sqrt n}s\right).$$
#
# **TernGrad** (Wen et al., 2017) is the same with $s = 1$ and the largest magnitude in place of the norm.

# %%
guess_error = guess("s = 1, n = 1,024: how large is the relative squared error?")


# %%
def exact(g, scale, s):
    """The expected relative squared error, from phi (1 - phi)."""
    phi = np.abs(g) / scale * s % 1
    return (phi * (1 - phi)).sum() * (scale / s) ** 2 / (g @ g)


# %% source_hidden=true
def measured(quantizer, g, draws=600):
    copies = np.tile(g, draws)  # the bucket is the size of g: every copy is rounded on its own
    decoded = quantizer.decode(quantizer.encode(copies)).reshape(draws, -1)
    projections = decoded @ g / (g @ g)  # 1 on average, if unbiased
    return ((decoded - g) ** 2).sum(1).mean() / (g @ g), projections.mean(), projections.std() / np.sqrt(draws)


random.manual_seed(0)
rows = []
for name, quantizer, scale, s in [(f"QSGD, s = {s}", compress.QSGD(s, n), np.linalg.norm(g), s) for s in (1, 4, 32)] + [
    ("TernGrad", compress.TernGrad(), np.abs(g).max(), 1)
]:
    error, mean, spread = measured(quantizer, g)
    assert abs(error / exact(g, scale, s) - 1) < 0.05
    assert abs(mean - 1) < 5 * spread
    bound = f"{min(n / s**2, n**0.5 / s):.3g}" if "QSGD" in name else ""
    rows.append([name, f"{error:.3g}", f"{exact(g, scale, s):.3g}", bound, f"{mean:.3f} ± {spread:.3f}"])
table(["", "relative squared error, measured", "exact", "bound", "projection on g"], rows,
      f"{n:,} normally distributed numbers, 600 draws; exact and bound: formula; projection: 1 if unbiased, ± its "
      f"standard error; your guess: {guess_error.against(exact(g, np.linalg.norm(g), 1))}")  # fmt: skip

# %% [markdown]
# With $s = 1$ the *error* is far larger than the gradient itself. Its exact form is
# $|g|_1/|g| - 1$, which grows like $\sqrt n$ (here $|g|_1$ is the sum of the magnitudes). The reason: one number in
# 1,024 is compared with the norm of all.
#
# That is the detail of the first table. A bucket of $b$ numbers with a norm of its own has $b$ in place of $n$. Smaller
# buckets: a smaller error, more norms to send. A number costs
#
# $$\lceil \log_2(2s + 1) \rceil + \frac{32}{b} \text{ bits}.$$
#
# Turn $s$ and the bucket, on a real gradient: that of the first layer of the digits' network after an epoch.


# %% source_hidden=true
def real_gradient():
    model, (images, labels) = nn.models.MLP(64, 128, 10), data.digits().train[np.arange(64)]
    model.load_state_dict(train(None, 0, 0.15, epochs=1).checkpoint.model)
    F.cross_entropy(model(Tensor(images)), labels).backward()
    return model.layers[0].weight.grad.reshape(-1).astype(np.float64)


gradient = real_gradient()


def decoded_against_true(axes, s, bucket):
    random.manual_seed(0)
    quantizer = compress.QSGD(s, bucket)
    message = quantizer.encode(gradient)
    decoded = quantizer.decode(message)
    parts = [gradient[i : i + bucket] for i in range(0, gradient.size, bucket)]
    wrong = sum(exact(part, np.linalg.norm(part), s) * (part @ part) for part in parts) / (gradient @ gradient)
    axes.plot(1e3 * gradient, 1e3 * decoded, ".", color=style.SERIES[1], markersize=2.5)
    axes.plot([-15, 15], [-15, 15], color="0.5", linewidth=0.8)
    axes.set(xlabel="number of the gradient x 1000", ylabel="decoded x 1000", xlim=(-15, 15))
    axes.set_title(f"{8 * message.nbytes / gradient.size:.2f} bits, relative error {wrong:.2g}")


explore(
    decoded_against_true,
    "each point is a number of the gradient, before and after the message. Without compression all would lie on the "
    "grey line. With one norm for all 8,192 numbers and s = 1, nearly all become 0 and a few become huge (mind the "
    "vertical scale). Smaller buckets and more levels bring the points to the line. In the titles: bits a number, and "
    "the relative squared error (formula).",
    s=[1, 3, 7, 15, 127], bucket=[8192, 2048, 512, 64, 16],
    multiples=[{"bucket": 8192}, {"bucket": 512}, {"bucket": 64}, {"s": 7, "bucket": 512}],
    shared=False, source=("measured", "formula"),
)  # fmt: skip

# %% [markdown]
# What does the squared error do to training?

# %% source_hidden=true
CASES = [(1, None), (1, 512), (1, 64), (7, 512)]
known = {(1, None): "three values, one c for all", (1, 64): "three values, one c for each 64"}
rows = []
for s, b in bar(CASES, "training"):
    tests = tested[known[s, b]] if (s, b) in known else errors(compress.QSGD(s, b))
    parts = np.split(gradient, range(b or gradient.size, gradient.size, b or gradient.size))
    wrong = sum(exact(part, np.linalg.norm(part), s) * (part @ part) for part in parts) / (gradient @ gradient)
    bits = np.ceil(np.log2(2 * s + 1)) + 32 / (b or gradient.size)
    rows.append([s, b or "all", f"{bits:.2f}", f"{wrong:.3g}", *map(median_and_range, tests.values())])
table(["s", "bucket", "bits", "relative squared error", *(f"learning rate {rate}" for rate in RATES)], rows,
      "bits and error: formula, for the gradient above; last columns: test error (%) as above")  # fmt: skip

# %% [markdown]
# With the lowest learning rate all four train alike. The larger the squared error, the lower is the learning rate at
# which training fails: an unbiased error is noise, and its price is a lower learning rate. (With 15 levels, and more
# epochs: `benchmarks/reproductions/quantized_training.py`.)
#
# ## Fewer bits still, and nothing lost
#
# With $s = 1$ most symbols are 0. A symbol that comes often deserves a short codeword. The **entropy** of symbols with
# the shares $q_i$ is $H = -\sum_i q_i \log_2 q_i$. It is the limit: no code with a codeword for each symbol needs
# fewer bits on average. **Huffman's** code needs less than $H + 1$: join the two rarest groups of symbols to one, again
# and again; each joining makes the codewords of both groups a bit longer. **Elias'** code sends only what is not 0, and
# the distances between. minidl wraps either around a quantizer with `Lossless`:


# %%
def huffman_bits(counts):
    """The mean length of a codeword."""
    groups, bits = sorted(counts), 0
    while len(groups) > 1:
        joined = groups.pop(0) + groups.pop(0)
        bits += joined
        insort(groups, joined)
    return bits / sum(counts)


# %% source_hidden=true
rows, sample = [], np.random.default_rng(1).standard_normal(512 * 40)
quantizers = {"QSGD, s = 1, one norm": compress.QSGD(1, None), "QSGD, s = 1, bucket 512": compress.QSGD(1),
              "QSGD, s = 7, bucket 512": compress.QSGD(7), "TernGrad": compress.TernGrad()}  # fmt: skip
for name, quantizer in quantizers.items():
    random.manual_seed(1)
    _, counts = np.unique(quantizer.quantize(sample)[1], return_counts=True)
    q = counts / counts.sum()
    entropy, words = -(q * np.log2(q)).sum(), huffman_bits(counts.tolist())
    assert entropy <= words < entropy + 1
    coded = []
    for code in ("huffman", "elias"):
        random.manual_seed(1)
        plain = quantizer.decode(quantizer.encode(sample))
        random.manual_seed(1)
        lossless = compress.Lossless(quantizer, code)
        message = lossless.encode(sample)
        assert np.array_equal(lossless.decode(message), plain)  # the round trip
        coded.append(8 * message.nbytes / sample.size)
    packed = 8 * quantizer.encode(sample).nbytes / sample.size
    rows.append([name, *(f"{bits:.2f}" for bits in (packed, entropy, *coded))])
table(["", "packed", "entropy", "Huffman", "Elias"], rows,
      f"bits a number, {sample.size:,} normally distributed numbers, measured; all but the entropy: with the norms; "
      "the decoded numbers are the same to the bit")  # fmt: skip

# %% [markdown]
# The first row costs nearly nothing with Elias' code. But it is the row with the largest error: nearly all of its
# numbers are 0. A lossless code makes a message shorter; the error stays what it was.
#
# ## Who adds up?
#
# A sum of numbers on a grid is not on the grid. So the nodes either *gather* all messages and add up after decoding, or
# they quantise every partial sum again on its way around a **ring** (chapter 04). A ring sends fewer bytes: 2 messages'
# worth instead of $p - 1$, with $p$ nodes. What does it do to the error?

# %%
guess_ring = guess("16 nodes: the ring's squared error, as a multiple of gathering's?")


# %%
def add_up(comm, compressor, shares):
    random.manual_seed((comm.rank, 3))
    return [compressor.begin_all_reduce(shares[comm.rank], comm)() for _ in range(3)]


def error_of_sum(compressor, shares):
    """The mean squared error of a number of the sum."""
    sums = cluster.launch(add_up, (compressor, shares), nodes=len(shares), on="simulation").results[0]
    return np.mean((np.array(sums) - sum(shares)) ** 2)


# %% source_hidden=true
NODES, rng = (1, 2, 4, 8, 16), np.random.default_rng(2)
fine = compress.QSGD(32, 64)
shares = {p: list(rng.standard_normal((p, 512 * p))) for p in NODES}
gathered = [error_of_sum(fine, shares[p]) for p in NODES]
ring = [error_of_sum(compress.QuantizedAllReduce(fine), shares[p]) for p in NODES]
one = np.mean([gathered[i] / p for i, p in enumerate(NODES)])  # of one share
panel = lines.Panel(
    [
        lines.Line("ring: quantised at every hop", NODES, ring, look="points", tone=1),
        lines.Line("p (p + 1) / 2 times one share's", NODES, [p * (p + 1) / 2 * one for p in NODES], tone=1),
        lines.Line("gathered, then added up", NODES, gathered, look="points", tone=0),
        lines.Line("p times one share's", NODES, [p * one for p in NODES], tone=0),
    ],
    "nodes p", "squared error of a number of the sum", log="xy",
)  # fmt: skip
picture = lines.draw([panel], source=("measured", "formula"), height=3.6)
picture.axes[0].set_xticks(NODES, NODES)
picture.axes[0].minorticks_off()
see(
    picture,
    f"the error grows like p where messages are gathered, and like p (p + 1)/2 in the ring. With 16 nodes the ring's "
    f"is {ring[-1] / gathered[-1]:.1f} times as large (your guess: "
    f"{guess_ring.against(ring[-1] / gathered[-1])}).",
)

# %% [markdown]
# Hop number $j$ quantises a sum of $j$ shares, whose square is about $j$ times that of one. The errors of all hops add
# up to $1 + 2 + \dots + p = p(p+1)/2$, as long as a single error is small. (At $p = 1$ nothing travels, but the share
# is rounded all the same.) 16-bit floats do not have this problem in minidl: `Half` rounds each share once and the
# finished sum once.
#
# ## Break it: rounding to nearest, and one seed for all
#
# Two mistakes that a test of a single message does not find. First: rounding to *nearest*, "because it has the smaller
# error".


# %%
class Halves:
    def random(self, size):
        return np.full(size, 0.5)  # floor(x + 1/2) is rounding to nearest


class Nearest(compress.QSGD):
    """QSGD's levels without its chance."""

    choices = Halves()


# %% source_hidden=true
g = gradient
rounding = {"random": compress.QSGD(1, 64), "nearest": Nearest(1, 64)}
decoded = {name: c.decode(c.encode(g)) for name, c in rounding.items()}
table(["s = 1, bucket 64", "relative squared error", "not 0", *(f"learning rate {rate}" for rate in RATES)],
      [[name, f"{np.sum((decoded[name] - g) ** 2) / (g @ g):.2f}", f"{100 * np.mean(decoded[name] != 0):.1f} %",
        *map(median_and_range, (tested[known[1, 64]] if name == "random" else errors(c)).values())]
       for name, c in rounding.items()],
      "measured: error and numbers that are not 0, of the gradient above; then test errors (%)")  # fmt: skip

# %% [markdown]
# Its error is smaller, but it is the same in every step: numbers below half of their bucket's norm are always sent as
# 0. Such a bias does not average out. (What saves biased compressors is the question of
# [09e](09e_sign_and_memory.ipynb).)
#
# Second: "for reproducibility" every node seeds its generator alike. Let $p$ nodes have the same gradient and average.

# %% source_hidden=true
rows, of_one = [], exact(g, np.linalg.norm(g), 7)
for p in (1, 4, 16, 64):
    own = np.mean([qsgd(g, 7, np.random.default_rng(rank)) for rank in range(p)], axis=0)
    alike = np.mean([qsgd(g, 7, np.random.default_rng(0)) for rank in range(p)], axis=0)
    rows.append([p, *(f"{np.sum((mean - g) ** 2) / (g @ g):.3g}" for mean in (own, alike)), f"{of_one / p:.3g}"])
table(["nodes", "own seeds", "one seed for all", "error of one / p (formula)"], rows,
      "relative squared error of the mean, s = 7, one norm; measured")  # fmt: skip

# %% [markdown]
# With own seeds the errors average out like any noise. With one seed all nodes make the same error at once, and 64
# nodes are as wrong as one. minidl draws each node's random numbers from the seed *and* the rank.
#
# ## What the papers report
#
# **Alistarh et al. (2017)**, *QSGD* (arXiv:1610.02132), table 1: AlexNet with 4 bits reaches 60.05 % top-1 accuracy
# (59.50 % with 32 bits) and trains 2.05 times as fast; ResNet-152 with 8 bits 76.74 % (77.0 %) at 1.56 times; ResNet-50
# 74.76 % (74.68 %) at 1.26 times. They also find a border: 4 bits with buckets of 8,192 lose 0.68 points. **Wen
# et al. (2017)**, *TernGrad* (arXiv:1705.07878): no loss on AlexNet, less than 2 % on GoogLeNet on average. Three
# values are $\log_2 3$ bits:

# %% source_hidden=true
say(f"32 / log2(3) = {32 / np.log2(3):.1f} times fewer bits at best; minidl packs five values into a byte: "
    f"{32 / (8 / 5):.0f} times. The *speed-ups* in the papers are far smaller than the ratio of bits: when bytes "
    "become seconds is the question of 09g.")  # fmt: skip

# %% [markdown]
# ## To the exercises
#
# [Exercises of chapter 09](../exercises/09_gradient_compression/09_gradient_compression.ipynb): in one of them you
# write QSGD, given its random numbers. The check looks at the mean and at the variance.
#
# **Three questions to argue about**
#
# 1. Loss scaling multiplies by a power of two. Why not by 1,000?
# 2. With $s = 1$ a bucket of one number would have no error at all. What is wrong with that plan?
# 3. Rounding to nearest has the smaller error in every step and loses. Name another place in this course where a small
#    bias did more harm than a large noise.
#
# Next: [09e](09e_sign_and_memory.ipynb) goes down to one bit, the sign, which is biased.
