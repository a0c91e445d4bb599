# %% [markdown]
# # Parallel convolution: exercises
#
# The lectures: [12a](../../notebooks/12a_halos.ipynb), halos; and
# [12b](../../notebooks/12b_channels_and_filters.ipynb), channels and filters, and which division suits which layer. In
# this notebook you count the bytes that a division of a convolution costs. You exchange halos between ranks that share
# an image. You compute the gradients of a convolution over slabs. Then you divide a convolution by its channels.
#
# **How it works.** Replace `raise NotImplementedError(...)` by your code. Run the cell, then the check below it, as
# often as you like. A check says what it called, what it expected and what it got, and gives points for parts.
# `check.hint("halo_exchange")` prints a hint; the same call again prints the next one. Functions with an argument
# `comm` run on simulated ranks, in processes of their own. Arrays that a function is given stay as they are. For
# grading, the same checks are made with other numbers. There are 20 points in all. The exercises can be done in any
# order.

# %% given="setup"
import numpy as np

from course.checks import parallel_convolution as check

# %% [markdown]
# A convolution has an input x of N samples, C channels, H rows and W columns, an array of shape (N, C, H, W). Its
# weights w have the shape (F, C, K, K): F filters, each with a kernel of K rows and K columns. The input is padded with
# `padding` rows and columns of zeros on all four sides. The kernel moves on by `stride` rows or columns. So the output
# y has the shape (N, F, OH, OW), with OH = `output_size(H, K, stride, padding)`. Its row i is computed from K rows of
# the input: rows i · stride - padding to i · stride - padding + K - 1. Those below 0 or above H - 1 are rows of zeros.
#
# p ranks divide n rows (or columns, channels, filters) as `np.array_split` does: rank i has those from `start` to
# `stop` - 1, with `start, stop = span(n, p, i)`. The rows of the input and those of the output are divided in this way,
# each for themselves.
#
# These functions are given: `span`, `output_size`, and a convolution of an array that is padded already, with its two
# gradients.


# %% given="convolution"
def span(n, p, i):
    """Where share i of n things begins and ends, of p shares: (start, stop)."""
    each, longer = divmod(n, p)
    start = i * each + min(i, longer)
    return start, start + each + (i < longer)


def output_size(n, kernel, stride, padding):
    """The rows of the output for n rows of the input."""
    return (n + 2 * padding - kernel) // stride + 1


def windows(patch, kernel, stride):
    """The windows of the kernel on a padded array, of shape (N, C, rows of y, columns of y, K, K)."""
    return np.lib.stride_tricks.sliding_window_view(patch, (kernel, kernel), axis=(2, 3))[:, :, ::stride, ::stride]


def convolve(patch, w, stride):
    """The convolution of a padded array of shape (N, C, rows, columns) with w: (N, F, rows of y, columns of y)."""
    return np.einsum("nchwij,fcij->nfhw", windows(patch, w.shape[2], stride), w, optimize=True)


def weights_gradient(patch, g, kernel, stride):
    """The gradient with respect to w of `convolve(patch, w, stride)`; g: that with respect to its result."""
    return np.einsum("nchwij,nfhw->fcij", windows(patch, kernel, stride), g, optimize=True)


def patch_gradient(patch, w, g, stride):
    """The gradient with respect to patch of `convolve(patch, w, stride)`; g: that with respect to its result."""
    result = np.zeros(patch.shape)
    rows, columns = ((size - 1) * stride + 1 for size in g.shape[2:])
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            part = np.einsum("nfhw,fc->nchw", g, w[:, :, i, j])
            result[:, :, i : i + rows : stride, j : j + columns : stride] += part
    return result


# %% [markdown]
# ## 1. The bytes of a division (4 points)
# A layer can be divided in three ways:
#
# - *Tiles*: the ranks form a grid of h rows and w columns. Rank r is in row r // w and column r % w of the grid. It has
#   the rows of the image that belong to its row of the grid, and the columns that belong to its column. Of the output
#   it computes a tile in the same way. With w = 1 the tiles are called *slabs*. For its tile of the output, a rank also
#   needs pixels around its tile of the input: its *halo*.
# - *Channels*: each of p ranks has some channels of x and the weights for these. Its product with them is a partial sum
#   of all of y. A reduce-scatter adds up the partial sums and gives each rank some channels of y. In the backward, an
#   all-gather brings every rank the gradient of whole y.
# - *Filters*: each of p ranks has some channels of x, and some filters with the weights for all channels. An all-gather
#   brings every rank whole x. In the backward, a reduce-scatter adds up the gradients of x.
#
# In a reduce-scatter or an all-gather of n numbers, all p ranks together send (p - 1) n numbers; in an all-reduce they
# send 2 (p - 1) n.


