# %% [markdown]
# # 03c. Why is a line of numpy slower than it needs to be, and what does a compiler do about it?
#
# *Chapter 03, third part. Before it: [03b](03b_cost.ipynb), where the seconds and the bytes go. After it:
# [04a](04a_messages.ipynb). Reading time: about 26 minutes. Figures are* measured *on the computer that ran this page,*
# counted, *or come from a* formula.
#
# ## The question
#
# Here is a line of numpy, in three steps to be readable. It applies ten operations to every number of an array.

# %%
from course.interaction import explore, guess, step_through, warm_up

warm_up()

# %% source_hidden=true
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numba import njit
from threadpoolctl import threadpool_limits

import course
from course.figures.page import say, see, table
from minidl import Tensor, compiler, manual_seed, nn, optim
from minidl import functional as F
from minidl.compiler import CompilationError
from minidl.plots import style

one_core = threadpool_limits(1)  # does everything on this page


# %%
def line(x, f):
    """Ten elementwise operations; f has relu, sqrt and exp."""
    y = f.relu(x * 1.7 + 0.3)
    y = f.sqrt(y * y + 1.0)
    return f.exp(-y) / (y - 0.5)


in_numpy = SimpleNamespace(relu=lambda x: np.maximum(x, 0.0), sqrt=np.sqrt, exp=np.exp)
x = np.random.default_rng(0).standard_normal(10**6, dtype=np.float32)

# %% [markdown]
# The result has a million numbers, as `x` has. `x.copy()` also reads a million numbers and writes a million.

# %%
guess_copy = guess("How many times as long as x.copy() does the line take?", unit="times")


# %% source_hidden=true
# measured: differs from run to run
def times(rounds, **sides):
    """The median seconds of the processor that each side takes, measured in turns."""
    spent = {name: [] for name in sides}
    for _ in range(rounds):
        for name, run in sides.items():
            begun = time.process_time()
            run()
            spent[name].append(time.process_time() - begun)
    return {name: np.median(each[1:]) for name, each in spent.items()}


first = times(30, copy=lambda: x.copy(), line=lambda: line(x, in_numpy))
ratio = first["line"] / first["copy"]
say(f"Measured: the copy {1e3 * first['copy']:.2f} ms, the line {1e3 * first['line']:.2f} ms, **{ratio:.0f} times as "
    f"long**. Your guess: {guess_copy.against(ratio)}.")  # fmt: skip

# %% [markdown]
# The line is ten calls. Each of them is a *launch*: one loop in compiled code, which reads its operands from memory and
# writes a new array. An operation like these, which computes each number of the result from the numbers at the same
# place, is *elementwise*. Numpy sees one operation at a time. It cannot know that the array it writes will be read
# once, by the next call, and never again. A *compiler* sees the whole line, and turns it into a program that computes
# the same with less work.
#
# ## The line as data
#
# First the compiler needs the program as data. We call the function with an object that is no array. Numpy asks it to
# do the work (`__array_ufunc__`), and it only writes down what was asked. This is *tracing*.


# %%
class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """Stands for an array: an operation of numpy on it is written down, and not executed."""

    def __init__(self, name, code):
        self.name, self.code = name, code

    def __array_ufunc__(self, operation, method, *operands):
        names = tuple(one.name if isinstance(one, Traced) else one for one in operands)
        self.code.append((f"v{len(self.code) + 1}", operation.__name__, names))
        return Traced(self.code[-1][0], self.code)


def trace(function):
    """The operations of function(v0) as (result, name, operands), and the name of what it returns."""
    code = []
    return code, function(Traced("v0", code)).name


code, last = trace(lambda x: line(x, in_numpy))
for result, name, operands in code:
    print(f"{result} = {name}{operands}")

# %% [markdown]
# Such a list is an *intermediate representation* (IR): it lies between the program that a person writes and the code
# that a processor executes. Every name gets a value once and keeps it. So an operation and its operands say all that
# there is to know about a result. Drawn as points and arrows the list is the *graph* of chapter 01, and an entry is a
# *node*.
#
# `minidl.compiler.trace` does the same with minidl's functions, and notes shapes and types.

