"""Answers to `check_gradient`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant

SMOOTH, SCALE, ONE, KINKS = "smooth functions", "any scale of x and of f", "one wrong element among many", "kinks"


def checker(mistake: str, body: str, loses: tuple[str, ...], says: str) -> Mutant:
    return Mutant("check_gradient", mistake, f"def check_gradient(f, gradient, x):\n{body}", loses, says)


CENTRAL = """
    h = {h}
    slopes = np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(len(x))])
    g = gradient(x)
    return {verdict}
"""
RELATIVE = "bool(np.abs(slopes - g).max() <= 1e-3 * max(np.abs(g).max(), np.abs(slopes).max()))"
SIDES = """
    h = {h}
    E = h * np.eye(len(x))
    left = np.array([(f(x) - f(x - e)) / h for e in E])
    right = np.array([(f(x + e) - f(x)) / h for e in E])
    g = gradient(x)
    size = max(np.abs(g).max(), np.abs(left).max(), np.abs(right).max())
    return bool({verdict})
"""
BETWEEN = "np.all((g >= np.minimum(left, right) - 1e-3 * size) & (g <= np.maximum(left, right) + 1e-3 * size))"
SCALED = "1e-5 * np.abs(x).max()"

MUTANTS = [
    checker("always True", "    return True\n", (SMOOTH, SCALE, ONE, KINKS), "planted bug was missed"),
    checker("always False", "    return False\n", (SMOOTH, SCALE, ONE, KINKS), "false alarm"),
    checker("a fixed step", CENTRAL.format(h="1e-5", verdict=RELATIVE), (SCALE, KINKS), "h has to fit the size of x"),
    checker(
        "an absolute tolerance",
        CENTRAL.format(h=SCALED, verdict="bool(np.allclose(slopes, g))"),
        (SCALE, KINKS),
        "about 1e-10",
    ),
    checker(
        "the mean of the differences",
        CENTRAL.format(h=SCALED, verdict="bool(np.abs(slopes - g).mean() <= 1e-3 * np.abs(g).max())"),
        (ONE, KINKS),
        "look at the largest",
    ),
    checker(
        "every element relative to itself",
        CENTRAL.format(h=SCALED, verdict="bool((np.abs(slopes - g) < 1e-3 * np.abs(g)).all())"),
        (ONE, KINKS),
        "Divide by the largest element",
    ),
    checker(
        "no thought of kinks", CENTRAL.format(h=SCALED, verdict=RELATIVE), (KINKS,), "any slope between the left and"
    ),
    checker(
        "kinks are skipped",
        SIDES.format(
            h=SCALED, verdict="np.all((np.abs(g - left) <= 1e-3 * size) | (np.abs(left - right) > 1e-3 * size))"
        ),
        (KINKS,),
        "A kink does not excuse everything",
    ),
    checker(
        "a step that is too small",
        CENTRAL.format(h="1e-15 * np.abs(x).max()", verdict=RELATIVE),
        (SMOOTH, SCALE, ONE, KINKS),
        "false alarm",
    ),
    checker(
        "every element relative to itself, but 0 is 0",
        SIDES.format(
            h=SCALED,
            verdict="all(min(a, b) - 1e-3 * max(abs(a), abs(b), abs(c)) <= c <= max(a, b) + 1e-3 * max(abs(a), abs(b), "
            "abs(c)) for a, b, c in zip(left, right, g))",
        ),
        (ONE,),
        "lost in rounding",
    ),
    checker(
        "a step from the largest element, which may be 0",
        SIDES.format(h="1e-5 * x.max()", verdict=BETWEEN),
        (SCALE,),
        "none need be positive",
    ),
    checker(
        "a step from each element's own size",
        SIDES.replace("h * np.eye(len(x))", "np.diag(h)")
        .replace("/ h", "/ e.max()")
        .format(h="np.where(x == 0, 1e-5, 1e-5 * np.abs(x))", verdict=BETWEEN),
        (SCALE,),
        "one element of x alone may be 0",
    ),
    checker(
        "only what is too large is wrong",
        SIDES.format(h=SCALED, verdict="np.all(g - np.maximum(left, right) <= 1e-3 * size)"),
        (SMOOTH, ONE),
        "planted bug was missed",
    ),
    checker(
        "only what is too small is wrong",
        SIDES.format(h=SCALED, verdict="np.all(np.minimum(left, right) - g <= 1e-3 * size)"),
        (KINKS,),
        "planted bug was missed",
    ),
    checker(
        "at a kink the left or the right slope, nothing between",
        SIDES.format(
            h=SCALED, verdict="np.all((np.abs(g - left) <= 1e-3 * size) | (np.abs(g - right) <= 1e-3 * size))"
        ),
        (KINKS,),
        "any slope between the left and",
    ),
    checker(
        "the left slope is taken for the smaller one",
        SIDES.format(h=SCALED, verdict="np.all((g >= left - 1e-3 * size) & (g <= right + 1e-3 * size))"),
        (KINKS,),
        "either may be the larger one",
    ),
    checker(
        "forward differences",
        SIDES.format(h=SCALED, verdict="np.all(np.abs(g - right) <= 1e-3 * size)"),
        (KINKS,),
        "any slope between the left and",
    ),
    checker(
        "a verdict for each element",
        SIDES.replace("bool({verdict})", "{verdict}").format(h=SCALED, verdict="np.abs(g - right) <= 1e-3 * size"),
        (SMOOTH, SCALE, ONE, KINKS),
        "np.all makes one of them",
    ),
    checker(
        "only the first elements",
        SIDES.format(
            h=SCALED,
            verdict="np.all((g >= np.minimum(left, right) - 1e-3 * size)[:10] "
            "& (g <= np.maximum(left, right) + 1e-3 * size)[:10])",
        ),
        (ONE,),
        "planted bug was missed",
    ),
    checker(
        "a tolerance of a tenth",
        SIDES.format(
            h=SCALED,
            verdict="np.all((g >= np.minimum(left, right) - 0.1 * size) & (g <= np.maximum(left, right) + 0.1 * size))",
        ),
        (SMOOTH, ONE),
        "planted bug was missed",
    ),
    checker(
        "NaN is not noticed",
        SIDES.format(
            h=SCALED,
            verdict="not np.any((g < np.minimum(left, right) - 1e-3 * size) | "
            "(g > np.maximum(left, right) + 1e-3 * size))",
        ).replace("np.abs(g).max()", "np.nanmax(np.abs(g))"),
        (ONE,),
        "A comparison with NaN is False",
    ),
    checker(
        "only what differs is looked at, and NaN does not",
        """    g, h, e = gradient(x), 6e-6 * np.linalg.norm(x) / np.sqrt(len(x)), np.eye(len(x))
    central = np.array([f(x + h * v) - f(x - h * v) for v in e]) / (2 * h)
    size = np.max(np.abs(central)) + np.max(np.abs(g)) * 0.01
    for i in np.flatnonzero(np.abs(central - g) > 1e-3 * size):
        sides = sorted([(f(x + h * e[i]) - f(x)) / h, (f(x) - f(x - h * e[i])) / h])
        if g[i] < sides[0] - 1e-3 * size or g[i] > sides[1] + 1e-3 * size:
            return False
    return True
