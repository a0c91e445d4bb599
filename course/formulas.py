"""Formulas as MathML, which browsers draw without scripts and without the network."""

from __future__ import annotations

import html
import re
from xml.etree.ElementTree import Element, SubElement, tostring

from latex2mathml.converter import convert_to_element

MOST_OF_FORMULA = 2000
"""Characters; a longer formula is shown as LaTeX."""

ELEMENTS = {
    "math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow", "mspace", "msqrt",
    "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover",
}  # fmt: skip
ATTRIBUTES = {
    "accent", "columnalign", "columnlines", "columnspacing", "display", "displaystyle", "fence", "form", "largeop",
    "linethickness", "lspace", "mathvariant", "maxsize", "minsize", "movablelimits", "notation", "rowspacing", "rspace",
    "scriptlevel", "separator", "stretchy", "symmetric", "width",
}  # fmt: skip
VALUE = re.compile(r"[\w .%+-]*")
"""The elements and attributes that are allowed: students write formulas, and a teacher's browser reads them."""


def as_mathml(latex: str, is_display: bool = False) -> str:
    """A LaTeX formula as MathML; one that cannot be converted as code, with its dollar signs.

    >>> as_mathml(r"x^2")
    '<math display="inline"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>'
    >>> as_mathml(r"x^")
    '<code>$x^$</code>'
    """
    try:
        if len(latex) > MOST_OF_FORMULA:
            raise ValueError("too long")
        known = latex.replace("{aligned}", "{align*}")  # the converter writes the first as one line
        found = convert_to_element(known, display="block" if is_display else "inline")
        return tostring(harmless(found), encoding="unicode")
    except Exception:  # the converter fails in many ways
        sign = "$$" if is_display else "$"
        return f"<code>{html.escape(sign + latex + sign)}</code>"


def harmless(found: Element, parent: Element | None = None) -> Element:
    """The same with allowed elements and attributes only; an unknown element becomes a row."""
    tag = found.tag if found.tag in ELEMENTS else "mrow"
    kept = {name: value for name, value in found.attrib.items() if name in ATTRIBUTES and VALUE.fullmatch(value)}
    element = Element(tag, kept) if parent is None else SubElement(parent, tag, kept)
    element.text = html.unescape(found.text or "")  # the converter writes signs as character references
    if tag == "mi" and not re.fullmatch(r"\w|\w*\d|[∂∇∞]?", element.text):  # a function, such as sin, or a sign
        element.tag = "mo"
    if element.tag == "mo" and element.text.isalpha():
        element.attrib |= dict.fromkeys(("lspace", "rspace"), "0.167em")
    elif element.text in ("|", "‖"):  # these enclose; browsers space them as relations
        element.attrib |= dict.fromkeys(("lspace", "rspace"), "0")
    element.tail = html.unescape(found.tail or "")
    for place, child in enumerate(found):
        is_bracket = place == 0 and child.tag == "mo" and tag in ("msub", "msup", "msubsup")
        harmless(child, SubElement(element, "mrow") if is_bracket else element)  # else Chromium draws it small, low
    return element