# %% source_hidden=true
of_minidl = compiler.trace(lambda x: line(x, F), x)
theirs = [one.name.replace("relu", "maximum") for one in of_minidl.instructions if one.operands]
say(f"Its operations are {'the same' if theirs == [name for _, name, _ in code] else 'others'}, one by one.")

# %% [markdown]
# From such a graph we can count what goes through memory. Arguments and constants need no launch, and neither does a
# *view*, which is another shape of the same memory. What depends on constants alone is a number in the code, and does
# not count.


# %%
SOURCES = ("argument", "constant")


def bytes_moved(graph):
    """What all launches read and write."""
    constants = [one.results[0] for one in compiler.fold_constants(graph).instructions if one.name == "constant"]
    launches = [one for one in graph.instructions if one.name not in SOURCES and not one.is_view]
    return sum(value.nbytes for one in launches for value in (*one.operands, *one.results) if value not in constants)


arrays = bytes_moved(of_minidl) / x.nbytes
say(f"The line reads or writes {arrays:.0f} arrays, the copy 2. And the copy computes nothing.")

# %% [markdown]
# ## Two passes
#
# A compiler goes over the IR several times. Each *pass* makes an equal program with less to do. Here are two of the
# oldest. The first finds *common subexpressions*: it computes once what stands there twice. The second removes *dead
# code*: results that nobody reads.


# %%
def share(code, last):
    """Compute once what is computed twice from the same operands."""
    first, instead, kept = {}, {}, []
    for result, name, operands in code:
        operands = tuple(instead.get(one, one) for one in operands)
        instead[result] = first.setdefault((name, operands), result)
        if instead[result] == result:
            kept.append((result, name, operands))
    return kept, instead[last]


def remove_dead(code, last):
    """Drop every operation whose result nobody reads, from the last to the first."""
    needed, kept = {last}, []
    for result, name, operands in reversed(code):
        if result in needed:
            needed.update(operands)
            kept.insert(0, (result, name, operands))
    return kept, last


def clumsy(x):
    norm = np.sqrt(x * x + 1.0)
    np.exp(norm)  # from an experiment of last week
    return norm / (x * x + 1.0)


# %% source_hidden=true
steps = {"traced": trace(clumsy)}
steps["shared"] = share(*steps["traced"])
steps["dead code removed"] = remove_dead(*steps["shared"])
table(
    ["", "operations", "the program"],
    [[name, len(each), "; ".join(f"{r} = {op}({', '.join(map(str, given))})" for r, op, given in each)]
     for name, (each, _) in steps.items()],
    "counted; the function is `clumsy`",
)  # fmt: skip

# %% [markdown]
# Each pass is a function from a program to an equal one, so any order of them gives an equal one.
#
# ## One loop
#
# Our line of ten operations contains nothing twice and nothing dead. But all ten can be done in *one* loop, number by
# number. What lies between them stays in a *register*, a place for one number inside the processor, and never goes to
# memory. This is *fusion*, and the code for it can be generated as text:


# %%
def fused(code, last):
    """The source of one loop that does all operations, and the compiled loop."""
    source = "def loop(v0s, out):\n    for i in range(v0s.size):\n        v0 = v0s[i]\n"
    for result, name, operands in code:
        given = [one if isinstance(one, str) else f"float32({one})" for one in operands]
        source += f"        {result} = {name}({', '.join(given)})\n"
    source += f"        out[i] = {last}\n"
    names = dict(vars(np))
    exec(source, names)
    return source, njit(names["loop"])


source, loop = fused(code, last)
print(source)

# %%
guess_loop = guess("One loop instead of ten: how many times as fast as numpy's line?", unit="times")

# %% source_hidden=true
# measured: differs from run to run
compiled = compiler.compile(lambda x: line(x, F))


def in_our_loop(loop=loop):
    out = np.empty_like(x)
    loop(x, out)
    return out


