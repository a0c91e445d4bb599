# %% [markdown]
# # Operators and what they cost: exercises
#
# The lectures: [03a](../../notebooks/03a_operators.ipynb), convolution, attention and recurrence;
# [03b](../../notebooks/03b_cost.ipynb), seconds, bytes and workspace; and [03c](../../notebooks/03c_compiler.ipynb),
# a compiler. In this notebook you compute a convolution as one matrix product, and filter a signal with a third fewer
# multiplications. You divide a batch into micro-batches that fit into a limited memory. You write a pass of a
# compiler, which lets several operations share one loop.
#
# **How it works.** Replace `raise NotImplementedError(...)` by your code. Run the cell, then the check below it, as
# often as you like. A check says what it called, what it expected and what it got, and gives points for parts.
# `check.hint("im2col")` prints a hint; the same call again prints the next one. Lists and arrays that a function is
# given stay as they are. For grading, the same checks are made with other numbers. There are 20 points in all. The
# exercises can be done in any order.

# %% given="setup"
import numpy as np

from course.checks import operators as check

# %% [markdown]
# ## 1. A convolution as one matrix product (4 points)
# A convolution slides F filters over N images of C channels. At each place it multiplies a patch of the image by the
# weights of a filter, number by number, and adds up the products. A matrix product does the same with a row of one
# matrix and a column of another. So write each filter as a row and each patch as a column, and the fast product of a
# library does the rest. The price is memory: neighbouring patches overlap, so a number of the image stands in several
# columns.


# %% solution="im2col"
def im2col(x, w, stride, padding, product):
    """Return the convolution of the images x with the filters w, computed as one matrix product.

    x: the images, an array of shape (N, C, H, W), of float64 or float32. N: from 0 on; C, H, W: from 1 on.
    w: the filters, an array of shape (F, C, R, S), of the type of x. All its axes have a length from 1 on.
    stride: a whole number from 1 on, rows or columns between neighbouring patches.
    padding: a whole number from 0 on, rows and columns of zeros around each image, on each of its four sides.
        R <= H + 2 padding and S <= W + 2 padding.
    product: product(A, B) returns the matrix product of two arrays with two axes each. Call it once, with
        A: shape (F, C R S). Row f has the weights of filter f in the order (c, r, s): s runs fastest.
        B: shape (C R S, N H' W'), of the type of x. A column has the numbers of a patch, also in the order (c, r, s).
            The columns are in the order (n, i, j) of images, rows and columns of the result: j runs fastest.
    Returns: an array y of shape (N, F, H', W'), with H' = (H + 2 padding - R) // stride + 1 and
        W' = (W + 2 padding - S) // stride + 1. If X are the images with zeros around them, y[n, f, i, j] is
        the sum over c, r and s of w[f, c, r, s] X[n, c, i stride + r, j stride + s]. The numbers of y are those of
        the product, to the bit: neither more nor fewer were computed.
    Python: the number of lines that are executed does not depend on N, H and W. Loops over c, r and s are allowed,
        loops over images, rows or pixels are not.

    Example: x of shape (1, 1, 2, 3) has the rows [1, 2, 3] and [4, 5, 6], and w of shape (1, 1, 2, 2) the rows
        [1, 0] and [0, 10]. Stride 1 and padding 0 give A = [[1, 0, 0, 10]], B with the columns [1, 2, 4, 5] and
        [2, 3, 5, 6], and y = [[[[51, 62]]]].
    """
    ### BEGIN SOLUTION
    N, C, H, W = x.shape
    F, _, R, S = w.shape
    padded = np.zeros((N, C, H + 2 * padding, W + 2 * padding), x.dtype)
    padded[:, :, padding : padding + H, padding : padding + W] = x
    height, width = (H + 2 * padding - R) // stride + 1, (W + 2 * padding - S) // stride + 1
    B = np.zeros((C, R, S, N, height, width), x.dtype)
    for r in range(R):
        for s in range(S):
            at_rs = padded[:, :, r : r + stride * height : stride, s : s + stride * width : stride]
            B[:, r, s] = at_rs.transpose(1, 0, 2, 3)
    y = product(w.reshape(F, C * R * S), B.reshape(C * R * S, N * height * width))
    return y.reshape(F, N, height, width).transpose(1, 0, 2, 3)
    ### END SOLUTION


