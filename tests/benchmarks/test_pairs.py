"""The page of pairs says what the library does."""

import pytest

from benchmarks.pairs import PAGE, WAYS, Unstarted, page, pairs, refusal, refusals
from tests.tiers import exhaustively

SERVERS = next(number for number, way in enumerate(WAYS, start=1) if way.typed == "parameter_server")
WRITTEN = PAGE.read_text(encoding="utf-8")


def test_the_row_of_the_parameter_server_is_what_is_refused():
    row = next(line for line in WRITTEN.splitlines() if line.startswith(f"| {SERVERS} |")).split("|")[3:-1]
    mine = [(one, other) for one, other in pairs() if other == SERVERS]
    assert len(mine) == sum(cell != "  " for cell in row)
    for one, other in mine:
        said = refusal([WAYS[one - 1], WAYS[other - 1]], Unstarted())
        letter = row[one - 1].strip()
        assert (letter == "yes") == (not said), (WAYS[one - 1].typed, said)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", exhaustively(Unstarted(), None))
def test_the_page_is_what_every_pair_comes_to(engine):
    assert page(refusals(engine)) == WRITTEN