sides = {"numpy's line": lambda: line(x, in_numpy), "our loop": in_our_loop, "minidl.compiler": lambda: compiled(x)}
exact = line(x.astype(np.float64), in_numpy)
off = {name: abs(run() - exact).max() for name, run in sides.items()}
taken = times(25, **sides)
faster = {name: taken["numpy's line"] / each for name, each in taken.items()}
of_one_loop = compiler.optimized(of_minidl)
counts = [[graph.launches, f"{bytes_moved(graph) / x.nbytes:.0f}"] for graph in (of_minidl, of_one_loop, of_one_loop)]
table(
    ["", "launches", "arrays read or written", "ms", "times as fast", "error"],
    [[name, *count, f"{1e3 * taken[name]:.2f}", f"{faster[name]:.1f}", f"{off[name]:.0e}"]
     for name, count in zip(sides, counts, strict=True)],
    "measured in turns on one core; launches and arrays counted; error: largest difference from float64; "
    f"your guess: {guess_loop.against(faster['our loop'])}",
)  # fmt: skip
_, without_exp = fused(*trace(lambda x: line(x, SimpleNamespace(**{**vars(in_numpy), "exp": lambda y: y}))))
parts = times(25, whole=in_our_loop, without=lambda: in_our_loop(without_exp))
say(f"Without its exp our loop would take {parts['without'] / parts['whole']:.0%} of its time (measured).")

# %% [markdown]
# Our loop moves only the bytes of a copy, and gains far less than the bytes promise. The third row has the same
# launches and the same bytes, so these are not the reason. $e^x$ is. Numpy's loops compute several numbers with one
# vector instruction (03b). Numba's loops do so, too, unless they call a function into which numba cannot see, and
# `np.exp` is such a call, one per number. (Where Intel's library SVML is installed, numba has a vector form of it.)
# minidl's loop has an $e^x$ made of sums, products and shifts, so nothing stops the vectors. A compiler needs both: to
# see the whole line, and to generate code that suits the processor.
#
# ## A layer with its gradient
#
# A real program has more than one chain. Here is a layer that mixes its input and its product, $y = s\,h + (1 - s)\,x$
# with $h = xW$ and $s = \mathrm{sigmoid}(h)$, and the gradient of the mean of $y^2$ with respect to $W$. Backward is
# made of functions of arrays like forward, so tracing records both. The programmer wrote the sigmoid twice.


# %%
def gradient(x, w):
    w.grad = None
    h = x @ w
    y = h.sigmoid() * h + (1.0 - h.sigmoid()) * x
    (y * y).mean().backward()
    return w.grad


# %% source_hidden=true
rng = np.random.default_rng(1)
samples = rng.standard_normal((4096, 64), dtype=np.float32)
w = Tensor(rng.standard_normal((64, 64), dtype=np.float32) / 8, requires_grad=True)
traced = compiler.trace(gradient, samples, w)
print(traced)

# %% [markdown]
# Here `sigmoid_backward(g, s)` is $g\,s\,(1 - s)$. What can go? Look for what depends on constants alone, for what
# stands there twice, for what nobody reads, and for what can join a loop. A transpose is only another view of the same
# memory, and no launch.

# %%
guess_launches = guess(f"Of {traced.launches} launches, how many are left after all passes?")

# %%
PASSES = {
    "folding": compiler.fold_constants,
    "sharing": compiler.share_subexpressions,
    "removing dead code": compiler.remove_dead_code,
    "fusing": compiler.fuse_elementwise,
}
after = {"tracing": traced}
for name, each in PASSES.items():
    after[name] = each(list(after.values())[-1])


# %% source_hidden=true
def names(graph):
    return Counter(one.name for one in graph.instructions if one.name not in SOURCES)


def gone(before, now):
    if now.launches < before.launches // 2:
        return f"{before.nodes - now.nodes} joined others"
    left = names(before) - names(now)
    return ", ".join(name if count == 1 else f"{count} {name}" for name, count in left.items()) or "-"


