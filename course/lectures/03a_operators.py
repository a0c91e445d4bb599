# %% [markdown]
# # 03a. How does a network look at an image, or at a sentence, and how many multiplications does it take?
#
# *Read [01a](01a_backpropagation.ipynb) and [02a](02a_noisy_gradients.ipynb) first: gradients and training. Reading
# time: about 28 minutes. Figures are* measured *on the computer that ran this page, or come from a* formula.
#
# ## The question
#
# In most layers of chapters 01 and 02 every output reads every input, with a weight for each pair: a *linear layer*.
# Two famous networks could have used one. VGG-16 (2014) reads photographs of 224 x 224 pixels with 3 colours, and its
# first layer computes 64 numbers for every pixel. GPT-2 (2019) reads 1,024 *tokens* (words and parts of words), has 768
# numbers for each, and computes 768 new ones.

# %%
from course.interaction import bar, explore, guess, step_through, warm_up

warm_up()

# %% source_hidden=true
import time
from functools import partial

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from minidl import Tensor, data, depth, manual_seed, nn, optim
from minidl import functional as F
from minidl.functional import convolution_table
from minidl.kernels.counting_scalars import multiplications
from minidl.plots import lines, style
from minidl.plots.lines import Line, Panel

one_thread = threadpool_limits(1)  # so that the seconds of different algorithms can be compared
SIZES = {"VGG-16's first layer": (3 * 224**2, 64 * 224**2, 64 * 3 * 9 + 64),
         "an attention layer of GPT-2": (1024 * 768, 1024 * 768, 4 * 768**2 + 4 * 768)}  # fmt: skip
table(
    ["", "inputs", "outputs", "weights if linear", "in float32", "weights that it has"],
    [[name, f"{inputs:,}", f"{outputs:,}", f"{inputs * outputs:.1e}", f"{4 * inputs * outputs / 1e12:.1f} TB",
      f"**{has:,}**"] for name, (inputs, outputs, has) in SIZES.items()],
    "formula",
)  # fmt: skip

# %% [markdown]
# Terabytes for one layer. The real ones look differently: at an image through a small
# window that slides, at a sentence by asking which tokens fit together.
#
# ## An image: a window that slides
#
# A *convolution* computes each output from a small window of the image: it multiplies the pixels in the window by
# weights and adds up. The weights, a *filter*, are the same at every place, since an edge on the left looks like an
# edge on the right. An image has *channels*, such as its three colours. A filter reads a window of all channels, and
# its outputs at all places form one channel of the result, a *map*. With $N$ images, $C$ channels, $F$ filters and
# windows of $k \times k$ pixels:
#
# $$y_{n f i j} = \sum_{c < C} \sum_{a < k} \sum_{b < k} w_{f c a b}\; x_{n,\, c,\, i + a,\, j + b}$$
#
# That is seven loops:


# %%
def naive(x, w):
    """Convolve images (n, c, height, width) by filters (f, c, k, k)."""
    (n, c, height, width), (f, _, k, _) = x.shape, w.shape
    y = np.zeros((n, f, height - k + 1, width - k + 1), x.dtype)
    for image in range(n):
        for number in range(f):
            for i in range(y.shape[2]):
                for j in range(y.shape[3]):
                    for channel in range(c):
                        for a in range(k):
                            for b in range(k):
                                product = w[number, channel, a, b] * x[image, channel, i + a, j + b]
                                y[image, number, i, j] += product
    return y


# %% source_hidden=true
FILTERS = {"left to right": np.array([[-1.0, 0, 1]] * 3), "top to bottom": np.array([[-1.0, 0, 1]] * 3).T,
           "mean": np.full((3, 3), 1 / 9)}  # fmt: skip
letter = data.glyphs(n_train=26, n_test=26).test.x[[1]].astype(float)
maps = naive(letter, np.array(list(FILTERS.values()))[:, None])


@style.applied()
def row_of_images(images, names):
    figure, places = style.new_figure(7.5, 2.0, columns=len(images))
    for axes, image, name in zip(places, images, names, strict=True):
        axes.imshow(image, cmap="gray", vmin=-np.abs(image).max(), vmax=np.abs(image).max())
        axes.set_title(name, fontsize=9)
        axes.set_axis_off()
    style.label_source(figure, "measured")
    return figure


see(row_of_images([letter[0, 0], *maps[0]], ["a letter", *FILTERS]),
    "a letter of 28x28 pixels and three maps of 26x26; zero is mid-grey. The first filter subtracts the left column of "
    "its window from the right one: where the image becomes brighter from left to right the map is light, where it "
    "becomes darker, dark. The second does so from top to bottom.")  # fmt: skip

# %% [markdown]
# In a network the filters are learned weights. Two settings change the size of the maps.
# *Padding* puts zeros around the image, so that a map can be as large as the image. A *stride* of 2 moves the window
# by two pixels at a time: it computes a quarter of the outputs.
#
# With $o$ outputs a map, the loops multiply $N F o\, C k^2$ times.
#
# ## The same sums in three other ways
#
# **As a matrix product** (*im2col*). No operation multiplies faster than a matrix product (see 03b). So copy
# every window into a column of a matrix. The multiplications are the same, but the matrix has about $k^2$ times as
# many numbers as $x$.


