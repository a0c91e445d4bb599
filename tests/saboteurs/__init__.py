"""Saboteurs: each spoils the solution of any exercise in one general way, or gives its result an unusual form.

A saboteur is the text of a student's cell that follows the solution and puts another function in place of `NAME`. It
prints SABOTAGED when it has changed something: if it never does, no case of the check has such a value.
`tests/course/checks/test_saboteurs.py` has the table that says for each exercise who must lose.

Results are the returned values and the arrays that the solution has changed in place.
"""

from __future__ import annotations

TOOLS = '''
import numpy as np
right, answers = NAME, {}

def told(new, old):
    """The new value; says so if it differs from the old one."""
    if type(new) is not type(old) or getattr(new, "dtype", None) != getattr(old, "dtype", None) or not np.array_equal(
        new, old, equal_nan=getattr(old, "dtype", np.dtype(int)).kind in "fc"
    ):
        print("SABOTAGED")
    return new

def mapped(value, leaf):
    if isinstance(value, (tuple, list)):
        return type(value)(mapped(each, leaf) for each in value)
    if isinstance(value, dict):
        return {key: mapped(each, leaf) for key, each in value.items()}
    return leaf(value)

def floats(change):
    """Change arrays of real numbers, and real numbers, which keep their type."""
    def leaf(value):
        if getattr(value, "dtype", np.dtype(type(value) if type(value) is float else int)).kind != "f":
            return value
        array = np.asarray(value)
        new = change(array).astype(array.dtype)
        return told(new if isinstance(value, np.ndarray) else type(value)(new), value)
    return leaf

def arrays(kinds, change):
    """Change arrays of these kinds of numbers."""
    def leaf(value):
        return told(change(value), value) if getattr(value, "ndim", 0) and value.dtype.kind in kinds else value
    return leaf

def inside(value):
    """The arrays in a value."""
    found = []
    mapped(value, lambda each: found.append(each) if isinstance(each, np.ndarray) else None)
    return found

def results(leaf):
    """The solution with its results changed, also those that it writes into its arguments."""
    def spoiled(*arguments):
        before = [array.copy() for array in inside(list(arguments))]
        result = right(*arguments)
        for old, array in zip(before, inside(list(arguments))):
            if array.flags.writeable and not np.array_equal(old, array):
                new = leaf(array)
                array[...] = new if getattr(new, "dtype", None) == array.dtype else array
        return mapped(result, leaf)
    return spoiled

def digits(array, count=6):
    exponent = np.floor(np.log10(np.abs(array), where=array != 0, out=np.zeros(array.shape)))
    scale = 10.0 ** (exponent - count + 1)
    return np.where(np.isfinite(array), np.round(array / scale) * scale, array)

def beyond(array, count=1000):
    new = array.copy()
    new.reshape(-1)[count:] = 0
    return new

def shape(value):
    """What a function that takes two calls for the same one looks at."""
    if isinstance(value, np.ndarray):
        return value.shape
    if isinstance(value, (tuple, list)):
        return tuple(map(shape, value))
    return value if isinstance(value, (int, str, type(None))) else type(value)

def plain(value):
    """A value that can be compared as text; nothing for anything else."""
    return value if isinstance(value, (np.ndarray, int, float, str)) or hasattr(value, "__dataclass_fields__") else ""

def remembering(of):
    """Takes two calls for the same one if what `of` makes of their arguments is equal."""
    def remembered(*arguments):
        key = of(arguments)
        values = str(mapped(list(arguments), plain))
        if key not in answers:
            answers[key] = values, right(*arguments)
        elif answers[key][0] != values:
            print("SABOTAGED")
        return answers[key][1]
    return remembered

def first(arguments):
    """The first argument, a communicator left aside."""
    return shape(arguments[1 if hasattr(arguments[0], "rank") else 0])

class Blocking:
    """A communicator whose sends all wait until the message is taken, if it is long."""
    def __init__(self, comm):
        self.comm = comm
    def __getattr__(self, name):
        return getattr(self.comm, name)
    def isend(self, x, dst, **options):
        print("SABOTAGED")
        self.comm.send(x, dst, **options)
        return self
    def wait(self):
        return None
    def sendrecv(self, x, dst, src, **options):
        print("SABOTAGED")
        self.comm.send(x, dst, **options)
        return self.comm.recv(src, **options)

def blocking(comm, *arguments):
    return right(Blocking(comm) if hasattr(comm, "rank") else comm, *arguments)

def destroying(*arguments):
    import copy
    before = [array.copy() for array in inside(list(arguments))]
    result = copy.deepcopy(right(*arguments))
    for old, array in zip(before, inside(list(arguments))):
        if array.size and array.flags.writeable and np.array_equal(old, array):
            array[...] = 7
            print("SABOTAGED")
    return result

def buffering(*arguments):
    """Results in the same arrays for ever; on ranks each call has a process of its own."""
    result, count = right(*arguments), iter(range(1000))
    if hasattr(arguments[0], "rank"):
        return result
    def leaf(value):
        if not isinstance(value, np.ndarray):
            return value
        buffer = answers.setdefault((next(count), value.shape, value.dtype), value)
        if buffer is not value and not np.array_equal(buffer, value):
            print("SABOTAGED")
            buffer[...] = value
        return buffer
    return mapped(result, leaf)

def locking(*arguments):
    result = right(*arguments)
    for array in [] if hasattr(arguments[0], "rank") else inside(list(arguments)):
        array.flags.writeable = False
        print("SABOTAGED")
    return result

def raising(*arguments):
    try:
        return right(*arguments)
    except Exception as error:
        print("SABOTAGED")
        raise type("Special" + type(error).__name__, (type(error),), {})(*error.args) from None
'''

SABOTEURS = {
    "float32": "results(floats(lambda array: array.astype(np.float32)))",
    "six digits": "results(floats(digits))",
    "integers": "results(floats(np.trunc))",
    "tiny is zero": "results(floats(lambda array: np.where(np.abs(array) < 1e-6, 0, array)))",
    "first 1000": "results(arrays('fiu', beyond))",
    "no single one": "results(arrays('fiu', lambda array: array * 0 if array.size == 1 else array))",
    "int8": "results(arrays('iu', lambda array: array.astype(np.int8).astype(array.dtype)))",
    "complex": "results(arrays('f', lambda array: array.astype(complex)))",
    "remembers": "remembering(shape)",
    "destroys": "destroying",
    "remembers the first argument": "remembering(first)",
    "sends block": "blocking",
    "one buffer": "buffering",
    "locks": "locking",
}
"""Wrong answers."""

ODDITIES = {
    "lists": "results(arrays('fiu', lambda array: array.tolist()))",
    "numpy's numbers": "results(lambda one: told(np.array(one)[()], one) if type(one) in (int, float) else one)",
    "special errors": "raising",
}
"""Right answers of an unusual form."""


def cell(name: str, exercise: str) -> str:
    """The student's cell with this saboteur."""
    return f"{TOOLS}\nNAME = {(SABOTEURS | ODDITIES)[name]}\n".replace("NAME", exercise)