graphs = list(after.values())
table(
    ["after", "nodes", "launches", "MB through memory", "MB alive", "what went"],
    [[name, graph.nodes, graph.launches, f"{bytes_moved(graph) / 1e6:.1f}",
      f"{compiler.plan_buffers(graph).nbytes / 1e6:.1f}",
      gone(before, graph)]
     for before, (name, graph) in zip([traced, *graphs], after.items(), strict=False)],
    f"counted; alive: at most at one time; your guess: {guess_launches.against(graphs[-1].launches)}",
)  # fmt: skip

# %% [markdown]
# *Constant folding* computes now what is the same in every call: backward starts with $1/n$, spread over the shape of
# $y$. Sharing leaves one sigmoid of two, and one of two equal products in the gradient of $y^2$. The mean and the
# square are dead code: the gradient does not need the loss. Fusion joins all that is elementwise, of
# forward and backward alike, into one loop between the two products. It stops at the products, since each number of
# their results is a sum over many numbers. Two operations also stay apart if one that cannot join, such as a product,
# reads the first and is read by the second.
#
# ## Who needs memory when
#
# The last pass looks at *liveness*. A result is alive from the launch that makes it to the launch that reads it last.
# Then its memory, its *buffer*, is free for another one. If an elementwise operation reads a number for the last time
# and writes one of the same size, it can write into the same place.


# %% source_hidden=true
mean = next(one.results[0] for one in traced.instructions if one.name == "mean")  # where backward begins


def lives(axes, frame):
    """A bar for each result that is no number, from its launch to the last one that reads it; a row is a buffer."""
    graph = after[frame]
    plan = compiler.plan_buffers(graph)
    computes = [one.name not in SOURCES and not one.is_view for one in graph.instructions]
    moment = np.cumsum([0, *computes])  # launches before each instruction
    row, free = {}, []  # of each value; from which moment on each row is free
    for i, one in enumerate(graph.instructions):
        for value in one.results:
            if not computes[i] or value not in plan.own or value.nbytes < 100:
                continue
            begin, end = moment[i], moment[min(plan.last[value] + 1, len(computes))]
            if value in plan.over:
                row[value] = row[plan.over[value]]
            else:
                row[value] = next((r for r, until in enumerate(free) if until <= begin), len(free))
                free[row[value] : row[value] + 1] = [0]
            taken_over = [later for later, old in plan.over.items() if old == value]
            if taken_over:
                k = next(k for k, each in enumerate(graph.instructions) if taken_over[0] in each.results)
                end = moment[k]
            free[row[value]] = end
            colour = style.PIPELINE["forward" if value.number < mean.number else "backward"]
            axes.barh(row[value], end - begin, left=begin, height=0.8, color=colour, **style.BORDER)
            axes.text((begin + end) / 2, row[value], value.number, fontsize=6, color="white", ha="center", va="center")
    axes.set(ylabel="buffers", yticks=[])
    axes.set_xlabel(f"launch; at most {plan.nbytes / 1e6:.1f} MB are alive", fontsize=8)


step_through(
    lives,
    "a bar is a result, with its number in the program, from the launch that makes it to the last one that reads it. A "
    "row is a buffer, used by one result after another. Blue is made in forward, green in backward. Blue bars that "
    "reach into backward are what a gradient needs memory for. After fusing, only the products and the loop have bars: "
    "what was another bar is a number in a register.",
    frames=list(after),
    multiples=["tracing", "removing dead code", "fusing"],
    name="after",
    height=3.2,
    source="formula",
)

# %% [markdown]
# From the graph and its buffers minidl generates Python, with a loop for numba in place of the fused instruction.
# `wide_vectors()` asks for the processor's longest vector instructions.

# %%
program = compiler.Program(graphs[-1], compiler.plan_buffers(graphs[-1]))
print(program.source)

# %% source_hidden=true
w.grad = None
eager = gradient(Tensor(samples), w).copy()
result = program(samples, w.data)
say(f"The largest difference from minidl without the compiler is {abs(result - eager).max():g}; the largest number of "
    f"the gradient is {abs(eager).max():.2g}.")  # fmt: skip

# %% [markdown]
# Now switch passes on and off.


