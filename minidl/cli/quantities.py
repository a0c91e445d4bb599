"""Amounts as people type and read them: 100MB, 64KiB; 1 epoch, 2 epochs."""

from __future__ import annotations

import re

from minidl.plots.style import bytes_text

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_AMOUNT = re.compile(r"(?P<number>\d+(\.\d*)?(e\d+)?)\s*((?P<prefix>[kmgt]?)(?P<binary>i?)b?)", re.IGNORECASE)
_NUMBER = r"(?P<number>\d+(\.\d*)?(e[+-]?\d+)?)"
_PER_SECOND = {
    "ns": 1e9,
    "us": 1e6,
    "\N{MICRO SIGN}s": 1e6,
    "\N{GREEK SMALL LETTER MU}s": 1e6,
    "ms": 1e3,
    "s": 1,
    "": 1,
}
_TIME = re.compile(_NUMBER + rf"\s*(?P<unit>{'|'.join(_PER_SECOND)})", re.IGNORECASE | re.ASCII)
_RATE = re.compile(_NUMBER + r"\s*(?P<prefix>[kKmMgGtT]?)(?P<unit>[bB]it|b|B)(/s|ps)?", re.ASCII)
_FLOPS = re.compile(_NUMBER + r"\s*(?P<prefix>[kKmMgGtTpP])FLOP(S|/s|s)?", re.ASCII)


def counted(number: int, noun: str) -> str:
    """The number and the noun, which takes an s unless the number is 1.

    >>> counted(1, "epoch"), counted(2, "epoch")
    ('1 epoch', '2 epochs')
    """
    return f"{number} {noun}{'s' * (number != 1)}"


def parse_bytes(text: str) -> int:
    """A number of bytes: "4", "64KiB" (1 KiB = 1024 bytes), "100MB", "1.5g" (1 KB = 1000 bytes, the B is optional).

    Raises
        ValueError  the text is not a whole number of bytes

    >>> parse_bytes("64KiB"), parse_bytes("100MB"), parse_bytes("1e6")
    (65536, 100000000, 1000000)
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match and match["prefix"].isupper() and match[0].endswith("b"):
        raise ValueError(f"{text!r} reads as bits: write {text.strip()[:-1]}B for bytes")
    if match is None or (match["binary"] and not match["prefix"]):
        raise ValueError(f"{text!r} is not a number of bytes: write it as 4096, 64KiB or 100MB")
    amount = float(match["number"]) * (1024 if match["binary"] else 1000) ** _POWERS[match["prefix"].lower()]
    if not amount.is_integer():  # 1e999, which is infinite, is not an integer either
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(amount)


def parse_seconds(text: str) -> float:
    """A time in seconds: "5us", "1.5 ms", "2e-6" (seconds).

    Raises
        ValueError  the text is not a time

    >>> parse_seconds("5us"), parse_seconds("2e-6")
    (5e-06, 2e-06)
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no time: write it as 5us, 1.5ms or 2e-6s")
    return float(f"{match['number']}") / _PER_SECOND[match["unit"].lower()]


def parse_rate(text: str) -> float:
    """Bytes per second: "100Gbit", "100 Gbit/s", "100Gbps", "12.5GB/s", "450GB" (b: bits, B: bytes; powers of 1000).

    Raises
        ValueError  the text is not a rate

    >>> parse_rate("100Gbit"), parse_rate("100Gb/s"), parse_rate("12.5GB/s")
    (12500000000.0, 12500000000.0, 12500000000.0)
    """
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no speed: write it as 100Gbit or 12.5GB/s")
    return float(match["number"]) * 1000 ** _POWERS[match["prefix"].lower()] / (1 if match["unit"] == "B" else 8)


def parse_flops(text: str) -> float:
    """Floating-point operations per second: "312 TFLOP/s", "312TFLOPS", "1.2 PFLOP/s".

    Raises
        ValueError  the text is no such speed

    >>> parse_flops("312 TFLOP/s"), parse_flops("1.2PFLOPS")
    (312000000000000.0, 1200000000000000.0)
    """
    match = _FLOPS.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no speed of computing: write it as 312 TFLOP/s")
    return float(match["number"]) * 1000 ** "kmgtp".index(match["prefix"].lower()) * 1000


def size_text(nbytes: int) -> str:
    """A size that a user chose: in powers of 1024 if it is a whole number of them, otherwise of 1000.

    >>> size_text(65536), size_text(100_000_000), size_text(4)
    ('64 KiB', '100 MB', '4 B')
    """
    for power, unit in ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB")):
        if nbytes % power == 0 and nbytes % 1000:
            return f"{nbytes // power} {unit}"
    return bytes_text(nbytes)
