"""Times and their standard deviations as people read them: 12.3 ms, ± 0.4 ms."""

from __future__ import annotations

_UNITS = ((1, "s"), (1e3, "ms"), (1e6, "µs"))


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