# %% source_hidden=true
# measured: differs from run to run
def made(*chosen):
    graph = traced
    for each, is_on in zip(PASSES.values(), chosen, strict=True):
        graph = each(graph) if is_on == "on" else graph
    return graph, compiler.Program(graph, compiler.plan_buffers(graph))


without = made("off", "off", "off", "off")


def turn(axes, fold, share, dead, fuse):
    chosen = made(fold, share, dead, fuse)
    spent = times(41, off=lambda: without[1](samples, w.data), on=lambda: chosen[1](samples, w.data))
    values = {
        "launches": (without[0].launches, chosen[0].launches, "{:.0f}"),
        "through memory": (bytes_moved(without[0]) / 1e6, bytes_moved(chosen[0]) / 1e6, "{:.1f} MB"),
        "alive": (without[1].plan.nbytes / 1e6, chosen[1].plan.nbytes / 1e6, "{:.1f} MB"),
        "time": (100, 100 * spent["on"] / spent["off"], "{:.0f} %"),
    }
    for row, (before, now, form) in enumerate(reversed(values.values())):
        axes.barh(row, 100 * now / before, color=style.SERIES[row], **style.BORDER)
        axes.text(100 * now / before + 2, row, form.format(now), va="center", fontsize=8)
    axes.set(xlim=(0, 140), xlabel="% of the program without passes", yticks=range(4), yticklabels=list(values)[::-1])


explore(
    turn,
    "each bar is relative to the program without passes. Without fusing, the other passes take away a few launches. "
    "Fusing takes away most of them, and more if dead code is gone: the mean, which nobody needs, reads what forward "
    "makes, and so keeps forward and backward in two loops, with everything between them in memory. If nothing is "
    "shared, but the rest is on, the one loop computes a number twice, and needs no more memory.",
    fold=["on", "off"],
    share=["on", "off"],
    dead=["on", "off"],
    fuse=["on", "off"],
    multiples=[{"fuse": "off"}, {"dead": "off"}, {"share": "off"}, {}],
    height=2.4,
    source=("measured", "formula"),
)

# %% source_hidden=true
# measured: differs from run to run
rest = samples @ w.data
floor = times(30, products=lambda: (samples @ w.data, samples.T @ rest), whole=lambda: program(samples, w.data))
say(f"With all passes the two products take {floor['products'] / floor['whole']:.0%} of the time that is left "
    "(measured). No pass makes them cheaper.")  # fmt: skip

# %% [markdown]
# ## A whole training step as one function
#
# Forward, loss, backward and the update of SGD are array operations, too. So a whole step is one graph. The weights are
# arguments, and the graph ends in writing them.


# %%
def training():
    """A small MLP, its step, and its parameters."""
    manual_seed(3)
    model = nn.models.MLP(64, 128, 10)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def step(images, labels, *parameters):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step, list(model.parameters())


(step, weights), (same, others) = training(), training()
compiled_step = compiler.compile(same)

# %% source_hidden=true
# measured: differs from run to run
images, labels = rng.standard_normal((64, 64), dtype=np.float32), rng.integers(10, size=64)
batch = Tensor(images), Tensor(labels)
for _ in range(20):
    step(*batch, *weights)
    compiled_step(images, labels, *others)
apart = max(abs(one.data - other.data).max() for one, other in zip(weights, others, strict=True))
whole = compiler.trace(same, images, labels, *others)
small = compiler.optimized(whole)
of_step = times(300, eager=lambda: step(*batch, *weights), compiled=lambda: compiled_step(images, labels, *others))
speedup = of_step["eager"] / of_step["compiled"]
say(f"After 20 steps the weights differ by {apart:g}. The graph has {whole.launches} launches, and {small.launches} "
    f"after the passes; {bytes_moved(whole) / 1e3:.0f} kB go through memory, and {bytes_moved(small) / 1e3:.0f} kB "
    f"after. The compiled step is **{speedup:.1f} times as fast** (measured).")  # fmt: skip