# %% test="im2col" points=4
check.im2col(im2col)
### BEGIN HIDDEN TESTS
check.im2col(
    im2col,
    cases=[
        (2, 4, 6, 9, 3, 2, 3, 1, 0),
        (1, 1, 4, 4, 1, 3, 3, 1, 1),
        (2, 3, 9, 7, 5, 3, 2, 2, 3),
        (3, 1, 3, 5, 2, 1, 1, 2, 1),
        (1, 3, 2, 1, 2, 5, 4, 1, 3),
        (0, 3, 5, 4, 2, 3, 2, 1, 1),
        (4, 3, 4, 5, 1, 4, 3, 3, 0),
        (1, 2, 85, 76, 3, 4, 5, 2, 2),
    ],
    simple=(1, 3, 5, 7, 1, 3, 2, 1, 0),
    large=((1, 3, 7, 9, 2, 2, 3, 2, 1), (11, 3, 39, 46, 2, 2, 3, 2, 1)),
    seed=31,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. Fewer multiplications (4 points)
# A filter of three weights gives y[i] = w[0] x[i] + w[1] x[i + 1] + w[2] x[i + 2]. Two neighbouring outputs need four
# numbers of x, and directly 6 multiplications. Winograd's F(2, 3) needs 4: it multiplies sums and differences of the
# four numbers by transformed weights, and adds and subtracts these products (Lavin and Gray, arXiv:1509.09308, section
# 4.1). The transformed weights are the same for the whole signal, so they are computed only once.


# %% solution="winograd"
def winograd(x, w):
    """Return the outputs w[0] x[i] + w[1] x[i + 1] + w[2] x[i + 2], for two of them with 4 multiplications.

    x: a list of n numbers, n from 0 on. w: a list of 3 numbers.
    Returns: the n - 2 outputs for i from 0 to n - 3, a list of numbers; an empty list for n < 3. They are right up to
        rounding.
    Multiplications and divisions with a number that depends on x: at most 4 for each two outputs, and at most 4 for
        one that is left over.
    Multiplications and divisions of all other numbers, such as (w[0] + w[2]) / 2: at most 4 in all, however
        long x is.
    Additions and subtractions: any number. A power counts as a multiplication, a product with a constant such as
        2 or 0.5 as well.
    The numbers of the check count these operations. They can be added, subtracted, multiplied and divided,
        also in arrays with dtype=object. Conversions to float or int, and comparisons of size, raise an error.

    Example: winograd([1.0, 2.0, 3.0, 5.0], [1.0, 10.0, 100.0]) is [321.0, 532.0].
    """
    ### BEGIN SOLUTION
    outputs = []
    plus, minus = (w[0] + w[1] + w[2]) / 2, (w[0] - w[1] + w[2]) / 2
    for i in range(0, len(x) - 3, 2):
        a, b, c, d = x[i : i + 4]
        m1, m2, m3, m4 = (a - c) * w[0], (b + c) * plus, (c - b) * minus, (b - d) * w[2]
        outputs += [m1 + m2 + m3, m2 - m3 - m4]
    if len(x) >= 3 and len(x) % 2 == 1:
        outputs.append(w[0] * x[-3] + w[1] * x[-2] + w[2] * x[-1])
    return outputs
    ### END SOLUTION


# %% test="winograd" points=4
check.winograd(winograd)
### BEGIN HIDDEN TESTS
check.winograd(
    winograd,
    lengths=[6, 4, 7, 3, 11, 2, 1, 0, 1405],
    counted=[4, 3, 9, 14, 61, 2],
    seed=32,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Micro-batches under a limit (5 points)
# The fastest algorithm for a convolution often needs *workspace*: memory for its intermediate results, such as the
# matrix of patches. If that memory is missing, a library falls back on a slower algorithm. A way out is to compute the
# batch in micro-batches, one after the other: each needs less workspace, and the memory is used again by the next one
# (Oyama et al., arXiv:1804.04806). Sizes and algorithms are chosen from a table of measured times.


# %% solution="micro_batches"
def micro_batches(B, measured, limit):
    """Return the sizes and algorithms of micro-batches that take the least time, with a limited workspace.

    B: number of samples of the batch, from 0 to 500.
    measured: a list of n tuples (size, algorithm, microseconds, nbytes): a micro-batch of `size` samples by
        `algorithm`, a string, takes that time and needs nbytes bytes of workspace. size and microseconds are whole
        numbers from 1 on, nbytes from 0 on. The list is in any order, may be empty, and has each pair of a
        size and an algorithm at most once. Sizes may be missing, and may exceed B.
    limit: the available workspace in bytes, from 0 on. Micro-batches are computed one after the other and reuse the
        same workspace, so each alone may need at most `limit` bytes.
    Returns: a list of pairs (size, algorithm), in any order, each in the table and as often as you like. The sizes
        add up to B, and the sum of the times is as small as possible. If several lists are best, any of them is right.
        None if no micro-batches within the limit add up to B. For B = 0 the list is empty.
    Operations: in the check of large batches at most 6 B n additions, comparisons and other operations with times and
        sums of times. The times are then integers that count these operations, and raise an error beyond that.
        They also raise one if they are converted to a type that does not count: int, float, or numpy's numbers
        (dtype=object is none of them).

    Example: with measured = [(1, "loops", 30, 0), (2, "im2col", 36, 800), (3, "im2col", 50, 1200)] and B = 4, a limit
        of 1200 gives [(2, "im2col"), (2, "im2col")], which take 72 microseconds: 3 + 1 samples take 80. A limit of
        799 gives [(1, "loops")] * 4.
    """
    ### BEGIN SOLUTION
    rows = [row for row in measured if row[3] <= limit]
    best = [0] + [None] * B  # for b samples: the least time
    last = [None] * (B + 1)  # ... and the row of its last micro-batch
    for b in range(1, B + 1):
        for row in rows:
            size, _, time, _ = row
            if size <= b and best[b - size] is not None:
                total = best[b - size] + time
                if best[b] is None or total < best[b]:
                    best[b], last[b] = total, row
    if best[B] is None:
        return None
    chosen = []
    while B > 0:
        chosen.append(last[B][:2])
        B -= last[B][0]
    return chosen
    ### END SOLUTION


# %% test="micro_batches" points=5
check.micro_batches(micro_batches)
### BEGIN HIDDEN TESTS
check.micro_batches(micro_batches, small=[7, 10, 16, 9, 14], large=[110, 280, 41], seed=33)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. A pass of a compiler (5 points)
# The expression `-(x * y) + x` runs as three operations in numpy, each with a loop of its own: it reads arrays from
# memory and writes one back. A *launch* is the start of such a loop. An operation is *elementwise* if element i of its
# result needs only elements i of its arguments. Then several of them can share one loop, so one launch: for each i, all
# of them are computed, and a value that is used only there never goes to memory. This is called *fusion*. A sum cannot
# take part: its first element already needs the last element of its argument.


# %% solution="fuse"
def fuse(program, results):
    """Return the launches of a program, as few as possible, and what each of them stores.

    program: a list of up to 2000 instructions (result, kind, operation, arguments), for example
        ("c", "elementwise", "add", ("a", "b")). result: the name of an array. arguments: a tuple of names. A name that
        no earlier instruction wrote is an input, and in memory from the beginning. Different names are
        different arrays; all are equally long. The kind is
        "elementwise"   can share a launch; its result has a new name, which nobody has read or written before
        "other"         a launch of its own; its result has a new name
        "in place"      a launch of its own; overwrites an array: result is arguments[0], an input or an earlier result
    results: a list of names, whose arrays are to be in memory at the end, with the same contents as if all
        instructions were executed one after the other.
    Launches: each has either one instruction of any kind, or several elementwise ones in an order in which they can
        be computed. They need not use each other's results. Each instruction is in exactly one launch, also if
        nobody reads its result. A launch reads arrays in memory, and results of its own instructions. It writes those
        results to memory that it stores; an instruction in place always writes its array.
    Order: launches are executed one after the other. Instructions may change places, but each must read the same
        contents as in the program. An instruction that reads an array before another one overwrites it in place
        must still be executed before that one.
    Returns: a list of launches in the order of their execution, as few as possible; any such list is right. A launch
        is a pair (positions, stored): a list of positions in the program, from 0 on, and a list of those results of
        its own that another launch reads or that are in `results`, each once. For an instruction in place, stored
        may be empty.

    Example: program = [("p", "elementwise", "mul", ("x", "y")), ("s", "other", "sum", ("p",)),
        ("q", "elementwise", "neg", ("x",)), ("r", "elementwise", "add", ("q", "s"))] with results = ["r"] needs three
        launches: [([0, 2], ["p", "q"]), ([1], ["s"]), ([3], ["r"])]. As good is
        [([0], ["p"]), ([1], ["s"]), ([2, 3], ["r"])], where q is not stored.
    """
    ### BEGIN SOLUTION
    level, writer, readers = [], {}, {}  # of each instruction; of each array the last writer, and who has read it since
    for i, (result, kind, _, arguments) in enumerate(program):
        before = {writer[name] for name in (*arguments, result) if name in writer} | readers.get(result, set())
        if kind == "elementwise":
            level.append(max((level[j] + (program[j][1] != "elementwise") for j in before), default=1))
        else:
            level.append(max((level[j] for j in before), default=0))
        for name in arguments:
            readers.setdefault(name, set()).add(i)
        writer[result] = i
        if kind == "in place":
            readers[result] = set()

    groups = []
    for this in range(max(level, default=0) + 1):
        of_level = [i for i in range(len(program)) if level[i] == this]
        fused = [i for i in of_level if program[i][1] == "elementwise"]
        groups += [fused] * bool(fused) + [[i] for i in of_level if program[i][1] != "elementwise"]

    read_by = {}  # for each name the launches that read it
    for number, group in enumerate(groups):
        for i in group:
            for name in program[i][3]:
                read_by.setdefault(name, set()).add(number)
    launches = []
    for number, group in enumerate(groups):
        names = [program[i][0] for i in group]
        launches.append((group, [name for name in names if name in results or read_by.get(name, set()) - {number}]))
    return launches
    ### END SOLUTION


# %% test="fuse" points=5
check.fuse(fuse)
### BEGIN HIDDEN TESTS
check.fuse(fuse, pure=[8, 21, 50], writing=[9, 23, 52], long=1300, seed=34)
### END HIDDEN TESTS

# %% [markdown]
# ## 5. In a few sentences (2 points, graded by hand)
# A layer has 64 filters of 64 channels, 3 x 3, with stride 1 and padding 1, on images of 56 x 56. A colleague replaces
# im2col by Winograd's F(2 x 2, 3 x 3), which needs 16 multiplications instead of 36, and expects the layer to be 2.25
# times as fast. It is 1.3 times as fast. How much larger than the image is the matrix of patches? Give two reasons why
# fewer multiplications need not mean as many times fewer seconds. Then explain why fusing a bias and a ReLU saves time,
# though it saves no arithmetic.

# %% [markdown] manual="fewer_multiplications" points=2
# The matrix of patches is 9 times as large as the image: 64 * 9 rows and 56 * 56 columns against 64 * 56 * 56 numbers
# (0.5 points).
#
# Reasons why Winograd gains less than 2.25 (1 point for two of them):
#
# - The transformations of image and result cost additions. Those of a matrix product are free: a processor multiplies
#   and adds in one instruction.
# - The transformed numbers are written to memory and read again: more bytes for each multiplication, so the layer may
#   be limited by memory instead of arithmetic.
# - A large matrix product runs near the peak of the machine. Winograd's are 16 smaller ones, which reach less of it.
# - Tiles at the border are partly wasted if the size of the result is odd.
#
# Bias and ReLU do one operation for each number, but read and write it: they take as long as memory needs. Fused, they
# work on the result while it is in a register, so two passes through memory are saved (0.5 points).
