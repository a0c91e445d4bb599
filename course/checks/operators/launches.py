"""Programs of elementwise and other operations, a machine that executes groups of them, and the fewest launches."""

from __future__ import annotations

import random
from collections import ChainMap, Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.plural import counted
from minidl.random import Purpose, stream

Array = NDArray[np.int64]

Instruction = tuple[str, str, str, tuple[str, ...]]
"""(result, kind, operation, arguments)"""

Program = list[Instruction]

Launch = tuple[list[int], list[str]]
"""(positions, stored)"""

PRIME, LENGTH = 1_000_003, 5
"""Arrays have integers below a prime, so that a chain of a thousand products stays exact."""

OPERATIONS: dict[str, dict[str, tuple[int, Callable[..., Array]]]] = {
    "elementwise": {
        "add": (2, lambda a, b: a + b),
        "sub": (2, lambda a, b: a - b),
        "mul": (2, lambda a, b: a * b),
        "neg": (1, lambda a: -a),
        "square": (1, lambda a: a * a),
        "fma": (3, lambda a, b, c: a * b + c),
    },
    "other": {
        "sum": (1, lambda a: np.full_like(a, a.sum())),
        "cumsum": (1, np.cumsum),
        "flip": (1, lambda a: a[::-1]),
        "convolve": (2, lambda a, b: np.convolve(a, b)[:LENGTH]),
    },
    "in place": {
        "add_": (2, lambda a, b: a + b),
        "mul_": (2, lambda a, b: a * b),
        "flip_": (1, lambda a: a[::-1]),
    },
}
"""By kind and name: the number of arguments and the function; one in place overwrites its first argument."""


def computed(instruction: Instruction, values: Mapping[str, Array]) -> Array:
    """The result of an instruction."""
    _, kind, operation, arguments = instruction
    function = OPERATIONS[kind][operation][1]
    return function(*(values[name] for name in arguments)) % PRIME


def inputs_of(program: Program) -> dict[str, Array]:
    """An array for each name that the program reads before it writes it."""
    found: dict[str, Array] = {}
    written: set[str] = set()
    for result, kind, _, arguments in program:
        for name in (*arguments, *([result] if kind == "in place" else [])):
            if name not in written and name not in found:
                rng = stream(Purpose.MANUAL, len(found), "inputs of a program", len(program))
                found[name] = rng.integers(1, PRIME, LENGTH)
        written.add(result)
    return found


def executed(program: Program, results: Sequence[str]) -> dict[str, Array]:
    """The oracle: what the program computes, one instruction after the other."""
    values = inputs_of(program)
    for instruction in program:
        values[instruction[0]] = computed(instruction, values)
    return {name: values[name] for name in results}


def levels(program: Program) -> list[int]:
    """For each instruction the most launches of elementwise groups on a way to it, its own included."""
    found: list[int] = []
    writer: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    for i, (result, kind, _, arguments) in enumerate(program):
        before = [writer[name] for name in (*arguments, result) if name in writer] + readers.get(result, [])
        own = kind == "elementwise"
        found.append(max((found[j] + (own and program[j][1] != "elementwise") for j in before), default=0) or int(own))
        for name in arguments:
            readers.setdefault(name, []).append(i)
        if kind == "in place":
            readers[result] = [i]
        writer[result] = i
    return found


def fewest(program: Program) -> int:
    """The oracle: the fewest launches."""
    others = sum(kind != "elementwise" for _, kind, _, _ in program)
    return others + max(levels(program), default=0)


def needed(program: Program, results: Sequence[str], launches: Sequence[Launch]) -> list[set[str]]:
    """For each launch the results that another launch reads, or that the program is to give."""
    found = []
    for number, (positions, _) in enumerate(launches):
        read_elsewhere = {
            name for other, (its, _) in enumerate(launches) for i in its for name in program[i][3] if other != number
        }
        made = {program[i][0] for i in positions}
        found.append(made & (read_elsewhere | set(results)))
    return found


def shown(program: Program, results: Sequence[str]) -> str:
    """A program as a message shows it."""
    lines = [f"{i}: {result} = {operation}({', '.join(of)})" for i, (result, _, operation, of) in enumerate(program)]
    text = "; ".join(lines) or "no instruction"
    return f"{text if len(text) <= 300 else text[:299] + '…'}; results: {', '.join(results) or 'none'}"


