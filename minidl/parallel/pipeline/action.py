"""Action: what a stage of a pipeline does next, with which micro-batch and which chunk of the model."""

from __future__ import annotations

import re
from dataclasses import dataclass

KINDS = {
    "F": "forward",
    "B": "backward",
    "I": "backward for the inputs",
    "W": "backward for the weights",
    "U": "update",
}
"""The kinds of actions. B computes what I and W compute."""

PATTERN = re.compile(r"([0-9]{0,9})([A-Z])([0-9]{1,9})")

MOST_SHOWN = 40
"""Letters of a text that is no action, in the message."""


@dataclass(frozen=True, slots=True)
class Action:
    """One step of a stage.

    Parameters
        kind         a letter of `KINDS`
        micro_batch  its number, from 0; of an update, the last micro-batch whose gradient it applies, or 0
        chunk        the chunk of the model, in the order in which the model computes, from 0

    As text, the number of the chunk stands first, as PyTorch writes it.

    >>> str(Action("F", 3, chunk=1)), Action("F", 3, chunk=1).short
    ('1F3', 'F3')
    >>> Action.parse("F3", chunk=1) == Action.parse("1F3")
    True
    """

    kind: str
    micro_batch: int = 0
    chunk: int = 0

    @classmethod
    def parse(cls, text: str, chunk: int | None = None) -> Action:
        """The action that a text such as "1F3" describes; chunk: that of a text without one, such as "F3".

        Raises ValueError for any other text.
        """
        match = PATTERN.fullmatch(text.strip())
        if match is None or match[2] not in KINDS or not (match[1] or chunk is not None):
            raise ValueError(
                f"{_short(text.strip())!r} is no action: write the number of the chunk, one of {', '.join(KINDS)} and "
                "the number of the micro-batch, such as 0F3"
            )
        return cls(match[2], int(match[3]), int(match[1]) if match[1] else int(chunk or 0))

    @property
    def short(self) -> str:
        """The text without the chunk, for stages that have only one."""
        return f"{self.kind}{self.micro_batch}"

    def __str__(self) -> str:
        return f"{self.chunk}{self.short}"


def _short(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
