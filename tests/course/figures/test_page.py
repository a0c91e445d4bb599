"""Tables, texts and pictures reach the reader as they were meant."""

import pytest
from IPython.core.formatters import DisplayFormatter

from course.figures import page


@pytest.fixture
def shown(monkeypatch):
    """What was shown, in order."""
    found: list[object] = []
    monkeypatch.setattr(page, "display", lambda *things: found.extend(things))
    return found


def test_a_table_has_its_rows_and_says_where_they_come_from(shown):
    page.table(["rate", "loss"], [[0.5, "1.0"], [2, "**3**"]], "measured")
    [text] = shown
    assert DisplayFormatter().format(text)[0]["text/markdown"] == (
        "| rate | loss |\n| --- | --- |\n| 0.5 | 1.0 |\n| 2 | **3** |\n\n*measured*"
    )


def test_a_ragged_table_is_refused(shown):
    with pytest.raises(ValueError, match=r"2 columns, but 1 values in the row of 0\.5"):
        page.table(["rate", "loss"], [[0.5]], "measured")
    assert shown == []


def test_a_picture_is_followed_by_its_words(shown):
    page.see("the picture", "it falls.")  # type: ignore[arg-type]
    assert shown[0] == "the picture"
    assert shown[1].data == "*In words: it falls.*"  # type: ignore[attr-defined]


def test_words_that_begin_with_in_words_are_refused():
    with pytest.raises(ValueError, match="must not begin so itself"):
        page.in_words("In words: it rises.")
