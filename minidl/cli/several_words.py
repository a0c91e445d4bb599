"""Options with several values: repeated, with commas, or all words up to the next option: `--networks 1gbe 10gbe`."""

from __future__ import annotations

from typing import Any

from typer import BadParameter
from typer.core import TyperCommand


class SeveralWords(TyperCommand):
    """A command whose repeatable options take several words each; it must not have positional arguments."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        repeatable = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        return super().parse_args(ctx, spread(args, repeatable))


def spread(words: list[str], repeatable: set[str]) -> list[str]:
    """The words, with every repeatable option once before each of its values; BadParameter for one without values.

    >>> spread(["--networks", "1gbe", "10gbe", "--nodes", "8"], {"--networks"})
    ['--networks', '1gbe', '--networks', '10gbe', '--nodes', '8']
    """
    result: list[str] = []
    option, values = "", 0  # the repeatable option that is being read, and how many values it has so far
    for word in words:
        if word.startswith("-") and len(word) > 1:
            if option and not values and word.startswith("--"):
                raise BadParameter(f"Option '{option}' requires an argument.")
            option, values = (word if word in repeatable else ""), 0
            result.append(word)
        else:
            if option and values:
                result.append(option)
            result.append(word)
            values += 1
    return result


def items(option: str, given: list[str] | None, default: str) -> list[str]:
    """The values of a repeatable option, which commas separate too: each value once, in order.

    >>> items("--nodes", ["2,4", "8"], "16"), items("--nodes", None, "16,32")
    (['2', '4', '8'], ['16', '32'])
    """
    values = (value.strip() for text in given or [default] for value in text.split(","))
    found = list(dict.fromkeys(value for value in values if value))
    if given and not found:
        raise ValueError(f"{option} was given without a value")
    return found