# %% [markdown]
# Here the arrays are small, so the bytes matter little, and most launches stay: products, sums, the cross entropy. What
# is saved is Python: the tape, the tensors and the functions of backward are there while the step is traced, and gone
# when it runs.
#
# That has a price. What Python does is *not in the graph*. A step that prints, counts, reads a learning rate from a
# schedule or asks for a number does so while it is traced, and no more when it runs. minidl traces a function
# twice, and refuses it if the graphs differ or if it looks at numbers:

# %% source_hidden=true
try:
    compiler.trace(lambda x: x * 2.0 if x.sum() > 0 else x, x)
except CompilationError as refused:
    say(f"`lambda x: x * 2.0 if x.sum() > 0 else x` is refused: *{refused}*")

# %% [markdown]
# Training loops rely on such things, so minidl's compiler is a demonstration, and no part of `minidl train`. PyTorch
# divides a program at such a place and compiles the parts. JAX refuses to show a number to Python, and does everything
# else of this kind once, while it traces.
#
# ## Break it: what a compiler must not change
#
# Algebra offers more passes. Each of these holds for real numbers. Which holds to the bit for *floating-point* numbers?
# Among them are infinities, a zero with a minus sign, and NaN, "not a number".

# %%
guess_rule = guess("Which may a compiler apply to every float?", ["x + 0 → x", "1x → x", "x - x → 0", "0x → 0"])

# %% source_hidden=true
special = np.float32([2.5, -0.0, np.inf, np.nan])
with np.errstate(invalid="ignore"):  # inf - inf and inf * 0 are what we want to see
    RULES = {  # what is computed, and what the rule says
        "x + 0 → x": (special + np.float32(0), special),
        "1x → x": (special * np.float32(1), special),
        "x - x → 0": (special - special, 0 * np.ones(4, np.float32)),
        "0x → 0": (special * np.float32(0), 0 * np.ones(4, np.float32)),
    }


def same_bits(computed, claimed):
    same_sign = np.signbit(computed) == np.signbit(claimed)
    return (np.isnan(computed) & np.isnan(claimed)) | ((computed == claimed) & same_sign)


right = [rule for rule, (computed, claimed) in RULES.items() if same_bits(computed, claimed).all()]
table(
    ["rule", *(f"x = {value:g}" for value in special)],
    [[rule, *(f"{got:g}" + ("" if fits else f", not {said:g}")
              for got, said, fits in zip(computed, claimed, same_bits(computed, claimed), strict=True))]
     for rule, (computed, claimed) in RULES.items()],
    f"computed in float32; your guess: {guess_rule.against(right[0])}",
)  # fmt: skip

# %% [markdown]
# $-0$ matters as soon as somebody divides by it, and a NaN that is replaced by 0 hides a model that diverges. Sums are
# not reordered either, since $(a + b) + c$ and $a + (b + c)$ round differently.
#
# **The planted mistake.** *Dropout* multiplies each number by 2 or by 0, at random, half each. Two dropouts of an array
# of ones are added. Somebody's compiler treats `random` as an operation like any other, and then runs the pass that
# shares.


# %%
def two_dropouts(x):
    return F.dropout(x, 0.5) + F.dropout(x, 0.5)


def careless(graph):
    """Random numbers as an operation like any other."""
    renamed = (replace(one, name="draw") if one.name == "random" else one for one in graph.instructions)
    return compiler.share_subexpressions(replace(graph, instructions=tuple(renamed)))


# %%
guess_zeros = guess("Without a compiler a quarter of the sums is 0. And with this one?", unit="%")

# %% source_hidden=true
ones = np.ones(100_000, np.float32)
graph = compiler.trace(two_dropouts, ones)
rows, zeros = [], {}
for name, each in {
    "as written": graph,
    "shared by minidl": compiler.share_subexpressions(graph),
    "shared carelessly": careless(graph),
}.items():
    manual_seed(5)
    result = each.run(ones)
    draws = sum(one.name in ("random", "draw") for one in each.instructions)
    zeros[name] = 100 * np.mean(result == 0)
    rows.append([name, draws, *(f"{100 * np.mean(result == value):.1f} %" for value in (0, 2, 4))])
