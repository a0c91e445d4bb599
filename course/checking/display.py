"""An outcome as a person sees it: a small panel in a notebook, lines in a terminal."""

from __future__ import annotations

import html

from course.checking.outcome import Outcome, PartResult, Status

MARKS = {
    Status.CORRECT: ("✓", "#00694B"),
    Status.WRONG: ("✗", "#A33C00"),
    Status.RAISED: ("✗", "#A33C00"),
    Status.STUCK: ("⏱", "#A33C00"),
    Status.NOT_ATTEMPTED: ("·", "#595959"),
}


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


def as_text(outcome: Outcome, hint_call: str = "") -> str:
    """The outcome in lines of plain text: the verdict, the parts, what is wrong, where the hint is."""
    lines = [f"{MARKS[outcome.status][0]} {headline(outcome)}"]
    for part in outcome.parts:
        lines.append(f"  {MARKS[part.status][0]} {part.earned:g}/{part.points:g}  {part.title}")
        lines += [f"      {line}" for line in told(part).splitlines()]
    lines += [f"  {line}" for line in footer(outcome, hint_call).splitlines()]
    return "\n".join(lines)


def as_html(outcome: Outcome, hint_call: str = "") -> str:
    """The same as a panel."""
    colour = MARKS[outcome.status][1]
    rows = "".join(
        f'<tr><td style="color:{MARKS[part.status][1]};vertical-align:top">{MARKS[part.status][0]}</td>'
        f'<td style="vertical-align:top;white-space:nowrap">{part.earned:g} / {part.points:g}</td>'
        f'<td style="text-align:left">{html.escape(part.title)}{_block(told(part))}</td></tr>'
        for part in outcome.parts
    )
    return (
        f'<div style="border-left:4px solid {colour};padding:0.3em 0.8em">'
        f'<b style="color:{colour}">{html.escape(headline(outcome))}</b>'
        f'<table style="margin:0.3em 0">{rows}</table>{_block(footer(outcome, hint_call))}</div>'
    )


def headline(outcome: Outcome) -> str:
    """`ring_all_reduce: wrong, 2 of 4 points`."""
    return f"{outcome.exercise}: {outcome.status.value}, {outcome.points:g} of {outcome.possible:g} points"


def told(part: PartResult) -> str:
    """What is wrong with a part, and why it may be."""
    return "\n".join(line for line in (part.message, part.cause and f"Likely cause: {part.cause}") if line)


def footer(outcome: Outcome, hint_call: str) -> str:
    """What the answer printed, and where the hint is."""
    if outcome.status is Status.CORRECT:
        return ""
    printed = outcome.printed.strip()
    beginning = printed if len(printed) <= 400 else printed[:400] + " …"
    lines = [f"It printed: {beginning}"] if printed else []
    lines += [f"Hint: {hint_call}"] if hint_call else []
    return "\n".join(lines)


def _block(text: str) -> str:
    if not text:
        return ""
    return f'<pre style="margin:0.2em 0;white-space:pre-wrap">{html.escape(text)}</pre>'
