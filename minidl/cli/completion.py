"""What the shell offers for the value of an option when Tab is pressed; `minidl --install-completion` sets it up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

# Each function imports what it lists: a command starts at once because its options do not.


def _models() -> Iterable[str]:
    from minidl.cli.models import MODELS

    return MODELS


def _data() -> Iterable[str]:
    from minidl import data

    return data.NAMES


def _kernels() -> Iterable[str]:
    from minidl import kernels

    return kernels.NAMES


def _engines() -> Iterable[str]:
    from minidl.cli.engines import ENGINES

    return ENGINES


def _networks() -> Iterable[str]:
    from minidl.cluster.cost.network import PRESETS

    return [*PRESETS, *map(str, sorted(Path().glob("*.json")))]


def _strategies() -> Iterable[str]:
    from minidl.cli.strategies import STRATEGIES

    return STRATEGIES


def _optimizers() -> Iterable[str]:
    from minidl.cli.optimizers import OPTIMIZERS

    return OPTIMIZERS


def _collectives() -> Iterable[str]:
    from minidl.cli.simulate.cases import ALGORITHMS

    return ALGORITHMS


def _algorithms() -> Iterable[str]:
    from minidl.cli.simulate.cases import ALGORITHMS

    return ALGORITHMS["all_reduce"]


def _schedules() -> Iterable[str]:
    from minidl.parallel.pipeline import SCHEDULES

    return SCHEDULES


def _patterns() -> Iterable[str]:
    from minidl.cluster.calibrate import PATTERNS

    return PATTERNS


def _offered(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    def beginning_with(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return beginning_with


MODELS, DATA, KERNELS, ENGINES = _offered(_models), _offered(_data), _offered(_kernels), _offered(_engines)
NETWORKS, STRATEGIES, COLLECTIVES = _offered(_networks), _offered(_strategies), _offered(_collectives)
ALGORITHMS, SCHEDULES, PATTERNS = _offered(_algorithms), _offered(_schedules), _offered(_patterns)
OPTIMIZERS = _offered(_optimizers)
