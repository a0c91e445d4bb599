"""What a notebook stores for pages without a kernel: all pictures of a panel, and the answer beside a guess."""

from __future__ import annotations

import base64
import html
import itertools
import json
import random
import re
import zlib
from typing import Any
from urllib.parse import unquote

import pytest
from matplotlib.axes import Axes

from course.figures import page
from course.interaction import explore, guess, without_kernel
from course.interaction.guess import Guess
from course.interaction.without_kernel import (
    MOST_BYTES,
    MOST_PICTURES,
    as_svg,
    element,
    script,
    show_panel,
    with_present_script,
)

SETTINGS = {"width": 6.5, "height": 3.5, "source": "simulated"}


@pytest.fixture
def shown(monkeypatch):
    """What was shown, in order."""
    found: list[Any] = []
    for place in (page, without_kernel):
        monkeypatch.setattr(place, "display", lambda thing, raw=False: found.append(thing))
    return found


def stored(output: dict[str, str]) -> tuple[dict[str, Any], list[str]]:
    """A panel's controls, and its picture for each setting, as the script reads them."""
    controls, packed = re.findall(r'data-(?:panel|pictures)="(.*?)"', output["text/html"])
    panel = json.loads(html.unescape(controls))
    lines, pictures = json.loads(zlib.decompress(base64.b64decode(packed)))
    texts = ["\n".join(lines[number - 1] for number in itertools.accumulate(steps)) for steps in pictures]
    assert len(set(texts)) == len(texts)
    return panel, [texts[place] for place in panel["places"]]


def drawn_by_hand(monkeypatch: pytest.MonkeyPatch, bytes_each: int) -> None:
    """Pictures of random lines in place of drawn ones."""

    def text(draw: object, setting: dict[str, Any], *others: object) -> str:
        return random.Random(str(setting)).randbytes(bytes_each // 2).hex()

    monkeypatch.setattr(without_kernel, "as_svg", text)


def rises(axes: Axes, nodes: int, network: str) -> None:
    axes.plot([0, nodes], [0, 1 if network == "slow" else 2])


def test_a_panel_follows_its_static_picture_and_has_the_picture_of_each_setting(shown):
    explore(rises, "it rises.", nodes=[4, 2], network=["slow", "<fast> & \"x'"], multiples=[{"nodes": 2}])
    static, words, panel = shown
    assert static._repr_png_().startswith(b"\x89PNG")
    assert words.data == "*In words: it rises.*"
    described, pictures = stored(panel)
    nodes, network = described["controls"]
    assert (nodes["kind"], nodes["texts"], nodes["start"]) == ("slider", ["2", "4"], 1)
    assert (network["kind"], network["texts"], network["start"]) == ("list", ["slow", "<fast> & \"x'"], 0)
    assert "<fast>" not in panel["text/html"]
    assert pictures[2] == as_svg(rises, {"nodes": 4, "network": "slow"}, 6.5, 3.5, ())  # drawn again, the same bytes
    assert len(set(pictures)) == 4
    assert described["left_out"] == ""


def test_equal_pictures_are_stored_once_and_steps_keep_their_order(shown, monkeypatch):
    is_large = "<svg>\n{}\n</svg>".format
    monkeypatch.setattr(without_kernel, "as_svg", lambda draw, setting, *others: is_large(setting["step"] > 2))
    show_panel(rises, {"step": [3, 1, 2, 7]}, [], **SETTINGS, in_steps=True)
    described, pictures = stored(shown[0])
    assert described["controls"][0]["texts"] == ["3", "1", "2", "7"]
    assert described["places"] == [0, 1, 1, 0]
    assert pictures[1] == "<svg>\nFalse\n</svg>"


def test_of_many_settings_values_of_the_longest_parameters_are_left_out_and_that_is_said(shown, monkeypatch):
    drawn_by_hand(monkeypatch, 100)
    values = {"nodes": [2, 3, 5, 9, 17, 33], "network": ["1gbe", "10gbe"], "MB": [100, 10, 30, 300, 1000, 3000]}
    show_panel(rises, values, [{"nodes": 33, "network": "10gbe", "MB": 3000}], **SETTINGS)
    described, pictures = stored(shown[0])
    texts = {control["name"]: control["texts"] for control in described["controls"]}
    assert texts == {"nodes": ["2", "3", "9", "33"], "network": ["1gbe", "10gbe"], "MB": ["10", "100", "300", "3,000"]}
    assert len(pictures) == 32 <= MOST_PICTURES
    assert described["left_out"] == "Open the notebook to choose more values of nodes and MB."


def test_a_panel_is_below_its_limit_whatever_its_pictures_weigh(shown, monkeypatch):
    drawn_by_hand(monkeypatch, 60_000)
    show_panel(rises, {"nodes": list(range(1, 10))}, [{"nodes": 4}], **SETTINGS)
    assert 100_000 < len(shown[0]["text/html"]) <= MOST_BYTES
    assert {"1", "4"} <= set(stored(shown[0])[0]["controls"][0]["texts"])
    drawn_by_hand(monkeypatch, 600_000)
    with pytest.raises(ValueError, match="a panel has at most 300,000 bytes"):
        show_panel(rises, {"nodes": [1, 2]}, [], **SETTINGS)


def test_the_scripts_are_small_and_name_no_address():
    assert "http" not in script("panel") + script("guess")
    assert len(script("panel")) <= 4_000
    assert len(script("panel") + script("guess")) <= 8_000


def test_a_stored_panel_gets_the_script_of_today_without_being_drawn_again():
    stored_panel = element("panel", {"panel": "{}"}).replace("const", "let")
    assert with_present_script(stored_panel) == element("panel", {"panel": "{}"})
    assert with_present_script("<p><script>1</script>") == "<p><script>1</script>"


def test_a_guess_without_a_kernel_stores_its_choices_and_its_answer_in_letters_that_markdown_leaves_alone(shown):
    made = guess("Which `one`?", ["a | b", "**<tree>**", 7])
    question, form = shown
    assert question.data == "**Predict.** Which `one`?"
    assert "<ul><li>a | b</li><li>&lt;tree&gt;</li><li>7</li></ul>" in form["text/html"]
    said = made.against("**<tree>**")
    [(attribute, text)] = re.findall(r'^<span data-against="([\w.%-]+)">(.*)</span>$', said)
    [asked] = map(json.loads, map(html.unescape, re.findall(r'data-guess="(.*?)"', form["text/html"])))
    assert asked["choices"] == [["a | b", "a | b"], ["<tree>", "<tree>"], ["7", "7"]]
    assert json.loads(unquote(attribute)) == {"key": asked["key"], "answer": [1, "<tree>"], "unit": ""}
    assert text == "none"
    with pytest.raises(ValueError, match="the answer"):
        made.against("star")
    assert Guess("?", on_page=True).against(7).count("%22answer%22%3A7.0") == 1