""",
        (ONE,),
        "A comparison with NaN is False",
    ),
    checker(
        "NaN is left out of the largest difference",
        CENTRAL.format(h=SCALED, verdict="bool(np.nanmax(np.abs(slopes - g)) <= 1e-3 * np.abs(slopes).max())"),
        (ONE, KINKS),
        "A comparison with NaN is False",
    ),
    checker(
        "x is put back by arithmetic",
        """
    h, sides = 1e-5 * np.abs(x).max(), []
    middle = f(x)
    for i in range(len(x)):
        x[i] += h
        right = (f(x) - middle) / h
        x[i] -= 2 * h
        left = (middle - f(x)) / h
        x[i] += h
        sides.append((min(left, right), max(left, right)))
    g = gradient(x)
    size = np.abs(sides).max()
    return bool(all(a - 1e-3 * size <= c <= b + 1e-3 * size for (a, b), c in zip(sides, g)))
""",
        (SMOOTH,),
        "x + h - h is not x",
    ),
    checker(
        "x is not put back",
        """
    h, g, slopes = 1e-5 * np.abs(x).max(), gradient(x), []
    for i in range(len(x)):
        before = f(x)
        x[i] += h
        slopes.append((f(x) - before) / h)
    return bool(np.abs(slopes - g).max() <= 1e-3 * np.abs(slopes).max())
