"""Tries every pair of ways to share the work of training, and writes the table of those that go together.

`python -m benchmarks.pairs` trains a tiny job with each pair in a simulation, and writes `minidl/which_go_together.md`.
A cell shows that the pair trains, or the error message with which minidl refuses it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple

import numpy as np

from minidl import parallel
from minidl.cli import engines, strategies
from minidl.cli import job as jobs
from minidl.cli.train import train as train_command
from minidl.cli.train.options import completed, with_plan
from minidl.data import Dataset, Splits
from minidl.data.pairs import minibatch

PAGE = Path(__file__).resolve().parent.parent / "minidl" / "which_go_together.md"

MLP, LENET, GPT = "mlp", "lenet", "gpt:layers=2,heads=2,width=8,context=8"
EXPERTS = f"{GPT},experts=2"
ALL = MLP, LENET, GPT, EXPERTS
SAMPLES, BATCH_SIZE = 28, 12  # a last minibatch of 4


class Way(NamedTuple):
    """One way to share work, as it is typed after `minidl train`.

    typed   how the page shows it
    plan    settings of --plan
    others  other options, by name
    models  models that this way can train; a pair trains the first one that is in both of its lists
    """

    typed: str
    plan: Mapping[str, str] = {}
    others: Mapping[str, Any] = {}
    models: tuple[str, ...] = ALL


def _plan(typed: str, *models: str, **other: str) -> Way:
    plan = dict(setting.split("=") for setting in typed.split(",")) | other
    return Way(typed, plan=plan, models=models or ALL)


def _strategy(text: str, **others: Any) -> Way:
    return Way(text, plan={"dp": "2"}, others={"strategy": text, **others})


STAGED = {"pp": "2", "micro_batches": "2"}
WAYS = [
    _plan("dp=2"),
    _plan("pp=2", schedule="1f1b", micro_batches="2"),
    _plan("schedule=zb-h1", **STAGED),
    _plan("schedule=interleaved", LENET, GPT, EXPERTS, **STAGED),
    _plan("schedule=pipedream", pp="2"),
    _plan("tp=2"),
    _plan("sequence=true", GPT, EXPERTS, tp="2"),
    _plan("sample_slices=true", LENET, tp="2"),
    _plan("spatial=2", LENET),
    _plan("ep=2", EXPERTS),
    *(_plan(f"shard={stage}", dp="2") for stage in (1, 3)),
    _plan("recompute=full"),
    _plan("recompute=selective", GPT, EXPERTS),
    Way("bfloat16", others={"precision": "bfloat16"}),
    Way("float16", others={"precision": "float16"}),
    _strategy("synchronous:compressor=ef(top_k(0.1))"),
    _strategy("sharded:stage=2,offload=offload(optimizer)", device_memory="80MB@10us/16GB"),
    _strategy("parameter_server"),
    _strategy("locked_parameter_server"),
    _strategy("backup_workers"),
    _strategy("elastic_averaging"),
    _strategy("local_sgd:period=2"),
    _strategy("hogwild"),
    Way("--elastic", others={"elastic": True}),
]
DEFAULTS = {name: one.default for name, one in inspect.signature(train_command).parameters.items()}


class Unstarted:
    """An engine that starts no ranks: to find out whether a job is refused before they start."""

    class StartError(Exception):
        """Ranks would start now, so the job was not refused."""

    def run(self, *_: Any) -> Any:
        raise self.StartError


@cache
def few_samples(model: str) -> Splits:
    """A few samples for the model."""
    splits = jobs.build(completed(options_of([Way("", models=(model,))]))[0]).build_data()
    train, test = (minibatch(each, np.arange(SAMPLES)) for each in splits)
    return Splits(Dataset(*train), Dataset(*test), classes=splits.classes)


def options_of(ways: list[Way]) -> dict[str, Any]:
    """The options of `minidl train` for these ways together. ValueError if they contradict each other."""
    plan = {name: value for way in ways for name, value in way.plan.items()}
    others = {name: value for way in ways for name, value in way.others.items()}
    common = [model for model in ways[0].models if all(model in way.models for way in ways)]
    model = (common or ways[-1].models)[0]
    data = "stdlib_text" if model.startswith("gpt") else "digits"
    options = DEFAULTS | {"model": model, "data": data, "on": "simulation", "epochs": 1, "batch_size": BATCH_SIZE}
    options |= {"nodes": 2} | others
    if plan:
        options |= with_plan(",".join(f"{name}={value}" for name, value in plan.items()), options, others.keys())
    return options


def attempt(ways: list[Way], engine: Any = None) -> None:
    """Train a tiny job with these ways together, by default in a simulation. Raises ValueError if they are refused."""
    options, strategy, rates = completed(options_of(ways))
    job = replace(jobs.build(options), data=few_samples(options["model"]))
    strategies.check(strategy, rates, job, options["nodes"], options["model"])
    memory = None if options["device_memory"] is None else engines.memory_of(options["device_memory"])
    parallel.train(
        job,
        strategy,
        options["nodes"],
        engine or engines.engine_of("simulation", engines.simulated_node(1e9), memory=memory),
        elastic=options["elastic"],
    )


def refusal(ways: list[Way], engine: Any = None) -> str:
    """The error message that refuses these ways together; "" if they are not refused."""
    try:
        attempt(ways, engine)
    except Unstarted.StartError:
        return ""
    except ValueError as error:
        return str(error)
    return ""


def pairs() -> Iterator[tuple[int, int]]:
    """Yield the pairs to try, as numbers of ways from 1: all but those that give one setting two different values."""
    for one, other in combinations(range(1, len(WAYS) + 1), 2):
        mine, theirs = ({**WAYS[number - 1].plan, **WAYS[number - 1].others} for number in (one, other))
        if all(mine[name] == theirs[name] for name in mine.keys() & theirs.keys()):
            yield one, other


def refusals(engine: Any = None) -> dict[tuple[int, int], str]:
    """Try all pairs of ways; return the error message of each refused pair. A pair is named by its two numbers."""
    said = {(one, other): refusal([WAYS[one - 1], WAYS[other - 1]], engine) for one, other in pairs()}
    return {pair: sentence for pair, sentence in said.items() if sentence}


def page(refused: Mapping[tuple[int, int], str]) -> str:
    """The page that says so."""
    reasons: dict[str, str] = {}  # the first sentence of each reason, by what the sentences have in common
    letters, tried = dict[tuple[int, int], str](), list(pairs())
    for pair, sentence in refused.items():
        common = _DIFFERENT.sub("", sentence)
        reasons.setdefault(common, sentence)
        letters[pair] = LETTERS[list(reasons).index(common)]
    last = len(WAYS)
    table = [["", "", *map(str, range(1, last))], ["---"] * (last + 1)]
    for row, way in enumerate(WAYS, start=1):
        cells = (letters.get(pair, "yes") if (pair := (column, row)) in tried else "" for column in range(1, last))
        table.append([str(row), f"`{way.typed}`", *cells])
    return TEXT.format(
        table="\n".join(f"| {' | '.join(cells)} |" for cells in table),
        reasons="\n".join(f"- **{letter}** {said}" for letter, said in zip(LETTERS, reasons.values(), strict=False)),
    )


_DIFFERENT = re.compile(r"--plan \S+ and --strategy \S+|\b[A-Z]\w+(?= cannot|:| update)|\w+=\d( is \d ranks)?")
"""What differs between messages that give the same reason: it is removed before they are compared."""

LETTERS = ["".join(letters) for count in (1, 2) for letters in product(ascii_lowercase, repeat=count)]
"""Names of the reasons: a to z, then aa, ab, ..."""

TEXT = """# Which ways to share work go together

`minidl train` shares the work of training by a `--plan`, by a `--strategy`, by both, in 16 bits (`--precision`),
and with `--elastic`. Where the table says yes, one run can use both ways. A letter stands for the reason why it
cannot; in an empty cell the two ways are different values of one setting. Strategies have two workers here (`dp=2`).
A plan with a strategy that has servers splits each worker, as in DistBelief:
`--strategy parameter_server --plan dp=2,pp=2`, or `ParameterServer(replica=Hybrid(pp=2))` in a program.

{table}

Every pair was tried on a tiny job, an MLP, LeNet or GPT: it has trained in a simulation, or it was refused before any
rank started. `python -m benchmarks.pairs` tries them again and writes this page. A sentence is that of the first pair
with its letter:

{reasons}
"""

if __name__ == "__main__":
    PAGE.write_text(page(refusals()), encoding="utf-8")
