"""An entry on hidden clusters: its recipes come as plain data, and the runs are made here, where it cannot reach."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from course.checks.capstone.references import REFERENCES
from course.judging import Answer, Wrong
from course.probes import capstone
from course.probes.capstone import Cluster, Race, Seeds
from course.sandbox.exchange.plain_data import Foreign
from minidl.random import Purpose, stream

REFUSED = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError)
"""What classes and runs raise for settings that are none."""

MARGIN = 1.1
"""An entry is as fast as a reference if it takes at most that many times as long."""


@cache
def raced(cluster: Cluster, recipe: str, seed: int) -> Race:
    """The run of a recipe, given as JSON, so that equal ones run once."""
    return capstone.run(cluster, json.loads(recipe), seed)


def as_json(recipe: Any) -> str:
    """Equal recipes as the same text; of numpy's numbers and arrays, Python's."""

    def plain(value: Any) -> Any:
        if isinstance(value, Foreign):
            raise Wrong(f"entry: there is {value} in the recipe.", "A recipe is plain data: names, numbers, lists.")
        return value.tolist()

    return json.dumps(recipe, sort_keys=True, default=plain)


class Field:
    """The clusters of these seeds, one of each kind, with the entry and the references on them."""

    def __init__(self, answer: Answer, seeds: Seeds) -> None:
        self.answer, self.clusters = answer, capstone.clusters(seeds)
        self.seeds = {kind: int(stream(Purpose.MANUAL, *seeds, kind).integers(2**31)) for kind in self.clusters}
        self._races: dict[str, Race] = {}

    def race(self, kind: str) -> Race:
        """The entry's run on the cluster of this kind; Wrong if what it returned is no recipe."""
        if kind not in self._races:
            cluster = self.clusters[kind]
            recipe = self.answer(cluster)
            try:
                self._races[kind] = raced(cluster, as_json(recipe), self.seeds[kind])
            except REFUSED as error:
                raise Wrong(f"entry({cluster}): this recipe cannot be run. {type(error).__name__}: {error}.") from None
        return self._races[kind]

    def compare_reached(self, kind: str) -> None:
        """Raise Wrong unless the target was reached within the budget."""
        cluster, race = self.clusters[kind], self.race(kind)
        if race.seconds is not None:
            return
        called = f"entry({cluster}): expected {capstone.TARGET:.0%} within {cluster.budget:g} s, "
        if race.why:
            raise Wrong(f"{called}but the run ended early: {race.why}.", DIED if "killed" in race.why else "")
        seconds, accuracy, _ = race.rows[-1]
        hint = "There was time for more epochs." if seconds <= cluster.budget else "The machines wait. For what?"
        raise Wrong(f"{called}got {accuracy:.1%} after {len(race.rows)} epochs, at {seconds:.4g} s.", hint)

    def compare_score(self, name: str) -> None:
        """Raise Wrong if the entry has a higher score than the reference of this name, and than ours."""
        races = {kind: self.race(kind) for kind in self.clusters}
        own = capstone.score([*races.values()])
        if own > MARGIN * self.reference("ours") and own > (other := MARGIN * self.reference(name)):
            shares = ", ".join(f"{kind}: {race.score:.3f}" for kind, race in races.items())
            raise Wrong(
                f"entry: its score is {own:.3f} ({shares}); expected at most {other:.3f}, {MARGIN - 1:.0%} above that "
                f"of the reference {name!r}."
            )

    def reference(self, name: str) -> float:
        """The score of a reference."""
        entry = REFERENCES[name]
        of_kinds = self.clusters.items()
        return capstone.score([raced(each, as_json(entry(each)), self.seeds[kind]) for kind, each in of_kinds])


DIED = "One machine dies at a second that `cluster.death` tells. Which strategies go on without it?"
