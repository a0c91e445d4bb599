"""`--plan pp=4,dp=2`: the strategy and the nodes that a plan names."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from typing import Any

from minidl.arguments import one_of
from minidl.cli import calls

SETTINGS = {"pp": "stages", "dp": "replicas"}
"""The axes of a plan, and what the strategy calls them."""

OTHERS = ("micro_batches", "schedule", "chunks_per_stage", "cuts", "weight_versions", "recompute")


def with_plan(plan: str, options: Mapping[str, Any], asked: Collection[str]) -> dict[str, Any]:
    """The options `strategy` and `nodes` of a plan.

    asked: names of the options that stand on the command line. Raises ValueError if they contradict the plan.
    """
    strategy, nodes = strategy_and_nodes(plan)
    if "strategy" in asked:
        raise ValueError(f"--plan {plan} and --strategy {options['strategy']} both say how to train: give one of them")
    if "nodes" in asked and options["nodes"] != nodes:
        raise ValueError(f"--plan {plan} needs {nodes} nodes, got --nodes {options['nodes']}: leave out --nodes")
    return {"strategy": strategy, "nodes": nodes}


def strategy_and_nodes(plan: str) -> tuple[str, int]:
    """The text of the strategy that carries out a plan, and how many nodes it needs.

    Raises
        ValueError  the text is no plan

    >>> strategy_and_nodes("pp=4,dp=2,schedule=gpipe")
    ('pipeline:stages=4,replicas=2,schedule=gpipe', 8)
    """
    call = calls.call_of("plan", f"plan:{plan}")
    if call.args or not call.keywords:
        raise ValueError(f"--plan {plan!r} is no plan: write the extent of each axis, such as pp=4,dp=2")
    extents: dict[str, int] = dict.fromkeys(SETTINGS, 1)
    settings: dict[str, str] = dict.fromkeys(SETTINGS, "1")
    given = [str(pair.arg) for pair in call.keywords]
    for pair in call.keywords:
        name = one_of("--plan: an axis or a setting", str(pair.arg), (*SETTINGS, *OTHERS))
        if given.count(name) > 1:
            raise ValueError(f"--plan: {name} is given twice")
        settings[name] = ast.unparse(pair.value).strip("'")
        if name in SETTINGS:
            extents[name] = calls.value_of("--plan", name, pair.value, int, {})
    text = ",".join(f"{SETTINGS.get(name, name)}={value}" for name, value in settings.items())
    return f"pipeline:{text}", extents["pp"] * extents["dp"]
