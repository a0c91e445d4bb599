"""A progress bar for a loop: shown where a person sits in front of the kernel, and gone when the loop ends."""

from __future__ import annotations

import html
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

from IPython.display import HTML, display

from course.interaction.frontend import person_is_there

Case = TypeVar("Case")
SECONDS_BETWEEN_UPDATES = 0.1


def bar(cases: Iterable[Case], doing: str) -> Iterator[Case]:
    """Yield each of `cases`, with a progress bar that says what is being done: `for p in bar(counts, "simulating")`."""
    if not isinstance(cases, Sized):
        cases = list(cases)
    if not person_is_there():
        yield from cases
        return
    progress = Progress(doing, len(cases))  # type: ignore[arg-type]
    try:
        for case in cases:
            yield case
            progress.advance()
    finally:
        progress.close()


class Progress:
    """A bar of `total` steps: `advance` counts one, `close` removes the bar."""

    def __init__(self, doing: str, total: int) -> None:
        self.doing = doing
        self.total = total
        self.done = 0
        self._shown = time.monotonic()
        self._output = display(HTML(self._picture()), display_id=True)

    def advance(self) -> None:
        """Count one step."""
        self.done += 1
        now = time.monotonic()
        if now - self._shown >= SECONDS_BETWEEN_UPDATES:
            self._shown = now
            self._output.update(HTML(self._picture()))

    def close(self) -> None:
        """Remove the bar."""
        self._output.update(HTML(""))

    def _picture(self) -> str:
        words = html.escape(self.doing)
        return (
            f'<label>{words}: <progress value="{self.done}" max="{self.total}"></progress> '
            f"{self.done} of {self.total}</label>"
        )
