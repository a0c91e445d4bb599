"""Slides as one HTML file: styles, script, pictures and formulas are in it, and it loads nothing."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from course.grading.feedback.markdown import as_html
from course.slides.deck import CODE, Slide, inline, plain

PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
{styles}
</style>
<main>
{slides}
</main>
<footer>
<button aria-label="back">&lt;</button><output aria-live="polite"></output><button aria-label="on">&gt;</button>
<button aria-label="keys">?</button>
</footer>
<dialog>
→, space: on, or the answer<br>←: back<br>Home, End: first and last slide<br>n: notes below the slide<br>
p: notes in a second window<br>f: full screen<br>Print: one slide a page; with the notes if they are shown<br>Esc: close
</dialog>
<script>
{script}
</script>
</html>
"""

POLICY = "default-src 'unsafe-inline'; img-src data: blob:; media-src data: blob:"
"""What the browser allows: the page's own scripts and styles, those of panels too; nothing is loaded from elsewhere."""


def page(slides: Sequence[Slide]) -> str:
    """The page that shows the slides."""
    styles, script = (Path(__file__).with_name(f"slides.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    sections = (section(slide, f"slide {number} of {len(slides)}") for number, slide in enumerate(slides, 1))
    title, styles = html.escape(plain(slides[0].heading)), styles + CODE.get_style_defs("pre.code")
    return PAGE.format(policy=POLICY, title=title, styles=styles, slides="\n".join(sections), script=script)


def section(slide: Slide, label: str) -> str:
    """One slide with its notes."""
    level = "h1" if slide.kind == "title" else "h2"
    line = f'<p class="line">{inline(slide.line)}</p>\n' if slide.line else ""
    told = f'<p class="answer">{inline(slide.answer)}</p>\n' if slide.answer else ""
    return (
        f'<section class="{slide.kind}" role="group" tabindex="-1" aria-label="{label}"><div class="slide">\n'
        f'<{level}>{inline(slide.heading)}</{level}>\n{line}<div class="body">{slide.body}</div>\n{told}</div>\n'
        f'<aside aria-label="notes">{"".join(map(as_html, slide.notes))}</aside></section>'
    )
