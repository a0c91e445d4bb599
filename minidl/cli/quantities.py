"""Amounts as people type and read them: 100MB, 64KiB; 12.3 ms; 1 epoch, 2 epochs."""

from __future__ import annotations

import re

from minidl.plots.style import bytes_text

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_AMOUNT = re.compile(r"(?P<number>\d+(\.\d*)?(e\d+)?)\s*((?P<prefix>[kmgt]?)(?P<binary>i?)b?)", re.IGNORECASE)
_UNITS = ((1, "s"), (1e3, "ms"), (1e6, "µs"))


def counted(number: int, noun: str) -> str:
    """The number and the noun, which takes an s unless the number is 1.

    >>> counted(1, "epoch"), counted(2, "epoch")
    ('1 epoch', '2 epochs')
    """
    return f"{number} {noun}{'s' * (number != 1)}"


def parse_bytes(text: str) -> int:
    """A number of bytes: "4", "64KiB" (1 KiB = 1024 bytes), "100MB", "1.5g" (1 KB = 1000 bytes, the B is optional).

    Raises
        ValueError  the text is not such an amount, or not a whole number of bytes

    >>> parse_bytes("64KiB"), parse_bytes("100MB"), parse_bytes("1e6")
    (65536, 100000000, 1000000)
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or (match["binary"] and not match["prefix"]):
        raise ValueError(f"{text!r} is not a number of bytes: write it as 4096, 64KiB or 100MB")
    amount = float(match["number"]) * (1024 if match["binary"] else 1000) ** _POWERS[match["prefix"].lower()]
    if not amount.is_integer():  # 1e999, which is infinite, is not an integer either
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(amount)


def size_text(nbytes: int) -> str:
    """A size that a user chose: in powers of 1024 if it is a whole number of them, otherwise of 1000.

    >>> size_text(65536), size_text(100_000_000), size_text(4)
    ('64 KiB', '100 MB', '4 B')
    """
    for power, unit in ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB")):
        if nbytes % power == 0 and nbytes % 1000:
            return f"{nbytes // power} {unit}"
    return bytes_text(nbytes)


def seconds_text(seconds: float) -> str:
    """A time to four digits, in the unit in which the number lies between 1 and 1000.

    >>> seconds_text(0.16), seconds_text(2e-5), seconds_text(0)
    ('160 ms', '20 µs', '0 s')
    """
    if not seconds:
        return "0 s"
    factor, unit = _unit(seconds)
    return f"{seconds * factor:.4g} {unit}"


def deviation_text(deviation: float, seconds: float) -> str:
    """A standard deviation of times, in the unit of their mean `seconds`.

    >>> deviation_text(3.71e-4, 0.0189), deviation_text(0.0254, 0.16)
    ('0.37 ms', '25 ms')
    """
    factor, unit = _unit(seconds)
    scaled = deviation * factor
    return f"{scaled:.0f} {unit}" if scaled >= 9.5 else f"{scaled:.2g} {unit}"


def _unit(seconds: float) -> tuple[float, str]:
    return next(((factor, unit) for factor, unit in _UNITS if seconds * factor >= 0.99995), (1e9, "ns"))
