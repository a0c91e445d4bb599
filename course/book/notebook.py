"""A notebook as a page: its texts, its code, and the outputs that are stored in it. Nothing is executed."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import nbformat

IN_WORDS = re.compile(r"\*In words: (.*)\*", re.S)
CODE = "<details class='code'><summary>Code</summary>"
FOLDED = "\n\n</details>"


def as_markdown(path: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook's page in Markdown, and its pictures by the names that the page gives them.

    A guess is shown without its code, which repeats the question. Hidden cells in a row are folded up as one.
    """
    text: list[str] = []
    pictures: dict[str, bytes] = {}
    is_awaited = False  # a guess whose answer is still to come
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
        if cell.cell_type == "markdown":
            text.append(cell.source)
            continue
        outputs: list[str] = []
        for place, output in enumerate(cell.outputs):
            name = f"{path.stem}_{number}_{place}.png"
            if png := output.get("data", {}).get("image/png"):
                pictures[name] = base64.b64decode(png)
                outputs.append(f"![{description(cell.outputs[place + 1 :])}]({name})")
            else:
                outputs.append(shown(output))
        result = "\n\n".join(outputs)
        asks = 'class="minidl-guess"' in result
        code = fenced("python", cell.source) if cell.source and not asks else ""
        if code and cell.metadata.get("jupyter", {}).get("source_hidden"):
            before = text.pop().removesuffix(FOLDED) if text and text[-1].startswith(CODE) else CODE
            code = f"{before}\n\n{code}{FOLDED}"
        if result and is_awaited and not asks:
            result = f"<details class='result' open><summary>Result</summary>\n\n{result}{FOLDED}"
        text += filter(None, (code, result))
        is_awaited = asks or (is_awaited and "data-against=" not in result)
    return "\n\n".join(text) + "\n", pictures


def fenced(language: str, text: str) -> str:
    """Code as a Markdown block. Its fence is longer than any row of backquotes in the code."""
    fence = "`" * max(3, *(len(ticks) + 1 for ticks in re.findall("`+", text)), 3)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def shown(output: nbformat.NotebookNode) -> str:
    """An output without a picture, in its richest form."""
    data = output.get("data", {})
    if "text/html" in data:
        return f"````````{{raw}} html\n<div class='output'>{data['text/html']}</div>\n````````"
    if "text/markdown" in data:
        return str(data["text/markdown"])
    return fenced("text", output.get("text") or data["text/plain"])


def description(after: list[nbformat.NotebookNode]) -> str:
    """What a picture shows, for those who do not see it: the words under it.

    Raises ValueError if there are none.
    """
    words = IN_WORDS.fullmatch(after[0].get("data", {}).get("text/markdown", "")) if after else None
    if words is None:
        raise ValueError("a picture has no words under it: show it with course.figures.page.see(figure, words)")
    return re.sub(r"([\[\]\\])", r"\\\1", " ".join(re.sub(r"[*`$]", "", words[1]).split()))
