"""A student's text as HTML that is safe to open: it runs no script and loads nothing."""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import bleach
from bleach.css_sanitizer import CSSSanitizer
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from course.formulas import as_mathml

TAGS = (
    *("a", "b", "blockquote", "br", "code", "div", "em", "h1", "h2", "h3", "h4", "hr", "i", "img", "li", "ol", "p"),
    *("pre", "span", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul"),
)
PICTURE = re.compile(r"data:image/(png|jpeg|gif);base64,[A-Za-z0-9+/=\s]*")
"""A picture within the page. One from another server would tell its owner who reads the page, and when."""

OUTSIDE = re.compile(r"\s*(https?:|mailto:|#)", re.IGNORECASE)


def is_allowed_of_picture(tag: str, name: str, value: str) -> bool:
    """Whether a picture may have this attribute."""
    return name in ("alt", "class", "id") or (name == "src" and PICTURE.fullmatch(value) is not None)


def is_allowed_of_link(tag: str, name: str, value: str) -> bool:
    """Whether a link may have this attribute; its target is another site or an anchor, never a local file."""
    return name in ("title", "class", "id") or (name == "href" and OUTSIDE.match(value) is not None)


PROTOCOLS = ("http", "https", "mailto", "data")
OF_TEXTS = ("color", "text-align", "vertical-align", "white-space")
OF_PANELS = (*OF_TEXTS, "border-left", "margin", "padding", "width")
"""Styles of a student's text, and of the grader's outcomes. A text with a margin could cover what is above it."""

OF_THE_GRADER = frozenset({"outcome", "code"})
"""CSS classes of the grader's own output; a student's text may not have them."""


def is_allowed_of_all(tag: str, name: str, value: str) -> bool:
    """Whether any element may have this attribute."""
    return name in ("id", "style") or (name == "class" and OF_THE_GRADER.isdisjoint(value.split()))


ATTRIBUTES = {"*": is_allowed_of_all, "a": is_allowed_of_link, "img": is_allowed_of_picture}
"""The attributes that a page may contain, by element."""


class Renderer(IPythonRenderer):
    """Markdown to HTML.

    Each formula is replaced by a random mark, which no student can know, and inserted after the text was cleaned.
    """

    def __init__(self, attachments: Mapping[str, Any]) -> None:
        super().__init__(escape=False, exclude_anchor_links=True)
        self.formulas: list[str] = []
        self._pictures = attachments
        self._secret = secrets.token_hex(16)

    def block_math(self, body: str) -> str:
        return self._set_aside(body, is_display=True)

    def inline_math(self, body: str) -> str:
        """A formula, unless it is the text between two prices: "$5 and $10"."""
        if body[-1].isspace() and not body[0].isspace():
            return html.escape(f"${body}$")
        return self._set_aside(body)

    def latex_environment(self, name: str, body: str) -> str:
        return self._set_aside(f"\\begin{{{name}}}{body}\\end{{{name}}}", is_display=True)

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """A picture of the notebook itself; for any other its description."""
        described = html.unescape(re.sub(r"<[^>]*>", "", text)) or url
        if PICTURE.fullmatch(address := self._address(url)):
            return f'<img src="{address}" alt="{html.escape(described)}">'
        return f"<em>(a picture that is not in the notebook: {html.escape(described)})</em>"

    def with_formulas(self, text: str) -> str:
        """The finished HTML."""
        return re.sub(f'<span class="{self._secret}">(\\d+)</span>', lambda mark: self.formulas[int(mark[1])], text)

    def _set_aside(self, latex: str, is_display: bool = False) -> str:
        self.formulas.append(as_mathml(latex, is_display))
        return f'<span class="{self._secret}">{len(self.formulas) - 1}</span>'

    def _address(self, url: str) -> str:
        """A picture's address: the data of an attachment, or what the text says."""
        held = self._pictures.get(url.removeprefix("attachment:")) if url.startswith("attachment:") else None
        for kind, data in held.items() if isinstance(held, Mapping) else ():
            if isinstance(data, str):
                return f"data:{kind};base64,{''.join(data.split())}"
        return url


def as_html(source: str, attachments: Mapping[str, Any] | None = None) -> str:
    """Markdown with formulas as HTML that runs nothing in the reader's browser and loads nothing."""
    renderer = Renderer(attachments or {})
    return renderer.with_formulas(cleaned(MarkdownWithMath(renderer).render(source), OF_TEXTS))


def cleaned(element: str | bytes, styles: Sequence[str] = OF_PANELS) -> str:
    """HTML without anything that could act in the reader's browser; styles: the CSS properties that are kept."""
    text = element.decode() if isinstance(element, bytes) else str(element)
    css = CSSSanitizer(styles)
    return bleach.clean(text, tags=TAGS, attributes=ATTRIBUTES, protocols=PROTOCOLS, css_sanitizer=css)
