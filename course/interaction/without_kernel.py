"""Panels and guesses for pages without a kernel: data in the stored outputs, and a script that needs nothing else.

A panel follows its static picture and the words, and where scripts run it takes the place of the picture. All its
pictures are drawn when the notebook is built. As SVG, pictures of different settings have most lines in common, so that
together they are short.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import itertools
import json
import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import matplotlib
from IPython.display import display

from course.interaction.multiples import label, numbers_alone, offered, sign, single_figure, value_text
from minidl.plots import style

MOST_PICTURES = 40
"""Drawing one takes a fifth of a second."""

MOST_BYTES = 300_000
"""Of a panel."""

PIXELS_AN_INCH = 100
FOLDER = Path(__file__).parent
COORDINATES = re.compile(r'(?<= )(d|x|y)="([^"]*)"')
DECIMALS = re.compile(r"-?\d+\.\d+")

Values = Mapping[str, Sequence[Any]]


def show_panel(
    draw: Callable[..., None],
    values: Values,
    settings: Sequence[Mapping[str, Any]],
    width: float,
    height: float,
    source: str | Sequence[str],
    in_steps: bool = False,
) -> None:
    """Show `draw(axes, **setting)` with controls that work without a kernel.

    Parameters
        values       by parameter: the values that the reader may choose; the first one is the default
        settings     those of the static picture; their values are the last to be left out
        width, height   of the picture, in inches
        in_steps     with buttons back and forward

    Errors: ValueError if the picture of one setting alone has more than MOST_BYTES.
    """
    full = values
    drawn: dict[tuple[Any, ...], str] = {}
    kept = {name: {choice[0], *(setting[name] for setting in settings)} for name, choice in values.items()}
    while True:
        while math.prod(map(len, values.values())) > MOST_PICTURES:
            values = coarser(values, kept)
        chosen = list(itertools.product(*(choice if in_steps else offered(choice) for choice in values.values())))
        for setting in chosen:
            if setting not in drawn:
                drawn[setting] = as_svg(draw, dict(zip(values, setting, strict=True)), width, height, source)
        page = as_html(values, full, [drawn[setting] for setting in chosen], width, in_steps)
        if len(page) <= MOST_BYTES:
            break
        if len(chosen) == 1:
            raise ValueError(f"a panel has at most {MOST_BYTES:,} bytes, one picture has {len(page):,}: draw less")
        values = coarser(values, kept)
    display({"text/html": page}, raw=True)


def coarser(values: Values, kept: Mapping[str, set[Any]]) -> Values:
    """The values with half as many of one parameter, the one with the most; of several the last one.

    Every second value is left out, but for those in `kept`; if only these are left, all but the default.

    >>> coarser({"p": [2, 4, 8, 16], "n": [10, 20, 30, 40]}, {"p": {2}, "n": {10, 40}})
    {'p': [2, 4, 8, 16], 'n': [10, 20, 40]}
    """
    free = {name: [value for value in choice if value not in kept[name]] for name, choice in values.items()}
    if not any(free.values()):
        free = {name: list(choice[1:]) for name, choice in values.items()}
    name = max((name for name in reversed(values) if free[name]), key=lambda name: len(values[name]))
    left_out = free[name][1::2] or free[name]
    return {**values, name: [value for value in values[name] if value not in left_out]}


def as_svg(draw: Callable[..., None], setting: Mapping[str, Any], width: float, height: float, source: Any) -> str:
    """The picture for one setting, the same at each build; coordinates have two decimals (1/7,200 inch)."""
    text = io.StringIO()
    with style.applied(), matplotlib.rc_context({"svg.hashsalt": "minidl"}):
        figure = single_figure(draw, setting, width, height, source)
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    picture = text.getvalue()
    return COORDINATES.sub(lambda found: f'{found[1]}="{DECIMALS.sub(two_decimals, found[2])}"', picture)


def two_decimals(number: re.Match[str]) -> str:
    """A number in the text of a picture, rounded."""
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def as_html(values: Values, full: Values, pictures: Sequence[str], width: float, in_steps: bool) -> str:
    """The panel: controls, equal pictures once, and the script; full: the values that a kernel offers."""
    different = list(dict.fromkeys(pictures))
    lines: dict[str, int] = {}
    numbers = [[lines.setdefault(line, len(lines)) for line in picture.split("\n")] for picture in different]
    steps = [[here - before for before, here in itertools.pairwise([-1, *picture])] for picture in numbers]
    packed = zlib.compress(as_json([list(lines), steps]).encode(), 9)
    shorter = [label(name) for name in values if len(values[name]) < len(full[name])]
    controls = []
    for name, choice in values.items():
        order = list(choice) if in_steps else offered(choice)
        controls.append(
            {
                "name": label(name),
                "sign": sign(name),
                "texts": [value_text(value) for value in order],
                "start": order.index(choice[0]),
                "kind": "steps" if in_steps else "slider" if numbers_alone(choice) else "list",
            }
        )
    panel = {
        "controls": controls,
        "places": [different.index(picture) for picture in pictures],
        "width": round(width * PIXELS_AN_INCH),
        "left_out": f"Open the notebook to choose more values of {' and '.join(shorter)}." if shorter else "",
    }
    data = {"panel": as_json(panel), "pictures": base64.b64encode(packed).decode()}
    return element("panel", data)


def show_guess(question: str, choices: Sequence[tuple[str, str]], unit: str, spellings: Sequence[str]) -> None:
    """Show a button for each choice, or a field for a number; without scripts a list of the choices, or the unit.

    choices: the words on a button, and those that say what was guessed.
    spellings: the ways to write the unit.
    """
    asked = {"key": key(question), "choices": choices, "unit": unit, "spellings": spellings}
    listed = "".join(f"<li>{html.escape(words)}</li>" for words, _ in choices)
    static = f"<ul>{listed}</ul>" if listed else html.escape(f"____ {unit}".strip())
    display({"text/html": element("guess", {"guess": as_json(asked)}, static)}, raw=True)


def against(question: str, answer: float | tuple[int, str], unit: str) -> str:
    """In a text in Markdown: "none", which the script of `show_guess` replaces.

    answer: the number, or the position of the right choice and its words.
    """
    data = {"key": key(question), "answer": answer, "unit": unit}
    return f'<span data-against="{quote(as_json(data))}">none</span>'  # quoted: Markdown sees no marks in it


def key(question: str) -> str:
    """By what the browser finds a guess again, together with the page's address."""
    return hashlib.sha256(question.encode()).hexdigest()[:12]


def element(kind: str, data: Mapping[str, str], static: str = "") -> str:
    """A panel or a guess: its data and its script; static: what it shows where no script runs."""
    attributes = "".join(f' data-{name}="{html.escape(value)}"' for name, value in data.items())
    return f'<div class="minidl-{kind}"{attributes}>{static}</div>\n{script(kind)}'


def script(kind: str) -> str:
    """The script of all panels, or of all guesses, without indentation and comments."""
    lines = map(str.strip, (FOLDER / f"{kind}.js").read_text(encoding="utf-8").splitlines())
    return "<script>" + "\n".join(line for line in lines if not line.startswith("//")) + "</script>"


def with_present_script(page: str) -> str:
    """A stored panel or guess with the script as it is now; all other HTML unchanged."""
    kind = re.match('<div class="minidl-(panel|guess)"', page)
    return page[: page.rindex("<script>")] + script(kind[1]) if kind else page


def as_json(value: Any) -> str:
    """JSON in ASCII, without spaces."""
    return json.dumps(value, separators=(",", ":"))
