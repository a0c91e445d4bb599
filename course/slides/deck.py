"""A lecture's notebook as slides: pictures, tables, questions, short code and formulas; the prose becomes notes."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from course.chapters import chapter_called
from course.grading.feedback.markdown import as_html
from course.notebooks.node import Node

LONGEST_CODE = 15  # lines of a cell that is shown, together with what it prints
FEWEST_WORDS = 7  # of a sentence that stands above a picture; a shorter one ("a row for each machine.") is passed over
CODE = HtmlFormatter(nowrap=True)
GUESS_ASKED = re.compile(r'<span data-against="([^"]*)">[^<]*</span>')
KINDS = {"*In words: ": "words", "**Predict.** ": "question", "|": "table"}  # by the beginning of a text
BLOCK = re.compile(r"```[\s\S]*?```|\$\$[\s\S]*?\$\$\S?|^#.*|(?:^(?!#|\$\$|```).+\n?)+", re.M)
SENTENCE_END = re.compile(r"(?<!\b[A-Z]\.)(?<!et al\.)(?<=[.!?])(\*{0,2}\)?)\s+(?=[A-Z\"“`$*(])")
GUESS = [
    (r"^\|.*\0.*\n?", ""),  # a row of a table
    (r"(?i)[;,]?\s*\byour guess(?:es)?\b[^.|\0]*\0(?:[;,][^.|;\0]*\0)*", ""),
    (r"\([;,]\s*", "("), (r"\s*\(\)", ""), (r"(^|[.!?]\**)\s*\.(?=\s|$)", r"\1"), (r"\s+([.;,:])", r"\1"),
]  # fmt: skip
"""How a text loses a reader's guess (\\0), and what is left around it: empty parentheses, a stop behind nothing."""


@dataclass
class Slide:
    """One slide: HTML in `body`, Markdown in all else. The answer is shown on the next key, if there is one."""

    kind: str
    heading: str
    body: str = ""
    line: str = ""
    answer: str = ""
    notes: list[str] = field(default_factory=list)


def deck(notebook: Node, name: str) -> list[Slide]:
    """The slides of the lecture called `name`; the first one has its title and its question."""
    made = Deck(name)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            made.add_code(cell)
        for block in BLOCK.findall(cell.source) if cell.cell_type == "markdown" else ():
            made.add_text(block.strip())
    made.end_section()
    return made.slides


class Deck:
    """Slides in the making; `prose` waits for the slide that it introduces."""

    def __init__(self, name: str) -> None:
        self.name, self.heading, self.has_code, self.section = name, "", False, 0
        self.slides: list[Slide] = []
        self.prose: list[str] = []
        self.questions: dict[str, Slide] = {}

    def add(self, kind: str, body: str = "") -> Slide:
        """A new slide in this section; if a sentence with a colon leads to it, that is its line."""
        last = sentences(self.prose[-1])[-1] if self.prose else ""
        self.slides.append(Slide(kind, self.heading, body, last if last.endswith(":") else "", notes=self.prose))
        self.prose = []
        return self.slides[-1]

    def end_section(self) -> None:
        """A section without a slide gets one with the beginning of its text; what is left to say goes to the notes."""
        if len(self.slides) == self.section and self.prose:
            self.add("text", as_html(" ".join(sentences(self.prose[0])[:2]))).line = ""
        elif self.slides:
            self.slides[-1].notes += self.prose
            self.prose = []

    def add_text(self, block: str) -> None:
        """A heading, a table, a formula, a list, or prose."""
        if block.startswith("# "):
            number, self.heading = re.fullmatch(r"# (?:(\d\d[a-z]?)\. )?(.*)", block).groups()  # type: ignore[union-attr]
            self.add("title", f"<p>{number} · {html.escape(chapter_called(self.name).title)}</p>" if number else "")
        elif block.startswith("#"):
            self.end_section()
            self.heading, self.has_code = block.lstrip("# "), False
            self.section = len(self.slides) if self.heading != "The question" else 0  # that is on the title's slide
        elif block.startswith("|"):
            self.add("table", as_html(f"{block}\n"))
        elif block.startswith("$$"):
            is_next = (self.slides[-1].kind, self.slides[-1].heading) == ("formula", self.heading)
            (self.slides[-1] if is_next else self.add("formula")).body += as_html(block)
        elif re.match(r"(?:[-*]|\d+\.) ", block):
            if self.prose and re.fullmatch(r"\*\*[^*]+\*\*", self.prose[-1]):
                self.heading = self.prose.pop().strip("*")
            self.add("list", as_html(block))
        else:
            title = self.slides[0]
            if not (self.slides[1:] or title.line or block.startswith("*Read")):
                title.line = next((one for one in sentences(block) if "?" in title.heading + one), "")
            self.prose.append(block)

    def add_code(self, cell: Node) -> None:
        """A code cell's outputs; before them the code, if it is short, visible, its section's first with an idea."""
        shown = [read(output) for output in cell.outputs]
        printed = "".join(text for kind, text in shown if kind == "printed")
        is_hidden = cell.metadata.get("jupyter", {}).get("source_hidden", False) or " = guess(" in cell.source
        is_idea = printed or re.search(r"^\s*(def|class) ", cell.source, re.M)
        is_short = len(f"{cell.source}\n{printed}".splitlines()) <= LONGEST_CODE
        if is_idea and is_short and not is_hidden and not self.has_code:
            self.has_code = True  # one of each section
            source = re.sub(r"  # (fmt|noqa).*|\n(?=\n\n)", "", cell.source)
            code = f'<pre class="code">{highlight(source, PythonLexer(), CODE)}</pre>'
            self.add("code", code + (f"<pre>{html.escape(printed)}</pre>" if printed else ""))
        names = re.findall(r"(\w+)\.against\(", cell.source)
        asked = self.questions.get(names[0]) if len(names) == 1 else None
        for place, (kind, told) in enumerate(shown):
            text = without_guess(told)
            if asked and not asked.answer and kind in ("words", "text") and GUESS_ASKED.search(told):
                asked.answer = answer(told, asked)
            if kind == "question":
                slide = self.add(kind, as_html(text).replace("ul>", "ol>"))
                slide.line, self.questions[cell.source.partition(" = ")[0]] = "", slide
            elif kind == "picture":
                self.add(kind, f'<img alt="" src="data:image/png;base64,{text}">')
            elif kind == "panel" and (found := re.search(r'data-guess="([^"]*)"', text)):  # controls of a question
                self.questions[json.loads(html.unescape(found[1]))["key"]] = self.slides[-1]
                self.slides[-1].body += "".join(re.findall("<ul>.*</ul>", text)).replace("ul>", "ol>")
            elif kind == "panel":  # below the static picture that it replaces
                (self.slides[-1] if ("picture" in dict(shown[:place])) else self.add(kind)).body += text
            elif kind == "words":
                words = text[:1].upper() + text[1:]
                said, slide = sentences(words), self.slides[-1]
                slide.line = next((one for one in said if len(one.split()) >= FEWEST_WORDS), said[0])
                slide.body = slide.body.replace('<img alt="" ', f'<img alt="{html.escape(plain(words))}" ', 1)
                slide.notes.append(words)
            elif kind == "table":
                rows, _, note = text.partition("\n\n")
                self.add(kind, as_html(f"{rows}\n") + f"<small>{inline(note)}</small>")
            else:
                (self.prose or self.slides[-1].notes).append(f"```\n{text}\n```" if kind == "printed" else text)
        for found in GUESS_ASKED.findall("".join(text for _, text in shown)):
            against = json.loads(unquote(found))
            value, slide = against["answer"], self.questions.get(against["key"], Slide("", ""))
            right = value[1] if isinstance(value, list) else f"{value:,.3g} {against['unit']}".strip()
            slide.answer = slide.answer or right  # no sentence has it