# %%
def im2col(x, w):
    f, c, k, _ = w.shape
    windows = sliding_window_view(x, (k, k), axis=(2, 3))  # (n, c, rows, columns, k, k)
    n, _, rows, columns = windows.shape[:4]
    matrix = windows.transpose(0, 1, 4, 5, 2, 3).reshape(n, c * k * k, rows * columns)
    return (w.reshape(f, c * k * k) @ matrix).reshape(n, f, rows, columns)


# %% [markdown]
# A 3x3 window at 2x2 neighbouring places takes 4 times 9 = 36 multiplications. The four windows share pixels. Does
# that help?

# %%
guess_fewest = guess("How few multiplications are enough for these four outputs?", [12, 16, 24, 36])

# %% [markdown]
# **By waves** (*FFT*). The Fourier transform writes an image as a sum of waves, one complex number for each frequency.
# Sliding a filter over a wave gives the same wave, stronger or weaker and shifted: *one* product per frequency, however
# large the filter is. The fast Fourier transform itself takes about $P \log_2 P$ multiplications for $P$ pixels. Waves
# are periodic, so a window that sticks out sees the opposite side; the last line cuts these outputs off.


# %%
def fft(x, w):
    (height, width), k = x.shape[2:], w.shape[3]
    images, filters = np.fft.rfft2(x), np.fft.rfft2(w, (height, width)).conj()  # without conj, w is mirrored
    y = np.fft.irfft2(np.einsum("nchw,fchw->nfhw", images, filters), (height, width))
    return y[:, :, : height - k + 1, : width - k + 1]


# %% [markdown]
# **By shared products** (*Winograd*). First in one dimension: a window of three weights $g$ at two places of four
# inputs $d$. Six products, it seems. But four are enough:
#
# $$\begin{aligned} y_0 &= d_0 g_0 + d_1 g_1 + d_2 g_2 = m_0 + m_1 + m_2 \qquad m_0 = (d_0 - d_2)\, g_0
# \qquad m_1 = (d_1 + d_2)\, \tfrac{g_0 + g_1 + g_2}{2} \\
# y_1 &= d_1 g_0 + d_2 g_1 + d_3 g_2 = m_1 - m_2 - m_3 \qquad m_3 = (d_1 - d_3)\, g_2
# \qquad m_2 = (d_2 - d_1)\, \tfrac{g_0 - g_1 + g_2}{2} \end{aligned}$$
#
# Both outputs use $m_1$ and $m_2$. The sums are linear, so they are matrices: $B$ for inputs, $G$ for weights, $A$
# for products. Applied to the rows and then to the columns of a *tile* of 4x4 pixels, they give 2x2 outputs.

# %%
B = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
G = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]]) / 2
A = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])


def winograd(x, w):  # for even numbers of rows and columns in the result
    tiles = sliding_window_view(x, (4, 4), axis=(2, 3))[:, :, ::2, ::2]  # each shares two columns with the next
    products = np.einsum("ncyxij,fcij->nfyxij", B @ tiles @ B.T, G @ w @ G.T)
    n, f, rows, columns = products.shape[:4]
    return (A @ products @ A.T).swapaxes(3, 4).reshape(n, f, 2 * rows, 2 * columns)


# %% [markdown]
# Do they agree, with each other and with `F.conv2d(x, w, algorithm=...)` of minidl? And how often does each multiply?
# We run them on numbers that count products, except those with the signs and halves in $B$, $G$ and $A$.

# %% source_hidden=true
rng = np.random.default_rng(0)
images, filters = rng.normal(size=(2, 3, 10, 12)), rng.normal(size=(4, 3, 3, 3))
tile = [rng.normal(size=(1, 1, k, k)) for k in (4, 3)]


