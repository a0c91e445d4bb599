"""`python3 -m course redraw 04`: draw new sizes and seeds for hidden tests, and prove that they judge correctly."""

from __future__ import annotations

import argparse
import secrets
import sys
from pathlib import Path

from course.building.build import build
from course.building.redrawing import redraw
from course.building.sources import chosen, sources
from course.setup.bootstrap import ROOT


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Draw, prove, write and build: exit code 1 if a hidden test could not be changed, 2 for a wrong name."""
    parser = argparse.ArgumentParser(
        prog="python3 -m course redraw",
        description="Draw new sizes and seeds for an assignment's hidden tests. They must give the solution all "
        "points, and make every known wrong answer lose points. Then they are written into the assignment's text, and "
        "the notebooks are built.",
    )
    parser.add_argument("names", nargs="+", metavar="NN", help="assignments, by the beginnings of their names")
    parser.add_argument("--seed", type=int, help="a seed repeats a draw: keep it secret (default: random)")
    options = parser.parse_args(arguments)
    try:
        assignments = chosen([one for one in sources(root) if not one.is_lecture], options.names, "assignment")
    except ValueError as unknown:
        print(unknown, file=sys.stderr)
        return 2
    if options.seed is not None and options.seed < 0:
        print(f"--seed {options.seed}: a seed is 0 or more.", file=sys.stderr)
        return 2
    seed = secrets.randbits(63) if options.seed is None else options.seed
    unchanged = [problem for source in assignments for problem in redraw(source, seed)]
    for problem in unchanged:
        print(problem, file=sys.stderr)
    built = build(assignments, [], force=False)
    if not built:
        print("The new cases are only in this clone: do not publish it. Students get what `release` writes.")
    return int(bool(unchanged or built))
