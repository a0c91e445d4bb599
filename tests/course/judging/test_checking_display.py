"""An outcome as a person reads it, in a terminal and as a panel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from course.judging import Outcome, PartResult, Status, display
from course.results.parts import PARTS

LONG = "ring(comm, x) on rank 2 of 5, x of 7 elements: expected 3 at [4], got 1 (the first of 2 of 7 that differ)."

OUTCOME = Outcome(
    "ring",
    3.0,
    (
        PartResult("sums", 1.0, Status.CORRECT),
        PartResult("messages", 0.5, Status.WRONG, LONG, "A <chunk> & its neighbour."),
        PartResult("bytes", 1.5, Status.WRONG, LONG, "A <chunk> & its neighbour."),
    ),
    printed="x = 1\n" * 100,
)


def test_the_text_says_verdict_points_message_cause_and_hint_in_80_columns() -> None:
    lines = display.as_text(OUTCOME, 'check.hint("ring")').splitlines()
    assert lines[:8] == [
        "✗ ring: wrong, 1 of 3 points",
        "  ✓   1/1  sums",
        "  ✗ 0/0.5  messages",
        "      ring(comm, x) on rank 2 of 5, x of 7 elements: expected 3 at [4], got 1",
        "      (the first of 2 of 7 that differ).",
        "      Likely cause: A <chunk> & its neighbour.",
        "  ✗ 0/1.5  bytes",
        "      as above",
    ]
    assert lines[8] == "  It printed: x = 1"
    assert lines[-2:] == ["  x = 1 …", '  Hint: check.hint("ring")']
    assert max(map(len, lines)) < 80


def test_a_correct_answer_needs_no_hint() -> None:
    right = Outcome("ring", 1.0, (PartResult("sums", 1.0, Status.CORRECT),), printed="debugging")
    assert display.as_text(right, "check.hint") == "✓ ring: correct, 1 of 1 points\n  ✓ 1/1  sums"


def test_a_right_function_that_trains_a_network_says_how() -> None:
    right = Outcome("ring_all_reduce", 1.0, (PartResult("sums", 1.0, Status.CORRECT),))
    sentence = "`python3 -m course result 2` trains a GPT with it."
    assert display.as_text(right).endswith(f"\n  {sentence}")
    assert sentence in display.as_html(right)
    assert display.footer(replace(right, is_hidden=True), "") == ""
    for exercise, (part, network) in display.TRAINS.items():
        assert PARTS[part - 1].function == exercise
        assert network in PARTS[part - 1].title


def test_the_text_names_hidden_cases_and_defects() -> None:
    hidden = Outcome("ring", 1.0, (PartResult("sums", 1.0, Status.CORRECT),), is_hidden=True)
    assert display.headline(hidden) == "ring (hidden cases): correct, 1 of 1 points"
    broken = Outcome("ring", 1.0, (PartResult("the check works", 1.0, Status.WRONG, "…"),), defect="IndexError")
    assert display.headline(broken) == "ring: the check itself failed, 0 of 1 points"


def test_the_panel_says_the_same_and_shows_text_as_text() -> None:
    panel = display.as_html(OUTCOME, 'check.hint("ring")')
    assert "A &lt;chunk&gt; &amp; its neighbour." in panel
    assert "<chunk>" not in panel
    for words in ("ring: wrong, 1 of 3 points", "sums", "0/0.5", "as above", "Hint: check.hint(&quot;ring&quot;)"):
        assert words in panel


@pytest.mark.parametrize("background", ["#FFFFFF", "#111111"])
def test_colours_can_be_read_on_light_and_on_dark(background: str) -> None:
    for _, colour in display.MARKS.values():
        light, dark = sorted((luminance(colour), luminance(background)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.0


def luminance(colour: str) -> float:
    """The relative luminance of #RRGGBB (WCAG 2.1)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