def products(algorithm, n, c, f, size, k, stride=1):
    """Multiplications for maps of (size / stride)² outputs, with padding."""
    if algorithm == "fft":  # transforms of real numbers, and a complex product (4 real ones) for each frequency
        N = (size + k - 1) ** 2
        return (n * c + c * f + n * f) * N * np.log2(N) + 4 * n * c * f * N / 2
    outputs = (size // stride) ** 2
    return n * c * f * outputs * (4 if algorithm == "winograd" else k**2)


WAYS = {"naive": naive, "im2col": im2col, "fft": fft, "winograd": winograd}
rows, counts = [], {}
for name, way in WAYS.items():
    off = np.abs(way(images, filters) - F.conv2d(images, filters, algorithm=name).numpy()).max()
    off = max(off, np.abs(way(images, filters) - naive(images, filters)).max())
    counts[name] = None if name == "fft" else multiplications(way, *tile)[0]
    rows.append([name, f"{off:.0e}", counts[name] or "", f"{products(name, 1, 64, 64, 56, 3) / 1e6:,.0f} million"])
table(["", "off from naive and minidl's by at most", "four outputs of a 3x3 window",
       "64 filters, 64 channels of 56x56, 3x3"], rows,
      "second column measured; third counted, which np.fft does not allow; last by formula; your guess: "
      f"{guess_fewest.against(counts['winograd'])}")  # fmt: skip

# %% [markdown]
# **Sixteen** products instead of thirty-six: four along the rows times four along the columns. (Winograd, 1980: in one
# dimension two outputs take at least four.) FFT takes more than the loops here: most of its multiplications transform
# the 64 · 64 windows of weights, padded to the size of the image. More images share these.

# %%
guess_speed = guess("3x3 windows, 256 channels of 14x14: how many times as fast as im2col is minidl's Winograd?")

# %% source_hidden=true
LAYERS = {(32, 16, 32): "16 channels of 32x32", (4, 256, 14): "256 channels of 14x14"}
panels, timings = [], convolution_table.timings()
for (n, c, size), title in LAYERS.items():
    ours = [row for row in timings if row[:3] == (n, c, size) and row.window > 1]
    series = []
    for name in ("im2col", "fft", "winograd"):
        points = [(row.window, 1e3 * row.seconds[name]) for row in ours if row.seconds[name] < np.inf]
        series.append(Line(name, *zip(*points, strict=True), "both"))
    panels.append(Panel(series, "window k", "forward and backward (ms)", title, log="y", xlim=(2, 16)))
deep = next(row for row in timings if (*row[:3], row.window) == (4, 256, 14, 3))
wide = next(row for row in timings if (*row[:3], row.window) == (32, 16, 32, 15))
many = next(row for row in timings if (*row[:3], row.window) == (4, 256, 14, 5))
figure = lines.draw(panels, source="measured")
for axes in figure.axes:
    axes.set_xticks([3, 5, 9, 15])
see(figure,
    "a convolution and its gradients by three algorithms, from minidl's table of measured times, by which "
    "`algorithm='auto'` chooses. The time of im2col grows faster with the window than that of FFT.")  # fmt: skip
as_fast = deep.seconds["im2col"] / deep.seconds["winograd"]
say(f"Your guess: {guess_speed.against(round(as_fast, 2))}. On the machine where the table was measured, Winograd is "
    f"**{as_fast:.2f} times** as fast, with {16 / 36:.0%} of the multiplications. With 15x15 windows over 16 channels "
    f"FFT is {wide.seconds['im2col'] / wide.seconds['fft']:.0f} times as fast as im2col; with 5x5 windows over 256 "
    f"channels im2col is {many.seconds['fft'] / many.seconds['im2col']:.0f} times as fast as FFT.")  # fmt: skip

# %% [markdown]
# Winograd's transforms add, and write and read memory: this takes time but no multiplications; [03b](03b_cost.ipynb) is
# about this gap. Turn window and stride. With 16 channels and filters instead of 256, there are fewer products for each
# transform:


# %% source_hidden=true
# measured: differs from run to run
def seconds(name, x, w, stride, padding):
    begun = time.perf_counter()
    F.conv2d(x, w, stride=stride, padding=padding, algorithm=name)
    return time.perf_counter() - begun


def cost(axes, window, stride):
    shapes = (4, 16, 32, 32), (16, 16, window, window)
    x, w = (Tensor(np.random.default_rng(1).normal(size=shape).astype(np.float32)) for shape in shapes)
    names = [name for name in WAYS if name != "winograd" or (window, stride) == (3, 1)]
    counted = {name: products(name, 4, 16, 16, 32, window, stride) for name in names}
    runs = [{name: seconds(name, x, w, stride, window // 2) for name in names} for _ in range(3)]
    took = {name: min(run[name] for run in runs) for name in names}
    for shift, values, label, hatch in ((-0.2, counted, "multiplications (formula)", "///"),
                                        (0.2, took, "seconds (measured)", "")):  # fmt: skip
        places = [list(WAYS).index(name) + shift for name in names]
        axes.bar(places, [values[name] / values["im2col"] for name in names], 0.4, label=label, hatch=hatch,
                 color=style.SERIES[5 if hatch else 0], **style.BORDER)  # fmt: skip
    axes.set_xticks(range(4), list(WAYS))
    axes.set(yscale="log", ylabel="relative to im2col")
    axes.legend(fontsize=7)


explore(
    cost,
    "multiplications and seconds of a forward pass, relative to im2col; 4 images, 16 channels and filters, 32x32 "
    "pixels. The larger the window, the fewer multiplications FFT takes relative to im2col. A stride of 2 saves im2col "
    "three quarters; FFT computes all outputs and drops these. minidl's Winograd is for 3x3 windows with "
    "stride 1. Where a full bar is higher than the hatched one, a multiplication takes longer than in im2col.",
    window=[3, 1, 5, 9, 15],
    stride=[1, 2],
    multiples=[{}, {"window": 15}, {"stride": 2}, {"window": 15, "stride": 2}],
    source=("formula", "measured"),
    height=3.0,
)

# %% [markdown]
# ## Backward is a convolution, too
#
# A pixel is in several windows: it adds to several outputs, to each with another weight of the filter. Its gradient
# adds up the gradients of these outputs, each times that weight (01a). So a window slides over the
# outputs' gradients, padded by zeros, and the filters are mirrored, with channels and filters swapped.

# %%
x, w = (Tensor(array, requires_grad=True) for array in (images, filters))
y = F.conv2d(x, w)
y_bar = rng.normal(size=y.shape)  # some gradient of the loss with respect to y
y.backward(y_bar)
padded, mirrored = np.pad(y_bar, ((0, 0), (0, 0), (2, 2), (2, 2))), filters[:, :, ::-1, ::-1].swapaxes(0, 1)
print(f"gradient of the images: off from minidl's by at most {np.abs(naive(padded, mirrored) - x.grad).max():.0e}")

# %% [markdown]
# The gradient of the filters is a convolution as well: of the images, with the outputs' gradient as the filter. By
# the loops, each of the two gradients takes as many multiplications as forward, not counting those by added zeros.
#
# ## How far does it see?
#
# An output of one layer sees 3x3 pixels. Convolutions are stacked, with nonlinear functions such as ReLU in between.
# How much of the image can an output of the last layer see? Its gradient tells: a pixel that it cannot see has
# gradient zero. *Pooling* replaces each 2x2 pixels of a map by their mean or maximum.


# %%
def seen(count, pooled):
    """The gradient of an output near the middle, after `count` convolutions, for an image of 64x64 pixels."""
    layers = []
    for _ in range(count):
        layers += [nn.Conv2d(1, 1, 3, padding=1), nn.AvgPool2d(2)] if pooled else [nn.Conv2d(1, 1, 3, padding=1)]
    net, x = nn.Sequential(*layers), Tensor(np.zeros((1, 1, 64, 64), np.float32), requires_grad=True)
    for parameter in net.parameters():
        nn.init.ones_(parameter)  # positive weights: no two paths cancel
    y = net(x)
    middle = (y.shape[2] - 1) // 2
    y[0, 0, middle, middle].backward()
    return x.grad[0, 0]


# %% source_hidden=true
def width_seen(count, pooled):
    return int((seen(count, pooled) > 0).any(axis=0).sum())


def draw_seen(axes, pooled, convolutions):
    field = seen(convolutions, pooled == "yes")
    axes.imshow(field / field.max(), cmap="gray_r", vmin=0, vmax=1)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.set_title(f"{width_seen(convolutions, pooled == 'yes')} pixels wide", fontsize=9)


explore(
    draw_seen,
    "the 64x64 pixels of an image, darker where one output near the middle reacts more. Each 3x3 convolution adds one "
    "pixel on each side. With a pooling after each, the steps of the next one are twice as wide.",
    convolutions=[4, 1, 2, 3, 5],
    pooled=["no", "yes"],
    multiples=[{"convolutions": 2}, {"convolutions": 4}, {"convolutions": 4, "pooled": "yes"}],
    source="measured",
    height=3.4,
    width=3.2,
)
enough = next(count for count in range(1, 31) if width_seen(count, False) >= 31)
say(f"L convolutions see 2L + 1 pixels: 31 pixels take **{enough}** of them. With pooling, 4 see "
    f"{width_seen(4, True)}, and each layer has a quarter of the outputs of the one before.")  # fmt: skip

# %% [markdown]
# Seeing far takes many layers, and these are hard to train: gradients shrink or grow from layer to layer
# ([02b](02b_starting_points.ipynb)). Two devices help. *Batch norm* shifts and scales every map so that it has mean 0
# and variance 1 over the minibatch. A *residual block* adds its input to its output, so that gradients have a path
# around it. Here are 64 convolutions with ReLU, from two usual distributions of first weights:


# %% source_hidden=true
class Residual(nn.Module):
    def __init__(self, inside):
        self.inside = inside

    def forward(self, x):
        return x + self.inside(x)


def growth(kind, he):
    """How many times as large as the last convolution's gradient the first one's is."""
    manual_seed(0)
    blocks = []
    for _ in range(64):
        norm = [] if kind == "plain" else [nn.BatchNorm2d(16)]
        block = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), *norm, nn.ReLU())
        blocks.append(Residual(block) if kind == "batch norm, residual" else block)
    net = nn.Sequential(*blocks)
    weights = [parameter for parameter in net.parameters() if parameter.ndim == 4]
    for weight in weights if he else []:
        nn.init.kaiming_normal_(weight, nonlinearity="relu")
    x, g = np.random.default_rng(1).normal(size=(2, 8, 16, 12, 12)).astype(np.float32)
    net(Tensor(x)).backward(g)
    first, last = (np.linalg.norm(weights[place].grad.astype(float)) for place in (0, -1))
    return first / last


table(["64 layers", "minidl's default weights", "He's weights"],
      [[kind, *(f"{growth(kind, he):.1g}" for he in (False, True))]
       for kind in ("plain", "batch norm", "batch norm, residual")],
      "measured: norm of the first layer's gradient relative to the last one's, before training")  # fmt: skip

# %% [markdown]
# In plain layers the gradient shrinks or not, depending on the first weights. With batch norm the first
# weights hardly matter, but gradients grow from the last layer to the first. With residual blocks as well,
# they have a similar size in all layers. So ResNet-50 has both.
#
# ## A sentence: look where it fits
#
# "The cat that had chased the dogs was tired." Who was? *cat*, six words before; in "The cat was tired", one. A window
# with fixed weights cannot know. *Attention* computes the weights from the content. Each position $t$ of a text has a
# vector. Three linear layers make three vectors of it: a *query* $q_t$ (what do I look for?), a *key* $k_t$ (by what
# can I be found?) and a *value* $v_t$ (what do I say?). The output at $t$ is a weighted mean of all values. A value has
# more weight if its key is more similar to the query, that is, if their scalar product, the *score*, is larger.
# *Softmax* makes weights of scores: their exponentials, divided by the sum of these. Three lines:


# %%
def attention(q, k, v):
    """q, k, v: (positions, d)."""
    scores = q @ k.T / np.sqrt(q.shape[-1])
    weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)  # every row sums to one
    return weights @ v, weights


# %% source_hidden=true
q, k, v = rng.normal(size=(3, 50, 64))
out, weights = attention(q, k, v)
off = np.abs(out - F.scaled_dot_product_attention(q, k, v).numpy()).max()
say(f"50 positions with 64 random numbers each: rows sum to one up to {np.abs(weights.sum(axis=-1) - 1).max():.0e}, "
    f"the output is `F.scaled_dot_product_attention`'s up to {off:.0e}. The largest weight of a row is "
    f"{weights.max(axis=-1).mean():.0%} on average; without the root it would be "
    f"{attention(8 * q, k, v)[1].max(axis=-1).mean():.0%}.")  # fmt: skip

# %% [markdown]
# Why the root? The scalar product of two vectors of $d$ random numbers with mean 0 and variance 1 has variance $d$.
# Softmax of such large numbers picks one position, and its gradient is nearly zero.
#
# A layer of a GPT adds two things. **Heads:** one row of weights gives one mean. So queries, keys and values (made by
# one layer, `c_attn`) are cut into slices, and each slice attends for itself; a last linear layer, `c_proj`, mixes
# them. **A causal mask:** a GPT predicts the next token at *every* position of a text at once. Position $t$ must not
# see later ones, which contain the answer. Their scores become $-\infty$, their weights 0.


# %%
def gpt_attention(x, c_attn, c_proj, heads, hidden_from=1):
    """Attention of one text x (t, h); a position does not see those that come `hidden_from` or more later."""
    t, h = x.shape
    q, k, v = c_attn(x).reshape(t, 3, heads, h // heads).transpose(1, 2, 0, 3)  # each (heads, t, h / heads)
    scores = q @ k.transpose(-1, -2) / np.sqrt(h // heads)
    later = np.triu(np.ones((t, t), bool), hidden_from)
    weights = F.softmax(F.where(later, -np.inf, scores), -1)
    return c_proj((weights @ v).transpose(1, 0, 2).reshape(t, h))


# %% source_hidden=true
manual_seed(0)
layer = nn.models.GPT(96, 32, n_layer=1, n_head=4, n_embd=64).double().transformer.h[0].attn
text = rng.normal(size=(12, 64))
ours = gpt_attention(Tensor(text), layer.c_attn, layer.c_proj, 4).numpy()
off = np.abs(ours - layer(Tensor(text[None])).numpy()).max() / np.abs(ours).max()
say(f"Off from the layer of minidl's GPT with the same weights: {off:.0e} of the largest output.")

# %% [markdown]
# ## Break it: a mask that is off by one
#
# A programmer writes `hidden_from=2`: a position sees one position too many. No error is raised.

# %%
guess_loss = guess("What happens to the training loss?", ["much lower", "about the same", "much higher"])


# %% source_hidden=true
def reach(hidden_from):
    """The size of the gradient of each output (a row) with respect to each input (a column)."""
    matrix = []
    for t in range(len(text)):
        x = Tensor(text, requires_grad=True)
        gpt_attention(x, layer.c_attn, layer.c_proj, 4, hidden_from)[t].sum().backward()
        matrix.append(np.linalg.norm(x.grad, axis=1))
    return np.array(matrix)


def draw_reach(axes, hidden_from):
    matrix = reach(hidden_from)
    axes.imshow(matrix > 0, cmap="gray_r", vmin=0, vmax=1.6)
    axes.set(xlabel="input at position", ylabel="output at position")
    axes.set(xticks=range(0, 12, 2), yticks=range(0, 12, 2))
    axes.set_title(f"{int((np.triu(matrix, 1) > 0).sum())} times a later input is seen", fontsize=9)


step_through(
    draw_reach,
    "dark where the gradient of an output with respect to an input is not zero. With hidden_from=1 everything right of "
    "the diagonal is exactly zero: no output depends on a later input. With 2, every output but the last sees the next "
    "input. With 12, all see all.",
    frames=[1, 2, 12],
    multiples=[1, 2, 12],
    name="hidden from",
    source="measured",
    height=3.4,
    width=3.2,
)


# %% source_hidden=true
# measured: differs from run to run
CONTEXT = 32
train, test = data.stdlib_text(CONTEXT, 1_000_000)


def windows(dataset, count, seed):
    """Windows of Python code, and the same one character later."""
    starts = np.random.default_rng(seed).integers(len(dataset.tokens) - CONTEXT - 1, size=count)
    places = starts[:, None] + np.arange(CONTEXT)
    return dataset.tokens[places], dataset.tokens[places + 1]


def off_by_one(attn, x):
    heads, sees = attn.heads(x), np.tril(np.ones((CONTEXT, CONTEXT), bool), 1)
    out = F.scaled_dot_product_attention(heads[0], heads[1], heads[2], sees)
    return attn.c_proj(out.transpose(1, 2).reshape(*x.shape))


def trained(steps, leaks=False):
    """A GPT of two layers that learns Python's standard library, character by character, and its last losses."""
    manual_seed(0)
    model = nn.models.GPT(len(train.classes), CONTEXT, n_layer=2, n_head=4, n_embd=64)
    for block in model.transformer.h if leaks else []:
        block.attn.forward = partial(off_by_one, block.attn)
    adam, losses = optim.AdamW(model.parameters(), lr=5e-3, betas=(0.9, 0.99), weight_decay=0.1), []
    for step in bar(range(steps), "learning Python"):
        adam.param_groups[0]["lr"] = 5e-3 * min(1, (step + 1) / 50) * (1 - 0.9 * step / steps)
        x, y = windows(train, 32, step)
        loss = F.cross_entropy(model(x).reshape(-1, len(train.classes)), y.reshape(-1))
        model.zero_grad()
        loss.backward()
        nn.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        losses.append(loss.item())
    return model.eval(), np.mean(losses[-10:])


def at_the_end(model):
    """The test loss where no later character is there to be seen: at the last position."""
    x, y = windows(test, 1000, 0)
    return F.cross_entropy(model(x)[:, -1], y[:, -1]).item()


rows, losses = [], {}
for name, leaks in (("right mask", False), ("off by one", True)):
    model, losses[name] = trained(150, leaks)
    rows.append([name, f"{losses[name]:.2f}", f"{at_the_end(model):.2f}"])
lower = losses["off by one"] < 0.7 * losses["right mask"]
table(["150 steps on Python code", "training loss", "test loss, last character"], rows,
      f"measured; your guess: {guess_loss.against('much lower' if lower else 'about the same')}")  # fmt: skip

# %% [markdown]
# The training loss is so low because the answer is in the input, and the layer learns to copy it. At the last
# position there is nothing to copy, and that is where a GPT writes. The gradients show the mistake before any
# training.
#
# ## What a trained head looks at
#
# The course's GPT with the right mask, trained anew for 500 steps. Try a line of your own in `LINE` (at most 32
# characters).

# %%
# measured: differs from run to run
LINE = "for name in names: print(name)\n"
gpt, loss = trained(500)
tokens = data.encode(LINE)  # one number for each character
looks = gpt.attention(tokens[None])[:, 0]  # (layers, heads, t, t)


# %% source_hidden=true
# measured: differs from run to run
def draw_head(axes, layer, head):
    letters = [{"\n": "\\n", " ": "_"}.get(letter, letter) for letter in data.decode(tokens)]
    axes.imshow(looks[layer - 1, head - 1], cmap="gray_r", vmin=0, vmax=1)
    axes.set_xticks(range(len(letters)), letters, fontsize=6)
    axes.set_yticks(range(len(letters)), letters, fontsize=6)
    axes.set(xlabel="looks at", ylabel="character")
    axes.set_title(f"previous character: {np.diag(looks[layer - 1, head - 1], -1).mean():.0%}", fontsize=9)


samples = gpt.attention(windows(test, 64, 1)[0])  # (layers, texts, heads, t, t)
previous = np.diagonal(samples, -1, 3, 4).mean(axis=(1, 3))
is_space = (windows(test, 64, 1)[0] == data.encode(" ")[0])[:, None, None]
spaces = (samples * is_space).sum(-1).mean(axis=(1, 3))
nearest, farthest = (np.unravel_index(place, previous.shape) for place in (previous.argmax(), previous.argmin()))
explore(
    draw_head,
    "a row for each character of the line: the darker a column, the more weight its character gets. Later ones "
    "are hidden. The title has the mean weight of the character just before, in this line.",
    layer=[1, 2],
    head=[1, 2, 3, 4],
    multiples=[{"layer": int(place[0]) + 1, "head": int(place[1]) + 1} for place in (nearest, farthest)],
    source="measured",
    height=4.6,
    width=4.6,
)
say(f"Training loss {loss:.2f}. Over 64 test texts, head {nearest[1] + 1} of layer {nearest[0] + 1} gives the previous "
    f"character {previous.max():.0%} of its weight, head {farthest[1] + 1} of layer {farthest[0] + 1} gives it "
    f"{previous.min():.0%}; equal weights would give it {(1 / np.arange(2, CONTEXT + 1)).mean():.0%}. Spaces, "
    f"{is_space.mean():.0%} of the characters, get {spaces[nearest]:.0%} and {spaces[farthest]:.0%}. Nobody told the "
    "heads what to look at: they learned it.")  # fmt: skip

# %% [markdown]
# ## What attention costs
#
# A GPT block of width $h$ has linear layers with $12 h^2$ weights: $4h^2$ around the heads, and $8h^2$ in a
# *feed-forward* network of two layers, which treats each position alone. They multiply $12 h^2$ times a position. The
# scores of a position with all $t$ positions, and its mean of $t$ values, take $th$ each.

# %%
guess_length = guess("GPT-2 has h = 768. From which length t on do scores and means take more than the linear layers?")

# %% source_hidden=true
LENGTHS, h = [64, 256, 1024, 4096, 16_384], 768
counted = []
for t in LENGTHS:
    count = nn.count(partial(nn.models.GPT, 50257, 2**14, 1), np.zeros((1, t), np.int64))
    counted.append(sum(layer.multiply_adds for layer in count.layers if layer.kind == "CausalSelfAttention") / t)
see(lines.draw([Panel([Line("linear layers, 12 h²", LENGTHS, [12 * h * h] * len(LENGTHS)),
                       Line("scores and means, 2th", LENGTHS, [2 * t * h for t in LENGTHS]),
                       Line("without hidden scores, th", LENGTHS, [t * h for t in LENGTHS]),
                       Line("minidl, counted", LENGTHS, counted, "points", 6)], "positions t",
                      "multiplications a position", "a block of GPT-2, h = 768", log="xy")],
               source=("formula", "measured")),
    "the linear layers cost the same for each position; scores and means grow with the length of the text. The causal "
    "mask hides half of the scores. In long texts minidl skips most of these.")  # fmt: skip
say(f"2th = 12h² at **t = 6h = {6 * h:,}** positions (your guess: {guess_length.against(6 * h)}), or twice that if "
    f"hidden scores are skipped. At GPT-2's 1,024 positions 2th is {1024 / 6 / h:.0%} of 12h².")  # fmt: skip

# %% [markdown]
# ## The older way: one after the other
#
# A *recurrent* network reads a text from left to right and keeps a state: $s_t = \tanh(W x_t + U s_{t-1})$. A position
# costs two products of a matrix and a vector, however long the text is: in a long text, recurrence needs fewer
# multiplications than attention. Why did attention replace it?


# %% source_hidden=true
def draw_order(axes, layer):
    for t in range(6):
        height = {"recurrence": t + 1}.get(layer, 1)
        sources = {"convolution": range(max(0, t - 1), min(6, t + 2)), "attention": range(t + 1), "recurrence": [t]}
        before = [(s, 0) for s in sources[layer]] + ([(t - 1, t)] if layer == "recurrence" and t else [])
        arrow = {"arrowstyle": "->", "shrinkA": 4, "shrinkB": 4, "lw": 0.8}
        for place in before:
            axes.annotate("", (t, height), place, arrowprops=arrow)
        axes.plot(t, 0, "s", color=style.SERIES[5])
        axes.plot(t, height, "o", color=style.SERIES[1])
    axes.set(xlabel="position", ylabel="earliest step", ylim=(-0.4, 6.5))


step_through(
    draw_order,
    "squares are inputs, circles outputs, at the height of the earliest step in which they can be computed. A "
    "convolution and attention compute all outputs in one step, on enough cores, a recurrence one in each step.",
    frames=["convolution", "attention", "recurrence"],
    multiples=["convolution", "attention", "recurrence"],
    name="layer",
    source="formula",
    height=3.0,
    width=3.2,
)

# %% [markdown]
# How many operations of minidl's layers must follow each other?

# %%
TEXTS = {t: Tensor(rng.normal(size=(t, 1, 8)).astype(np.float32)) for t in (4, 16, 64, 256)}
rnn, lstm, attend = nn.RNN(8, 8), nn.LSTM(8, 8), nn.MultiheadAttention(8, 2)
layers = {"RNN": rnn, "LSTM": lstm, "attention": lambda x: attend(x, x, x)}
depths = {name: [depth(layer(x)[0]) for x in TEXTS.values()] for name, layer in layers.items()}

# %% source_hidden=true
see(lines.draw([Panel([Line(name, list(TEXTS), values, "both") for name, values in depths.items()], "positions",
                      "operations on the longest path", "", log="xy")], source="measured"),
    "the depth of the graph that backpropagation walks (01a). It grows with the text for recurrent layers, not for "
    "attention. (An LSTM is a recurrence that learns what to forget. Its steps count as one operation each, "
    "those of the RNN as several: compare the slopes.)")  # fmt: skip
say(f"From 16 to 256 positions: {depths['RNN'][-1] / depths['RNN'][1]:.1f} times for the RNN, "
    f"{depths['attention'][-1] / depths['attention'][1]:.1f} for attention.")  # fmt: skip

# %% [markdown]
# Attention takes more multiplications, but those of one position do not wait for another's, so thousands of cores can
# share them. (A sum of $t$ numbers counts once here; on many cores it takes $\log_2 t$ rounds.)
#
# ## The architectures, counted

# %%
guess_weights = guess("AlexNet (2012) has 8 layers with weights, ResNet-50 (2015) has 50. Which has more weights?",
                      ["AlexNet", "ResNet-50"])  # fmt: skip

# %%
PHOTO = (1, 3, 224, 224)
MODELS = {
    "LeNet-5": (nn.models.LeNet, (1, 1, 28, 28)),
    "AlexNet": (nn.models.AlexNet, PHOTO),
    "VGG-16": (nn.models.VGG16, PHOTO),
    "ResNet-50": (partial(nn.models.ResNet, 50), PHOTO),
    "GPT-2": (nn.models.GPT, np.zeros((1, 1024), np.int64)),
    "GPT-3": (partial(nn.models.GPT, 50257, 2048, 96, 96, 12_288), np.zeros((1, 2048), np.int64)),
}
counts = {name: nn.count(model, x) for name, (model, x) in MODELS.items()}

# %% source_hidden=true
PAPERS = {"LeNet-5": "60,000; 340,908 connections", "AlexNet": "60 million", "VGG-16": "138 million; 15.3·10⁹",
          "ResNet-50": "3.8·10⁹", "GPT-2": "117 million", "GPT-3": "175 billion"}  # fmt: skip
rows = []
for name, count in counts.items():
    convolved = sum(layer.multiply_adds for layer in count.layers if layer.kind == "Conv2d")
    sizes = [f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.3g} MiB"
             for size in (count.parameter_bytes, count.activation_bytes)]  # fmt: skip
    rows.append([name, f"{count.parameters:,}", *sizes, f"{count.multiply_adds:.3g}",
                 f"{convolved / count.multiply_adds:.1%}", PAPERS[name]])  # fmt: skip
more = max(("AlexNet", "ResNet-50"), key=lambda name: counts[name].parameters)
table(["one image or text", "weights", "their memory", "kept for backward", "multiply-adds", "in convolutions",
       "papers"], rows, f"counted; last column published; your guess: {guess_weights.against(more)}")  # fmt: skip

# %% source_hidden=true
linear = sum(layer.parameters for layer in counts["AlexNet"].layers if layer.kind == "Linear")
vgg = sum(layer.multiply_adds for layer in counts["VGG-16"].layers if layer.kind == "Conv2d")
gpt3 = counts["GPT-3"].multiply_adds / 2048
say(f"**AlexNet**: {linear / counts['AlexNet'].parameters:.0%} of its weights are in three linear layers at the end. "
    "ResNet-50 takes the mean of each map there, and has one linear layer. "
    f"**GPT-3**: {gpt3 / 1e9:.0f} billion multiply-adds a token. Each is two operations, backward takes twice those of "
    f"forward (01a), and training read 300 billion tokens: {6 * gpt3 * 3e11:.2e} operations. The paper has 3.14e+23, "
    "without scores and means.")  # fmt: skip

# %% [markdown]
# ## What the papers report
#
# The last column has the papers' figures; the differences have reasons. **LeCun et al. (1998)**, section II.B: not
# every map of the second convolution reads every map of the first. **Krizhevsky et al. (2012)** divided AlexNet
# between two GPUs that read only some of each other's maps; ours is the later version for one. **He et al. (2015)**,
# arXiv:1512.03385, table 1 and section 4.1, count multiply-adds under the name FLOPs. Ours has the strides of 2 in
# the 3x3 convolutions, as most libraries do, which costs a little more. They give 15.3 billion for VGG-16:

# %% source_hidden=true
say(f"our convolutions alone have {vgg / 1e9:.2f} billion, all layers {counts['VGG-16'].multiply_adds / 1e9:.2f}.")

# %% [markdown]
# **Radford et al. (2019)** print 117 million for the smallest GPT-2, which their repository's README calls an error.
# **Brown et al. (2020)**, arXiv:2005.14165, table D.1, have the operations of GPT-3. **Lavin and Gray (2015)**,
# arXiv:1509.09308, made Winograd's products fast on a GPU. **Vaswani et al. (2017)**, arXiv:1706.03762, table 1, give
# the operations that must follow each other as a reason for attention.
#
# ## The answer so far
#
# A network looks at an image through small windows with shared weights. That takes $N F o\,C k^2$ multiplications; for
# 2x2 outputs of a 3x3 window 16 instead of 36 are enough, and by FFT their number hardly depends on the window. Depth
# and pooling let it see the whole image; batch norm and residual blocks keep gradients of a similar size in all layers.
# It looks at a sentence by comparing every position with every other. That takes $2th$ multiplications a position,
# besides $12h^2$ for the linear layers of a block, and no position waits for another.
#
# ## To the exercises
#
# [Exercises of chapter 03](../exercises/03_operators/03_operators.ipynb): after this page you can write `im2col` and
# `winograd`.
#
# **Three questions to argue about**
#
# 1. Two 3x3 convolutions see as far as one of 5x5. Which has fewer weights and multiplications? What else differs?
# 2. Is a convolution a linear layer with some weights set to zero and others equal? What can it not compute?
# 3. A text has a million positions. What would you take from the convolution, and what from the recurrence?
#
# Next: [03b. Where do the seconds go?](03b_cost.ipynb)
