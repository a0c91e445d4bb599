"""The networks of a simulation: with a name, from a file, by their constants, or racks of machines."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from minidl.arguments import one_of
from minidl.cli.engines import MOST_SIMULATED
from minidl.cli.quantities import counted, parse_rate, parse_seconds
from minidl.cluster.cost.network import PRESETS, Network

Named = tuple[str, Network]
_RACKS = re.compile(r"\s*(\d+)\s*[x×*]\s*(\d+)\s*", re.IGNORECASE)  # noqa: RUF001  # × is what it says


def networks(options: dict[str, Any], names: list[str]) -> list[Named]:
    """Each network with the name that tables and pictures give it; `names`: what --network says, or its default.

    Raises
        ValueError  an unknown name, constants that cannot be, or options that do not go together
        OSError     a file that cannot be read
    """
    alpha, beta, gamma = options["alpha"], options["beta"], options["gamma"]
    if options["racks"] is not None:
        for flag, given in (("--network", options["network"]), ("--alpha", alpha), ("--beta", beta)):
            if given is not None:
                raise ValueError(f"--racks describes the network by --nic and --uplink: leave out {flag}")
        return [racks(options["racks"], options["nic"], options["uplink"], gamma or 0.0)]
    for flag in ("nic", "uplink"):
        if options[flag] is not None:
            raise ValueError(f"--{flag} is a link of racks: give --racks too, such as --racks 8x8")
    found = [(name, _named(name)) for name in names]
    if gamma is not None:
        found = [(name, replace(one, gamma=gamma)) for name, one in found]
    if alpha is None and beta is None:
        return found
    if len(found) > 1:
        raise ValueError("--alpha and --beta describe one network: give at most one --network with them")
    own = found[0][1]
    if own.topology is not None:
        raise ValueError(f"--alpha and --beta cannot replace the links of the racks in {found[0][0]}")
    own = Network(own.alpha if alpha is None else alpha, own.beta if beta is None else beta, own.gamma)
    return [(f"alpha {own.alpha:g}, beta {own.beta:g}", own)]


def racks(text: str, nic: str | None, uplink: str | None, gamma: float) -> Named:
    """The network of RACKSxPER_RACK nodes whose links are LATENCY,SPEED.

    >>> racks("8x8", "1us,1200Gbit", "5us,100Gbit", 0.0)[0]
    '8 racks of 8'
    """
    match = _RACKS.fullmatch(text)
    if match is None:
        raise ValueError(f"--racks takes the number of racks and of nodes in each, such as 8x8, got {text!r}")
    count, per_rack = map(int, match.groups())
    if count * per_rack > MOST_SIMULATED:
        raise ValueError(f"--racks {text} has {count * per_rack:,} nodes: at most {MOST_SIMULATED:,} are simulated")
    links = (_link("--nic", nic, "1us,1200Gbit"), _link("--uplink", uplink, "5us,100Gbit"))
    return f"{counted(count, 'rack')} of {per_rack}", Network.tree(count, per_rack, *links, gamma=gamma)


def _link(flag: str, text: str | None, example: str) -> tuple[float, float]:
    if text is None:
        raise ValueError(f"--racks needs {flag} too: the latency and the speed of that link, such as {flag} {example}")
    latency, comma, speed = text.partition(",")
    if not comma:
        raise ValueError(f"{flag} takes a latency and a speed, such as {example}, got {text!r}")
    try:
        return parse_seconds(latency), parse_rate(speed)
    except ValueError as error:
        raise ValueError(f"{flag} {text}: {error}") from None


def _named(name: str) -> Network:
    if name.lower().endswith(".json"):
        return Network.load(name)
    return Network.preset(one_of("--network", name.lower(), PRESETS, "or give a file .json"))