def read(output: Node) -> tuple[str, str]:
    """An output as its kind and text: a question, words below a picture, a table, a picture, a panel, text or print."""
    data = {mime: "".join(value) for mime, value in output.get("data", {}).items()}
    if "image/png" in data:
        return "picture", "".join(data["image/png"].split())
    if "text/html" in data:
        return "panel", data["text/html"]
    if "text/markdown" not in data:
        return "printed", "".join(output.get("text", ""))
    text = data["text/markdown"]
    kind = next((kind for beginning, kind in KINDS.items() if text.startswith(beginning)), "text")
    return kind, re.sub(r"^\*In words: (.*)\*$|^\*\*Predict\.\*\* ", r"\1", text, flags=re.S)


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph in Markdown.

    >>> sentences("**It is.** Goyal et al. (2017) say so. T. Hoefler does not.")
    ['**It is.**', 'Goyal et al. (2017) say so.', 'T. Hoefler does not.']
    """
    return SENTENCE_END.sub("\\1\0", " ".join(text.split())).split("\0")


def without_guess(text: str) -> str:
    """A text without the guesses of a reader, whom slides do not have.

    >>> without_guess('It takes **5** (your guess: <span data-against="%7B%7D">none</span>), not 9.')
    'It takes **5**, not 9.'
    """
    text, count = GUESS_ASKED.subn("\0", text)
    if count:
        for pattern, replacement in GUESS:
            text = re.sub(pattern, replacement, text, flags=re.M)
    return text.replace("\0", "none")


def answer(text: str, question: Slide) -> str:
    """The sentence with the guess, or the one next to it; it must have bold words, a number, or one of the choices."""
    said = [sentence for line in text.split("\n") for sentence in sentences(line) if sentence]
    place = next(place for place, sentence in enumerate(said) if GUESS_ASKED.search(sentence))
    after = [sentence for sentence in said[place + 1 : place + 2] if sentence.startswith("**")]
    known = [plain(choice) for choice in re.findall(r"<li>(.*?)</li>", question.body)] or list("0123456789")
    for sentence in (without_guess(said[place]), *after, *said[max(place - 1, 0) : place]):
        has_answer = "**" in sentence or any(one.lower() in plain(sentence).lower() for one in known)
        if has_answer and not sentence.rstrip(".").endswith(":"):
            return sentence.strip()
    return ""


def inline(text: str) -> str:
    """A line of Markdown as HTML without a paragraph around it."""
    return as_html(text).strip().removeprefix("<p>").removesuffix("</p>")


def plain(text: str) -> str:
    """Markdown or HTML as plain text, for descriptions."""
    return html.unescape(re.sub(r"<[^>]+>|[*`$]|\]\([^)]*\)|\[", "", text)).strip()
