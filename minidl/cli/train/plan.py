"""Translate `--plan dp=2,pp=2,tp=2` to a strategy and a number of nodes."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Mapping
from typing import Any

from minidl.arguments import one_of, whole_number
from minidl.cli import calls

AXES = ("dp", "pp", "tp")
SETTINGS = ("sequence", "micro_batches", "schedule", "chunks_per_stage", "cuts", "weight_versions", "recompute")


def with_plan(plan: str, options: Mapping[str, Any], asked: Collection[str]) -> dict[str, Any]:
    """The options `strategy` and `nodes` of a plan.

    asked: names of the options given on the command line. Raises ValueError if they contradict the plan.
    """
    strategy, nodes = strategy_and_nodes(plan)
    if "strategy" in asked:
        raise ValueError(f"--plan {plan} and --strategy {options['strategy']} both say how to train: give one of them")
    if "nodes" in asked and options["nodes"] != nodes:
        raise ValueError(f"--plan {plan} needs {nodes} nodes, got --nodes {options['nodes']}: leave out --nodes")
    return {"strategy": strategy, "nodes": nodes}


def strategy_and_nodes(plan: str) -> tuple[str, int]:
    """The text of the strategy for a plan, and the number of nodes that it needs.

    Raises
        ValueError  the text is no plan

    >>> strategy_and_nodes("pp=4,dp=2,schedule=gpipe")
    ('hybrid:dp=2,pp=4,tp=1,schedule=gpipe', 8)
    """
    call = calls.call_of("plan", f"plan:{plan}")
    if call.args or not call.keywords:
        raise ValueError(f"--plan {plan!r} is no plan: write the extent of each axis, such as pp=4,dp=2")
    extents: dict[str, int] = dict.fromkeys(AXES, 1)
    settings: dict[str, str] = dict.fromkeys(AXES, "1")
    given = [str(pair.arg) for pair in call.keywords]
    for pair in call.keywords:
        name = one_of("--plan: an axis or a setting", str(pair.arg), (*AXES, *SETTINGS))
        if given.count(name) > 1:
            raise ValueError(f"--plan: {name} is given twice")
        settings[name] = ast.unparse(pair.value).strip("'")
        if name in AXES:
            extent = calls.value_of("--plan", name, pair.value, int, {})
            extents[name] = whole_number(f"--plan {plan}: {name}", extent, at_least=1)
    text = ",".join(f"{name}={value}" for name, value in settings.items())
    return f"hybrid:{text}", math.prod(extents.values())