# %% solution="bytes_of_a_cut"
def bytes_of_a_cut(sizes, kernel, stride, padding, cut):
    """Return the bytes that all ranks together send for one layer in one step, a pair (forward, backward).

    sizes: (N, C, H, W, F), integers. kernel: K, from 1 on. stride: from 1 on. padding: from 0 on. A number has 4 bytes.
    cut: ("tiles", h, w), ("channels", p) or ("filters", p). Every tile has at least one pixel of y.
    Tiles, forward: a rank's rows of y use rows of the image from a first to a last one, and its columns of y columns
        from a first to a last one. It needs all C channels of the pixels in this rectangle. Those of the image that are
        in other ranks' tiles are sent to it, each once: beside it, above and below, and at the corners. Zeros of the
        padding are not sent.
    Tiles, backward: the gradients of these pixels go back, as many numbers. Then the gradients of all weights and of
        the bias, F numbers, are summed by an all-reduce.
    Channels and filters: the reduce-scatter and the all-gather of the text above. The gradients of the weights and of
        the bias stay where they are.

    Example: N = 1, C = 3, H = W = 8, F = 2, K = 3, stride 1, padding 1. On two slabs, each rank gets one row of the
        other: 2 · 3 · 8 numbers, 192 bytes. The backward sends these again, and 2 · (2 · 3 · 3 · 3 + 2) numbers: 640
        bytes. So bytes_of_a_cut((1, 3, 8, 8, 2), 3, 1, 1, ("tiles", 2, 1)) is (192, 640). With ("channels", 2) it is
        (512, 512): y has 128 numbers. With ("filters", 2) it is (768, 768).
    """
    ### BEGIN SOLUTION
    N, C, H, W, F = sizes
    kind, *grid = cut
    if kind == "channels":
        OH, OW = (output_size(n, kernel, stride, padding) for n in (H, W))
        words = (grid[0] - 1) * N * F * OH * OW
        return 4 * words, 4 * words
    if kind == "filters":
        words = (grid[0] - 1) * N * C * H * W
        return 4 * words, 4 * words

    def lines(n, p):
        """For each of p ranks: the lines of the image that it needs, and how many of them it has."""
        for i in range(p):
            first, stop = span(output_size(n, kernel, stride, padding), p, i)
            start, end = max(first * stride - padding, 0), min((stop - 1) * stride - padding + kernel, n)
            own = span(n, p, i)
            yield max(end - start, 0), max(min(end, own[1]) - max(start, own[0]), 0)

    h, w = grid
    pixels = sum(
        rows * columns - own_rows * own_columns
        for rows, own_rows in lines(H, h)
        for columns, own_columns in lines(W, w)
    )
    halo = N * C * pixels
    return 4 * halo, 4 * (halo + 2 * (h * w - 1) * (F * C * kernel**2 + F))
    ### END SOLUTION


