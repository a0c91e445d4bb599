"""Links between files of the repository, turned into links between pages of the book."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

LINK = re.compile(
    r"(?P<code>^(?P<fence>```+|~~~+).*?^(?P=fence)|(?P<ticks>`+)[^`]+(?P=ticks))"
    r"|(?P<image>!?)\[(?P<text>[^\[\]]*)\]\((?P<target>[^()\s]+)\)",
    re.M | re.S,
)
OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:", re.I)


@dataclass
class Links:
    """The links of the book.

    pages: for a file or a folder of the repository, the page that it is on.
    repository: the address of the repository, where files without a page are; empty if it has none.
    pictures: filled with the pictures that the pages show.
    """

    pages: Mapping[str, str]
    repository: str = ""
    pictures: set[str] = field(default_factory=set)

    def rewritten(self, text: str, source: str) -> str:
        """The Markdown of a file with its links as the book needs them; those in code stay.

        A link whose text is the name of a file with a page gets the page's title, or that of the section, as its text.

        >>> links = Links({"course/a.md": "course/a", "notebooks/b.ipynb": "notebooks/b"})
        >>> links.rewritten("[b](../notebooks/b.ipynb#Two-words), [licence](../LICENSE)", "course/a.md")
        '[b](/notebooks/b.md#two-words), licence'
        """
        return LINK.sub(lambda match: match[0] if match["code"] else self._rewritten(match, source), text)

    def _rewritten(self, match: re.Match[str], source: str) -> str:
        target, _, anchor = unquote(match["target"]).partition("#")
        if OUTSIDE.match(target):
            return match[0]
        anchor = f"#{slug(anchor)}" if anchor else ""
        if not target:
            return f"[{match['text']}]({anchor})"
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if match["image"]:
            self.pictures.add(path)
            return f"![{match['text']}](/{path})"
        page = self.pages.get(path) or self.pages.get(f"{path}/README.md")
        name = match["text"].strip("`")
        is_file = re.search("[./]", name) and f"/{path}".endswith(f"/{name.rstrip('/')}")  # the page's title says more
        if page and page.startswith("reference/"):
            return f"{{doc}}`/{page}`" if is_file else f"{{doc}}`{name} </{page}>`"
        if page:
            return f"[{'' if is_file else match['text']}](/{page}.md{anchor})"
        return f"[{match['text']}]({self.repository}/blob/main/{quote(path)})" if self.repository else match["text"]


def slug(heading: str) -> str:
    """A heading's anchor as code hosts and Sphinx write it; Jupyter keeps capitals.

    >>> slug("Add-a-test"), slug("what's-left")
    ('add-a-test', 'whats-left')
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
