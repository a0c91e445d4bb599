"""An outcome as a person sees it: a small panel in a notebook, lines in a terminal."""

from __future__ import annotations

import html
import textwrap

from course.judging.outcome import Outcome, PartResult, Status

MARKS = {
    Status.CORRECT: ("✓", "#16875A"),
    Status.WRONG: ("✗", "#C4501B"),
    Status.RAISED: ("✗", "#C4501B"),
    Status.STUCK: ("✗", "#C4501B"),
    Status.NOT_ATTEMPTED: ("·", "#7A7A7A"),
}
"""Colours that can be read on white and on JupyterLab's dark background: a contrast of at least 4 with both."""

WIDTH = 79
"""Columns of the text form."""

TRAINS = {"adam_step": (1, "a ResNet"), "ring_all_reduce": (2, "a GPT")}
"""Exercises whose answer trains a network: which part of the course has that result, and the kind of network."""

MOST_PRINTED, MOST_LINES = 400, 8
"""Characters and lines of what the answer printed that are shown."""


def show(outcome: Outcome, hint_call: str = "") -> None:
    """Show an outcome in a notebook's cell, or print it."""
    try:
        from IPython import get_ipython
    except ImportError:
        get_ipython = None
    if get_ipython is None or get_ipython() is None:
        print(as_text(outcome, hint_call))
        return
    from IPython.display import display

    display({"text/plain": as_text(outcome, hint_call), "text/html": as_html(outcome, hint_call)}, raw=True)


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook, where a person looks at pictures."""
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def as_text(outcome: Outcome, hint_call: str = "") -> str:
    """The outcome in lines of plain text: the verdict, the parts, what is wrong, where the hint is."""
    lines = [f"{MARKS[outcome.status][0]} {headline(outcome)}"]
    points = points_of(outcome)
    for part, text in parts_shown(outcome):
        lines.append(f"  {MARKS[part.status][0]} {points[part]}  {part.title}")
        lines += wrapped(text, "      ")
    return "\n".join([*lines, *wrapped(footer(outcome, hint_call), "  ")])


def as_html(outcome: Outcome, hint_call: str = "") -> str:
    """The outcome as a panel for a notebook."""
    colour = MARKS[outcome.status][1]
    points = points_of(outcome)
    rows = "".join(
        f'<tr><td style="color:{MARKS[part.status][1]};vertical-align:top">{MARKS[part.status][0]}</td>'
        f'<td style="vertical-align:top;white-space:nowrap;text-align:right">{points[part]}</td>'
        f'<td style="text-align:left">{html.escape(part.title)}{_block(text)}</td></tr>'
        for part, text in parts_shown(outcome)
    )
    table = f'<table style="margin:0.3em 0">{rows}</table>' if rows else ""
    return (
        f'<div style="border-left:4px solid {colour};padding:0.3em 0.8em">'
        f'<b style="color:{colour}">{MARKS[outcome.status][0]} {html.escape(headline(outcome))}</b>'
        f"{table}{_block(footer(outcome, hint_call))}</div>"
    )


def headline(outcome: Outcome) -> str:
    """`ring_all_reduce (hidden cases): wrong, 2 of 4 points`."""
    verdict = "the check itself failed" if outcome.defect else outcome.status.value
    cases = " (hidden cases)" if outcome.is_hidden else ""
    return f"{outcome.exercise}{cases}: {verdict}, {outcome.points:g} of {outcome.possible:g} points"


def parts_shown(outcome: Outcome) -> list[tuple[PartResult, str]]:
    """Each part and its explanation; one that repeats an earlier explanation reads "as above"."""
    shown: list[tuple[PartResult, str]] = []
    for part in outcome.parts:
        text = explanation(part)
        shown.append((part, "as above" if text and any(text == earlier for _, earlier in shown) else text))
    return shown


def points_of(outcome: Outcome) -> dict[PartResult, str]:
    """Points as `1/2`, of equal width."""
    points = {part: f"{part.earned:g}/{part.points:g}" for part in outcome.parts}
    width = max(map(len, points.values()), default=0)
    return {part: text.rjust(width) for part, text in points.items()}


def explanation(part: PartResult) -> str:
    """What is wrong with a part, and the likely cause."""
    return "\n".join(line for line in (part.message, part.cause and f"Likely cause: {part.cause}") if line)


def footer(outcome: Outcome, hint_call: str) -> str:
    """The beginning of what the answer printed, and the call for a hint; what a right answer can train."""
    if outcome.status is Status.CORRECT:
        part, network = TRAINS.get(outcome.exercise, (0, ""))
        return f"`python3 -m course result {part}` trains {network} with it." if part and not outcome.is_hidden else ""
    everything = outcome.printed.strip()
    printed = "\n".join(everything.splitlines()[:MOST_LINES])[:MOST_PRINTED]
    if printed != everything:
        printed += " …"
    lines = [f"It printed: {printed}"] if printed else []
    lines += [f"Hint: {hint_call}"] if hint_call else []
    return "\n".join(lines)


def wrapped(text: str, indent: str) -> list[str]:
    """The text's lines, indented and wrapped at WIDTH."""
    lines = []
    for line in text.splitlines():
        own = indent + line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(line, WIDTH, initial_indent=indent, subsequent_indent=own) or [""]
    return lines


def _block(text: str) -> str:
    if not text:
        return ""
    style = "margin:0.2em 0;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;background:none"
    return f'<pre style="{style}">{html.escape(text)}</pre>'