# %% test="bytes_of_a_cut" points=4
check.bytes_of_a_cut(bytes_of_a_cut)
### BEGIN HIDDEN TESTS
# kept: slabs, tiles
check.bytes_of_a_cut(
    bytes_of_a_cut,
    slabs=[
        (3, 5, 14, 9, 4, 3, 1, 1, 3, 1),
        (2, 3, 21, 10, 6, 7, 1, 3, 3, 1),
        (2, 6, 29, 11, 3, 5, 2, 2, 3, 1),
        (1, 3, 12, 7, 5, 1, 1, 0, 4, 1),
        (2, 2, 25, 6, 3, 3, 1, 0, 5, 1),
        (1, 4, 13, 5, 3, 2, 3, 0, 2, 1),
        (3, 4, 12, 6, 7, 5, 1, 2, 6, 1),
        (2, 3, 9, 6, 4, 3, 1, 1, 1, 1),
        (2, 3, 12, 6, 5, 4, 2, 1, 4, 1),
        (2, 3, 17, 4, 2, 1, 3, 1, 4, 1),
    ],
    tiles=[
        (3, 2, 11, 14, 5, 3, 1, 1, 2, 3),
        (2, 3, 15, 13, 4, 5, 2, 2, 3, 2),
        (1, 5, 13, 12, 3, 3, 1, 0, 3, 3),
        (2, 2, 12, 17, 3, 7, 1, 3, 1, 4),
        (2, 3, 18, 15, 6, 4, 3, 1, 2, 2),
    ],
    groups=[(2, 6, 11, 9, 8, 3, 2, 1, 3), (3, 7, 8, 5, 4, 5, 1, 0, 5), (1, 3, 6, 7, 9, 1, 1, 0, 1)],
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. The halo (6 points)
# Before a convolution on tiles, each rank collects the pixels that its part of the output needs, in an array called its
# *patch*. Then `convolve(patch, w, stride)` is exactly its tile of y: the patch is padded already. Where the patch goes
# beyond the image, it has zeros. Where it goes beyond the rank's own tile, it has the pixels of other ranks.
#
# A corner of the halo belongs to a rank that is diagonally opposite. No message need go there: if the ranks exchange
# rows first, and then columns of the longer arrays, the corners come along in the second phase.


# %% solution="halo_exchange"
def halo_exchange(comm, x, grid, size, kernel, stride, padding):
    """Return this rank's patch: the pixels that its tile of the output is computed from.

    x: this rank's tile of the input, of shape (N, C, own rows, own columns). grid: (h, w), with h w = comm.size. size:
        (H, W), rows and columns of the whole image. kernel, stride, padding: as in exercise 1.
    Division: rank r is in row r // w and column r % w of the grid. In row i it has the rows span(H, h, i) of the
        input, and the rows span(OH, h, i) of the output, at least one; likewise the columns. All pixels that it needs
        are in its own tile, or in one of the up to eight tiles around it.
    Returns: an array of shape (N, C, (rows of its tile of y - 1) stride + K, (columns of this tile - 1) stride + K).
        Its first row is row `first` · stride - padding of the image, where `first` is this rank's first row of the
        output; likewise its first column. It is zero outside the image.
    Messages: comm.send, recv, sendrecv, isend and irecv only; isend and irecv are waited for. A rank sends at most one
        message to each of the up to four ranks above, below, left and right of it, and none to others. Its patch has m
        columns and n rows, or as many as x if x has more. Inside the image, a of its rows belong to other rows of the
        grid, and b of its columns to other columns. It receives at most N C (a m + n b) numbers.
    Time: messages may be long, so that comm.send waits until the receiver takes them. However many ranks there are, at
        most four messages are sent one after the other on slabs, and at most eight on a grid.

    Example: H = W = 4, N = C = 1, K = 3, stride 1 and padding 1 on a grid of 2 times 1. Rank 0 has rows 0 and 1. Its
        patch has four rows and six columns: a row of zeros, its two rows and row 2, which rank 1 sends, each with a
        zero at both ends.
    """
    ### BEGIN SOLUTION
    place = divmod(comm.rank, grid[1])
    for axis, neighbour in ((2, grid[1]), (3, 1)):  # rows, then columns; a rank's neighbour is this many ranks away
        i, p, n = place[axis - 2], grid[axis - 2], size[axis - 2]

        def needed(k, p=p, n=n):
            first, stop = span(output_size(n, kernel, stride, padding), p, k)
            return first * stride - padding, (stop - 1) * stride - padding + kernel

        begin, end = span(n, p, i)
        start, stop = needed(i)
        lines = np.moveaxis(x, axis, 0)
        patch = np.zeros((stop - start, *lines.shape[1:]))
        low, high = max(start, begin), min(stop, end)
        patch[max(low - start, 0) : max(high - start, 0)] = lines[low - begin : max(high, low) - begin]
        sends, receives = [], []
        for k in (i - 1, i + 1):
            if 0 <= k < p:
                theirs, other = needed(k), span(n, p, k)
                low, high = max(theirs[0], begin), min(theirs[1], end)
                if low < high:
                    rows = np.ascontiguousarray(lines[low - begin : high - begin])
                    sends.append(comm.isend(rows, comm.rank + (k - i) * neighbour))
                low, high = max(start, other[0]), min(stop, other[1])
                if low < high:
                    receives.append((low, high, comm.irecv(comm.rank + (k - i) * neighbour)))
        for low, high, work in receives:
            patch[low - start : high - start] = work.wait()
        for work in sends:
            work.wait()
        x = np.moveaxis(patch, 0, axis)
    return np.ascontiguousarray(x)
    ### END SOLUTION


# %% test="halo_exchange" points=6
check.halo_exchange(halo_exchange)
### BEGIN HIDDEN TESTS
# kept: slabs, grids, long
check.halo_exchange(
    halo_exchange,
    slabs=[
        (3, 1, 2, 3, 11, 6, 3, 1, 1),
        (2, 1, 1, 2, 13, 7, 5, 1, 2),
        (3, 1, 2, 2, 19, 5, 5, 2, 2),
        (4, 1, 1, 2, 14, 6, 1, 1, 0),
        (3, 1, 2, 1, 16, 6, 4, 1, 0),
        (4, 1, 1, 2, 17, 6, 1, 3, 1),
        (2, 1, 1, 2, 12, 7, 2, 3, 1),
        (3, 1, 1, 2, 20, 9, 2, 3, 0),
        (1, 1, 1, 2, 6, 5, 3, 2, 1),
    ],
    grids=[
        (2, 3, 2, 2, 9, 13, 3, 1, 1),
        (3, 2, 1, 2, 17, 10, 5, 2, 2),
        (2, 2, 1, 3, 11, 8, 4, 1, 0),
        (1, 4, 2, 1, 5, 14, 3, 1, 1),
        (3, 3, 1, 1, 12, 14, 5, 1, 2),
    ],
    long=[(8, 1, 1, 3, 17, 2803, 3, 1, 1), (2, 2, 36, 35, 11, 14, 3, 1, 1)],
    seed=71,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. The gradients over slabs (5 points)
# On slabs, each rank has the patch of exercise 2, all weights, and the gradient of the loss with respect to its rows of
# y. Two things are missing for the gradients of the layer. Each rank has only some of the pixels at which the weights
# were used. And a row of the halo belongs to a neighbour: its gradient has to go back there.


# %% solution="weight_gradient"
def weight_gradient(comm, patch, w, g, H, W, stride, padding):
    """Compute the backward of a convolution with a bias whose images are divided into slabs.

    patch: this rank's patch, what exercise 2 returns on a grid of comm.size times 1. w: the weights, whole, of shape
        (F, C, K, K). g: the gradient of the loss with respect to this rank's rows of y, of shape (N, F, own rows of y,
        OW). H, W: rows and columns of the whole image. stride, padding: as in exercise 1.
    Division: rank i has the rows span(H, p, i) of the input and span(OH, p, i) of the output, at least one. All rows
        that it needs are its own or those of ranks i - 1 and i + 1.
    Returns: (gx, gw, gb), arrays. gx: the gradient with respect to this rank's rows of the input, of shape (N, C, own
        rows, W). gw: that with respect to w, whole, of the shape of w. gb: that with respect to the bias, whole, of
        shape (F,). The loss is a sum over all samples and pixels, so gradients are sums, too.
    Messages: one or two all-reduces, of F C K K + F words together. Besides, at most one message to rank i - 1 and at
        most one to rank i + 1, with the gradients of those pixels of the patch that belong to this rank: N C W words
        for each of their rows. Columns outside the image are not sent. isend and irecv are waited for. Messages may be
        long, so that comm.send waits until the receiver takes them. Other communication is not allowed.

    Example: on one rank, gx is patch_gradient(patch, w, g, stride) without the padding, gw is weights_gradient(patch,
        g, K, stride), and gb is g.sum(axis=(0, 2, 3)).
    """
    ### BEGIN SOLUTION
    F, _, K, _ = w.shape
    p, i = comm.size, comm.rank

    def needed(k):
        first, stop = span(output_size(H, K, stride, padding), p, k)
        return first * stride - padding, (stop - 1) * stride - padding + K

    whole = patch_gradient(patch, w, g, stride)[:, :, :, padding : padding + W]
    start, end = needed(i)
    own = span(H, p, i)
    gx = np.zeros((*patch.shape[:2], own[1] - own[0], W))
    low, high = max(start, own[0]), min(end, own[1])
    gx[:, :, low - own[0] : high - own[0], : whole.shape[3]] = whole[:, :, low - start : high - start]
    sends, receives = [], []
    for k in (i - 1, i + 1):
        if 0 <= k < p:
            other, theirs = span(H, p, k), needed(k)
            low, high = max(start, other[0]), min(end, other[1])
            if low < high:
                sends.append(comm.isend(np.ascontiguousarray(whole[:, :, low - start : high - start]), k))
            low, high = max(theirs[0], own[0]), min(theirs[1], own[1])
            if low < high:
                receives.append((low - own[0], high - own[0], comm.irecv(k)))
    for low, high, work in receives:
        gx[:, :, low:high, : whole.shape[3]] += work.wait()
    for work in sends:
        work.wait()
    sums = np.concatenate([weights_gradient(patch, g, K, stride).ravel(), g.sum(axis=(0, 2, 3))])
    comm.all_reduce(sums)
    return gx, sums[:-F].reshape(w.shape), sums[-F:]
    ### END SOLUTION


# %% test="weight_gradient" points=5
check.weight_gradient(weight_gradient)
### BEGIN HIDDEN TESTS
# kept: cases
check.weight_gradient(
    weight_gradient,
    cases=[
        (3, 2, 3, 11, 6, 4, 3, 1, 1),
        (2, 1, 2, 13, 7, 3, 5, 1, 2),
        (3, 2, 2, 19, 8, 3, 5, 2, 2),
        (4, 1, 3, 14, 6, 2, 1, 1, 0),
        (3, 2, 1, 16, 6, 3, 4, 1, 0),
        (2, 1, 2, 12, 7, 3, 2, 3, 1),
        (3, 2, 1, 20, 9, 2, 2, 3, 0),
        (1, 1, 2, 6, 5, 3, 3, 2, 1),
        (2, 1, 2, 6, 4400, 2, 3, 1, 1),
    ],
    seed=72,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. Stationary x (3 points)
# Divided by channels, a convolution leaves x where it is: every rank multiplies its own channels with the weights for
# them. The bias belongs to the filters.


# %% solution="stationary_x"
def stationary_x(comm, x, w, b, stride, padding):
    """Compute the forward of a convolution that is divided by channels, this rank's channels of the output.

    x: this rank's channels of the input, not padded, of shape (N, own, H, W): `own`, from 1 on, may differ from rank to
        rank. w: the weights for these channels, of shape (F, own, K, K). b: the bias, whole, of shape (F,).
    Returns: the channels span(F, p, rank) of y = convolution of whole x + b, an array of shape (N, these channels, OH,
        OW). F may be less than p: then some ranks have none.
    Cost: one reduce-scatter of N F OH OW words. comm.reduce_scatter(array) adds up the arrays of all ranks, and returns
        share span(n, p, rank) of the n items along the first axis of the sum. Other communication is not allowed.

    Example: on one rank it returns the convolution of x, padded with zeros, with w, plus b[:, None, None].
    """
    ### BEGIN SOLUTION
    around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    partial = convolve(np.pad(x, around), w, stride)
    y = np.moveaxis(comm.reduce_scatter(np.ascontiguousarray(np.moveaxis(partial, 1, 0))), 0, 1)
    start, stop = span(len(b), comm.size, comm.rank)
    return y + b[start:stop, None, None]
    ### END SOLUTION


# %% test="stationary_x" points=3
check.stationary_x(stationary_x)
### BEGIN HIDDEN TESTS
# kept: cases
check.stationary_x(
    stationary_x,
    cases=[
        (2, 3, 5, 7, 6, 6, 3, 1, 1),
        (3, 2, 7, 6, 8, 5, 5, 2, 2),
        (3, 2, 4, 5, 7, 7, 1, 1, 0),
        (4, 1, 6, 3, 6, 8, 2, 3, 1),
        (1, 2, 3, 4, 5, 6, 3, 1, 0),
        (2, 1, 3, 5, 30, 31, 3, 1, 1),
    ],
    seed=73,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 5. In a few sentences (2 points, graded by hand)
# A network for images has two layers with a kernel of 3 x 3, stride 1 and padding 1, and as many filters as channels.
# The first has 64 channels and images of 224 x 224 pixels, the last 512 channels and images of 7 x 7. Four ranks share
# each sample. Which of the three divisions sends the fewest bytes in which layer, forward and backward together, with
# one sample and with 32 samples? Why does a kernel of 1 x 1 change the comparison?

# %% [markdown] manual="which_division" points=2
# The halo of slabs grows with the width of the image and the channels, and the other two divisions with all pixels. On
# four slabs, the first layer sends 2 · 3 rows of 224 · 64 numbers for each sample, 86 016, and again in the backward;
# its 36 928 weights and biases are summed once a step, 221 568 numbers. By channels or filters 9.6 million numbers are
# sent for each sample, forward and backward each. So the first layer is divided into slabs or tiles, with one sample
# and with 32 (1 point).
#
# In the last layer, the 2.4 million weights of slabs are summed, 14 million numbers a step, whatever the number of
# samples is. By channels or filters 75 264 numbers are sent for each sample, forward and backward each: 150 528 with
# one sample, 4.8 million with 32. So it is divided by channels or filters; from 132 samples on, slabs would send less,
# but seven rows on four ranks are divided badly. A kernel of 1 x 1 with stride 1 has no halo: the forward of slabs
# sends nothing, and there is a ninth of the weights to be summed. That favours slabs, where the image has enough rows
# (1 point).