table(["two dropouts", "arrays of random numbers", "sums of 0", "of 2", "of 4"], rows,
      f"counted in {len(ones):,} sums; your guess: {guess_zeros.against(zeros['shared carelessly'])}")  # fmt: skip

# %% [markdown]
# No error, no NaN, and the mean is right: only the noise is not what was asked for. `random` is no function of its
# operands, since it also reads and changes the state of the generator. So it is never shared. It is not dead code
# either, since removing a draw would change all later ones.
#
# Our own `share` has a mistake of this kind, too. It looks up constants in a dictionary, and there `0.0` and `-0.0` are
# the same key:

# %%
both = trace(lambda x: 1.0 / (x * 0.0) - 1.0 / (x * -0.0))

# %% source_hidden=true
(_, as_written), (_, as_shared) = fused(*both), fused(*share(*both))
results = np.empty((2, 1), np.float32)
as_written(ones[:1], results[0])
as_shared(ones[:1], results[1])
say(f"For x = 1 the line is {results[0, 0]:g}; after our `share` it is {results[1, 0]:g}.")

# %% [markdown]
# minidl compares constants by their bits.
#
# Last, *writes*. `x * 2` before and after `x += 1` are not the same. In an IR that gives every name one value, a write
# makes a new name, and the two products have different operands. No pass needs to think of it:


# %%
def writes(x):
    before = x * 2.0
    x += 1.0
    return before + x * 2.0


print(compiler.share_subexpressions(compiler.trace(writes, ones)))

# %% [markdown]
# ## What others reach
#
# minidl's benchmarks compare the line of this page, and the step of a small MLP, with other compilers on one core. Two
# programs are no ranking:

# %% source_hidden=true
page = (Path(course.__file__).parents[1] / "benchmarks/README.md").read_text(encoding="utf-8")
results = page.split("<!-- begin: results -->")[1].split("<!-- end: results -->")[0]
rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in results.splitlines()]
table(["", "minidl, compiled", "the fastest other compiler", "which takes", "ratio of the times"],
      [[row[1], *row[3:7]] for row in rows if row[0] == "compiler"],
      "measured on another day, on the machine that `benchmarks/README.md` names")  # fmt: skip

# %% [markdown]
# **Ansel et al. (2024)**, PyTorch 2 (ASPLOS), compare with eager PyTorch, which executes one operation at a time: 2.27
# times its speed for inference, 1.41 times for training, as geometric means of more than 180 models on an A100. That is
# less than for our line. These are whole models, in which products and convolutions take much of the time, while our
# line has nothing but elementwise operations.
#
# **Chen et al. (2018)**, TVM (arXiv:1802.04799, section 3), fuse more than we do: a sum with the elementwise operations
# before it, a convolution with those after it. They also choose tiles (03b), and generate code for GPUs.
#
# The idea to give every name one value is *static single assignment*: **Cytron et al. (1991)**, ACM TOPLAS 13(4).
#
# ## The answer
#
# A line of numpy is slower than it needs to be because each operation is a launch of its own: it writes a whole array
# to memory, and the next one reads it back. A compiler traces the line into a graph. It computes what is constant,
# shares what is equal, drops what nobody reads, joins elementwise operations into one loop, and reuses buffers. With
# large arrays this saves traffic to memory, with small ones Python. It must leave alone NaN and $-0$, random numbers,
# the order of sums and of writes. And it sees only what was traced.
#
# ## To the exercises
#
# [Exercises of chapter 03](../exercises/03_operators/03_operators.ipynb): after this page you can write `fuse`, which
# finds the groups that can be one loop in a program that has products and sums, too.
#
# **Three questions to argue about**
#
# 1. A step has a learning rate that falls with every step. What can the compiler do with it, and what must you change?
# 2. Would you let a compiler reorder a sum if this made training twice as fast? What would you check afterwards?
# 3. A compiler may also compute a value twice instead of keeping it. When is that worth it? (See `minidl.checkpoint`.)
#
# Next: [04a. How do machines that share nothing work together?](04a_messages.ipynb)
