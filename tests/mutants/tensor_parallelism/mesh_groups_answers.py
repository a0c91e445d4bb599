"""Answers to `mesh_groups`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant

TP = "the groups that divide layers"
OTHERS = "the groups of stages and of replicas"


def numbered(rank: str) -> str:
    """An answer in which the rank with the coordinates d, s and t is `rank`."""
    return f"""
def mesh_groups(dp, pp, tp):
    D, S, T = range(dp), range(pp), range(tp)
    return {{
        "dp": [sorted({rank} for d in D) for s in S for t in T],
        "pp": [sorted({rank} for s in S) for d in D for t in T],
        "tp": [sorted({rank} for t in T) for d in D for s in S],
    }}
"""


def wrong(mistake: str, loses: tuple[str, ...], says: str, rank: str) -> Mutant:
    """Ranks numbered in another order."""
    return Mutant("mesh_groups", mistake, numbered(rank), loses, says)


MUTANTS = [
    wrong("tp outermost", (TP, OTHERS), "the tensor coordinate changes first", "(t * pp + s) * dp + d"),
    wrong("the stage first", (TP, OTHERS), "the tensor coordinate changes first", "(d * tp + t) * pp + s"),
    wrong("the replica before the stage", (OTHERS,), "the stage changes after the replica", "(s * dp + d) * tp + t"),
    wrong(
        "the stage outermost, the replica first",
        (TP, OTHERS),
        "the tensor coordinate changes first",
        "(s * tp + t) * dp + d",
    ),
    wrong("ranks from 1 on", (TP, OTHERS), "", "(d * pp + s) * tp + t + 1"),
    Mutant(
        "mesh_groups",
        "names interchanged",
        numbered("(d * pp + s) * tp + t").replace('"dp"', '"?"').replace('"tp"', '"dp"').replace('"?"', '"tp"'),
        (TP, OTHERS),
        "",
    ),
    Mutant(
        "mesh_groups",
        "groups of the ranks that share a coordinate",
        """
def mesh_groups(dp, pp, tp):
    ranks = np.arange(dp * pp * tp).reshape(dp, pp, tp)
    return {
        "dp": [sorted(ranks[d].ravel().tolist()) for d in range(dp)],
        "pp": [sorted(ranks[:, s].ravel().tolist()) for s in range(pp)],
        "tp": [sorted(ranks[:, :, t].ravel().tolist()) for t in range(tp)],
    }
""",
        (TP, OTHERS),
        "only one coordinate differs",
    ),
    Mutant(
        "mesh_groups",
        "only the groups of the first ranks",
        """
def mesh_groups(dp, pp, tp):
    return {
        "dp": [list(range(0, dp * pp * tp, pp * tp))],
        "pp": [list(range(0, pp * tp, tp))],
        "tp": [list(range(tp))],
    }
""",
        (TP, OTHERS),
        "also if it is alone in it",
    ),
    Mutant(
        "mesh_groups",
        "groups of one rank are left out",
        numbered("(d * pp + s) * tp + t")
        .replace("return {", "found = {")
        .replace(
            "    }\n", "    }\n    return {name: [g for g in groups if len(g) > 1] for name, groups in found.items()}\n"
        ),
        (TP, OTHERS),
        "also if it is alone in it",
    ),
]

ALTERNATIVES = [
    Alternative("mesh_groups", "three loops", numbered("(d * pp + s) * tp + t")),
    Alternative(
        "mesh_groups",
        "by coordinates of each rank",
        """
def mesh_groups(dp, pp, tp):
    found = {"tp": {}, "pp": {}, "dp": {}}
    for rank in range(dp * pp * tp):
        rest, t = divmod(rank, tp)
        d, s = divmod(rest, pp)
        found["tp"].setdefault((d, s), []).append(rank)
        found["pp"].setdefault((d, t), []).append(rank)
        found["dp"].setdefault((s, t), []).append(rank)
    return {name: [tuple(group) for group in groups.values()] for name, groups in found.items()}
""",
    ),
]
