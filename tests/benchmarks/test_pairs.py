"""The page of pairs says what the library does."""

import pytest

from benchmarks.pairs import PAGE, WAYS, Unstarted, page, pairs, refusal, refusals
from tests.tiers import exhaustively

SERVERS = next(number for number, way in enumerate(WAYS, start=1) if way.typed == "parameter_server")
WRITTEN = PAGE.read_text(encoding="utf-8")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("tried", "engine"),
    [("parameter_server", Unstarted()), *exhaustively(("all pairs", Unstarted()), ("all pairs", None))],
)
def test_the_page_is_what_pairs_come_to(tried, engine):
    if tried == "all pairs":
        assert page(refusals(engine)) == WRITTEN
        return
    row = next(line for line in WRITTEN.splitlines() if line.startswith(f"| {SERVERS} |")).split("|")[3:-1]
    mine = [(one, other) for one, other in pairs() if other == SERVERS]
    assert len(mine) == sum(cell != "  " for cell in row)
    for one, other in mine:
        said = refusal([WAYS[one - 1], WAYS[other - 1]], engine)
        letter = row[one - 1].strip()
        assert (letter == "yes") == (not said), (WAYS[one - 1].typed, said)