def drawn(size: int, shares: tuple[float, float], seed: int, name: str = "") -> tuple[Program, list[str]]:
    """A program of `size` instructions, of which these shares are other and in place, and its results.

    Names are drawn, too: their order means nothing.
    """
    rng = random.Random(int(stream(Purpose.MANUAL, seed, "program", name, size).integers(2**31)))
    letters = [f"{letter}{number}" for letter in "abcdxyz" for number in range(size // 6 + 2)]
    names = rng.sample(letters, size + 3)
    known, program = names[:3], []
    for result in names[3:]:
        at_random = rng.random()
        kind = "other" if at_random < shares[0] else "in place" if at_random < sum(shares) else "elementwise"
        operation = rng.choice(sorted(OPERATIONS[kind]))
        recent = known[-6:] if rng.random() < 0.7 else known
        arguments = tuple(rng.choice(recent) for _ in range(OPERATIONS[kind][operation][0]))
        program.append((arguments[0] if kind == "in place" else result, kind, operation, arguments))
        if kind != "in place":
            known.append(result)
    used = sorted({name for result, _, _, arguments in program for name in (result, *arguments)})
    return program, rng.sample(used, min(3, len(used)))


def chain(size: int) -> tuple[Program, list[str]]:
    """Elementwise instructions, each of which reads the result of the one before."""
    return [(f"v{i + 1}", "elementwise", "square", (f"v{i}",)) for i in range(size)], [f"v{size}"]


def programs(text: str) -> list[tuple[Program, list[str]]]:
    """The programs of lines such as "what it is for | t = add(x, y); x = add_(x, t) | results"."""
    found = []
    for line in text.strip().splitlines():
        _, instructions, results = line.split("|")
        program = []
        for each in filter(None, map(str.strip, instructions.split(";"))):
            result, _, call = each.partition(" = ")
            operation, _, of = call.rstrip(")").partition("(")
            kind = next(kind for kind, known in OPERATIONS.items() if operation in known)
            program.append((result, kind, operation, tuple(of.split(", "))))
        found.append((program, results.split()))
    return found


PURE = programs("""
nothing | |
a chain | b = neg(a); c = mul(b, a); d = add(c, b); e = square(d) | e
read inside, needed outside | m = mul(x, y); s = sum(m); p = neg(x); q = add(p, s); r = square(p); u = mul(q, r) | u p
several sums | s = sum(x); h = neg(x); t = sum(h); k = square(y); v = mul(k, s); z = add(v, t); o = sub(h, y) | z o
on two ways | a = neg(x); b = flip(a); c = add(a, b); d = flip(c); e = add(c, d); f = mul(a, e) | f
no result | a = neg(x); s = sum(a); b = add(s, a) |
results that nobody reads | a = neg(x); s = sum(a); b = square(x); c = add(a, x) | c
""")

WRITING = programs("""
old contents, kept | t = neg(x); x = add_(x, y); u = square(x); v = mul(t, u) | v x
old contents, summed | t = neg(x); s = sum(t); x = mul_(x, y); u = square(s); v = add(u, x) | v
several writes | x = add_(x, y); x = flip_(x); t = neg(y); u = mul(t, x); x = mul_(x, u) | x
an own result | t = neg(x); u = square(t); t = add_(t, u); v = mul(t, u); w = sub(v, x) | w
an argument, twice | t = neg(x); y = add_(y, t); u = mul(t, y); y = flip_(y); v = add(u, x) | v y
old contents, read by an operation of another kind | t = neg(z); s = convolve(t, x); x = mul_(x, y); u = add(s, x) | u
old contents, read by another write | t = neg(z); t = mul_(t, x); x = flip_(x); u = sub(y, x) | t u
""")


def as_launches(got: Any, program: Program, called: str) -> list[Launch]:
    """The launches of a result, or Wrong."""
    launches = []
    for each in expect.listed(got, called, "a list of launches"):
        if not (
            isinstance(each, (list, tuple))
            and len(each) == 2
            and all(isinstance(part, (list, tuple)) for part in each)
            and all(type(i) is int for i in each[0])
            and all(isinstance(name, str) for name in each[1])
        ):
            raise Wrong(
                f"{called}: expected launches ([positions], [names]), got {expect.shown(each)} among them.",
                "A launch is a pair: the positions of its instructions, and the names of the results that it stores.",
            )
        launches.append((list(each[0]), list(each[1])))
    found = Counter(i for positions, _ in launches for i in positions)
    for i in sorted({*range(len(program)), *found}):
        expect.true(
            found[i] == int(0 <= i < len(program)),
            f"{called}: instruction {i} of {len(program)} is in {counted(found[i], 'launch', 'launches')}.",
            "Each instruction is executed once, whether or not its result is used." if not found[i] else "",
        )
    return launches


def play(program: Program, results: Sequence[str], launches: Sequence[Launch], called: str) -> None:
    """Raise Wrong unless these launches compute what the program computes."""
    memory, known = inputs_of(program), set(inputs_of(program))
    for number, (positions, stored) in enumerate(launches):
        kinds = [program[i][1] for i in positions]
        expect.true(bool(kinds), f"{called}: launch {number} has no instruction.")
        expect.true(
            len(kinds) == 1 or set(kinds) == {"elementwise"},
            f"{called}: launch {number} has several instructions, among them "
            f"{next((program[i][2] for i in positions if program[i][1] != 'elementwise'), '')}.",
            "Only elementwise operations share a launch: any other operation has one of its own.",
        )
        own: dict[str, Array] = {}
        for i in positions:
            for name in program[i][3]:
                if name not in own and name not in memory:
                    raise Wrong(
                        f"{called}: instruction {i} in launch {number} reads {name}, which is not in memory.",
                        f"{name} is computed in an earlier launch, which did not store it."
                        if name in known
                        else f"{name} is computed later: an instruction comes after those whose results it reads.",
                    )
            own[program[i][0]] = computed(program[i], ChainMap(own, memory))
        for name in stored:
            expect.true(
                name in own,
                f"{called}: launch {number} stores {name}, which it does not compute.",
                "A launch stores results of its own instructions.",
            )
            memory[name] = own[name]
        if kinds == ["in place"]:
            memory |= own
        known |= own.keys()
    want = executed(program, results)
    for name in results:
        expect.true(name in memory, f"{called}: the result {name} is not in memory at the end.", "It was not stored.")
        expect.true(
            np.array_equal(memory[name], want[name]),
            f"{called}: in these launches {name} becomes {memory[name]}, without them {want[name]}.",
            "An instruction that reads an array before it is overwritten in place stays before that, and one that "
            "reads it afterwards stays behind.",
        )


def judge(answer: Answer, program: Program, results: list[str], aims: str = "") -> None:
    """Raise Wrong unless the launches compute the same; with "launches" in `aims` they are as few as possible, and
    with "stored" they store no more than they must.
    """
    called = f"fuse of {shown(program, results)}"
    launches = as_launches(answer(list(program), list(results)), program, called)
    play(program, results, launches, called)
    if "launches" in aims:
        want = fewest(program)
        expect.true(
            len(launches) <= want,
            f"{called}: expected {counted(want, 'launch', 'launches')}, got {len(launches)}.",
            cause_of(program, launches),
        )
    if "stored" in aims:
        for number, (must, (_, stored)) in enumerate(zip(needed(program, results, launches), launches, strict=True)):
            more = sorted(set(stored) - must)
            expect.true(
                not more or program[launches[number][0][0]][1] == "in place",
                f"{called}: launch {number} stores {', '.join(more)}, which nobody reads there.",
                "A value that is read in its own launch only stays in a register."
                if any(name in program[i][3] for name in more for i in launches[number][0])
                else "",
            )
            expect.true(len(stored) == len(set(stored)), f"{called}: launch {number} stores a value twice: {stored}.")


def cause_of(program: Program, launches: Sequence[Launch]) -> str:
    """The likely mistake of more launches than necessary."""
    sizes = [len(positions) for positions, _ in launches]
    if max(sizes, default=1) == 1:
        return "No two instructions share a launch."
    runs = [list(group) for _, group in groupby(range(len(program)), lambda i: program[i][1] == "elementwise" or -i)]
    if sorted(positions for positions, _ in launches) == runs:
        return "Only neighbours in the program were fused: instructions may change places if none waits for the other."
    return "Instructions that do not read each other's results may share a launch, too: all arrays are equally long."