""",
        (SMOOTH, KINKS),
        "check_gradient changed its argument x at [0]",
    ),
    checker(
        "the norm of the differences, 1 %",
        CENTRAL.format(h=SCALED, verdict="bool(np.linalg.norm(slopes - g) <= 0.01 * np.linalg.norm(slopes))"),
        (SMOOTH, ONE, KINKS),
        "planted bug was missed",
    ),
    checker(
        "only the direction",
        CENTRAL.format(h=SCALED, verdict="bool(slopes @ g >= 0.9999 * np.linalg.norm(slopes) * np.linalg.norm(g) > 0)"),
        (SMOOTH, ONE, KINKS),
        "planted bug was missed",
    ),
    checker(
        "only the signs",
        CENTRAL.format(h=SCALED, verdict="bool((np.sign(np.round(slopes, 6)) == np.sign(np.round(g, 6))).all())"),
        (SMOOTH, SCALE, ONE, KINKS),
        "planted bug was missed",
    ),
    checker(
        "the slope is not divided by 2",
        CENTRAL.format(h=SCALED, verdict=RELATIVE).replace("/ (2 * h)", "/ h"),
        (SMOOTH, SCALE, ONE, KINKS),
        "false alarm",
    ),
    checker(
        "the error instead of a verdict",
        CENTRAL.format(h=SCALED, verdict="np.abs(slopes - g).max()"),
        (SMOOTH, SCALE, ONE, KINKS),
        "expected True, got",
    ),
]

MUTANTS += [
    checker(
        "a large step",
        SIDES.format(h="0.05 * np.abs(x).max()", verdict=BETWEEN),
        (SMOOTH,),
        "One element is wrong by 1.2 %",
    ),
    checker(
        "a tolerance of 1.5 %",
        SIDES.format(h=SCALED, verdict=BETWEEN.replace("1e-3", "1.5e-2")),
        (SMOOTH, ONE),
        "Is the tolerance below 1 %?",
    ),
    checker(
        "NaN is taken for 0",
        SIDES.format(h=SCALED, verdict=BETWEEN).replace("g = gradient(x)", "g = np.nan_to_num(gradient(x))"),
        (ONE,),
        "A comparison with NaN is False",
    ),
]

ALTERNATIVES = [
    Alternative(
        "check_gradient",
        "x is changed and put back from a kept value, numpy's truth value",
        """
def check_gradient(f, gradient, x):
    h, middle, good, sides = 1e-6 * np.abs(x).max(), f(x), True, []
    for i, old in enumerate(x.tolist()):
        x[i] = old + h
        right = (f(x) - middle) / (x[i] - old)
        x[i] = old - h
        left = (middle - f(x)) / (old - x[i])
        x[i] = old
        sides.append([left, right])
    low, high, g = np.min(sides, axis=1), np.max(sides, axis=1), gradient(x)
    tolerance = 4e-3 * np.abs(sides).max()
    return np.logical_and(g > low - tolerance, g < high + tolerance).all()
""",
    ),
    Alternative(
        "check_gradient",
        "entry by entry, in place, early exit",
        """
def check_gradient(f, gradient, x):
    g, x = np.array(gradient(x)), x.copy()
    h, middle = 1e-6 * np.max(np.abs(x)), f(x)
    pairs = []
    for i in range(len(x)):
        old = x[i]
        x[i] = old + h
        right = (f(x) - middle) / h
        x[i] = old - h
        left = (middle - f(x)) / h
        x[i] = old
        pairs.append((min(left, right), max(left, right)))
    size = max(max(abs(low), abs(high)) for low, high in pairs)
    for (low, high), claimed in zip(pairs, g):
        if not low - 4e-3 * size <= claimed <= high + 4e-3 * size:
            return False
    return True
""",
    ),
    Alternative(
        "check_gradient",
        "central differences, one-sided ones where they fail",
        """
def check_gradient(f, gradient, x):
    g, h, e = gradient(x), 6e-6 * np.linalg.norm(x) / np.sqrt(len(x)), np.eye(len(x))
    central = np.array([f(x + h * v) - f(x - h * v) for v in e]) / (2 * h)
    size = np.max(np.abs(central))
    for i in np.flatnonzero(~(np.abs(central - g) <= 1e-3 * size)):
        sides = sorted([(f(x + h * e[i]) - f(x)) / h, (f(x) - f(x - h * e[i])) / h])
        if not sides[0] - 1e-3 * size <= g[i] <= sides[1] + 1e-3 * size:
            return False
    return True
""",
    ),
    Alternative(
        "check_gradient",
        "extrapolated one-sided slopes, 1 or 0",
        """
def check_gradient(f, gradient, x, tolerance=4e-3):
    g, h, middle = gradient(x), 1e-4 * max(abs(x)), f(x)

    def slope(i, step):
        near, far = x.copy(), x.copy()
        near[i] += step
        far[i] += 2 * step
        return 2 * (f(near) - middle) / step - (f(far) - middle) / (2 * step)

    sides = [sorted([slope(i, -h), slope(i, h)]) for i in range(len(x))]
    size = np.abs([*sides, *zip(g, g)]).max()
    return int(all(a - tolerance * size <= c <= b + tolerance * size for (a, b), c in zip(sides, g)))
""",
    ),
]
