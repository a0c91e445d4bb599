"""A guess: the reader writes down a prediction before the next cell computes the answer.

    guess_end = guess("When does rank 3 end?", unit="s")                # in a cell of its own
    guess_best = guess("Which is faster with 4 KB?", ["ring", "tree"])

Where a person sits in front of the kernel, the cell waits until something is typed, so the cells below have no output
yet. Elsewhere it shows the question and returns at once.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from dataclasses import dataclass

from course.figures.page import say
from course.interaction.frontend import person_is_there

GIVE_UP = "?"
NO_GUESS = "(no guess)"
Choice = str | int | float


@dataclass(frozen=True)
class Guess:
    """What the reader expects.

    value    the number, the choice, or None without a guess
    unit     the unit of a number
    """

    value: Choice | None
    unit: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return NO_GUESS
        text = self.value if isinstance(self.value, str) else f"{self.value:,.10g}"
        return f"{text}{self.unit}" if self.unit == "%" else f"{text} {self.unit}".strip()


class GuessInterruptedError(Exception):
    """The kernel was interrupted while a guess was awaited; the notebook shows the sentence without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class UnusableError(ValueError):
    """What was typed is no answer; the text says what is expected."""


def guess(question: str, choices: Sequence[Choice] = (), *, unit: str = "") -> Guess:
    """Ask `question` and return the reader's guess: one of `choices`, or without choices a number in `unit`.

    An unusable answer is explained in a sentence and asked again. `?` gives up. Interrupting the kernel ends the
    question with GuessInterruptedError, so the cells below do not run.

    Errors: ValueError for a single choice, equal choices, or choices with a unit.
    """
    if len(choices) == 1 or len({plain(choice) for choice in choices}) < len(choices):
        raise ValueError(f"a guess needs at least two different choices, or none for a number; got {list(choices)}")
    if choices and unit:
        raise ValueError(f"choices carry their own units, so unit={unit!r} has no meaning beside them")
    say("\n".join([f"**Predict.** {question}{f' (in {unit})' if unit else ''}", "", *listed(choices)]).strip())
    if not person_is_there():
        return Guess(None, unit)
    while True:
        try:
            typed = input(f"Your guess ({GIVE_UP} gives up): ").strip()
        except (KeyboardInterrupt, EOFError):
            raise GuessInterruptedError(
                f"No guess yet. Run this cell again; type {GIVE_UP} to go on without a guess."
            ) from None
        if typed == GIVE_UP:
            return Guess(None, unit)
        try:
            made = Guess(chosen(typed, choices)) if choices else Guess(number(typed, unit), unit)
        except UnusableError as problem:
            print(problem)
            continue
        if str(made) != typed:
            print(f"Noted: {made}.")
        return made


def listed(choices: Sequence[Choice]) -> list[str]:
    """A Markdown line for each choice with its letter."""
    return [f"- {letter}) {choice}" for letter, choice in zip(string.ascii_lowercase, choices, strict=False)]


def plain(text: Choice) -> str:
    """A choice as it is compared: without Markdown's marks, capitals and repeated spaces."""
    return " ".join(str(text).replace("`", "").replace("*", "").casefold().split())


def chosen(typed: str, choices: Sequence[Choice]) -> Choice:
    """The choice that was typed: its text, the only one that begins so, or its letter. Raises UnusableError."""
    answer = plain(typed).removesuffix(")")
    texts = {plain(choice): choice for choice in choices}
    if answer in texts:
        return texts[answer]
    beginning = [choice for text, choice in texts.items() if answer and text.startswith(answer)]
    letters = dict(zip(string.ascii_lowercase, choices, strict=False))
    if answer in letters:
        return letters[answer]
    if len(beginning) == 1:
        return beginning[0]
    raise UnusableError(
        f"Please type one of: {', '.join(f'{letter}) {choice}' for letter, choice in letters.items())}."
    )


def number(typed: str, unit: str = "") -> float:
    """The number that was typed, with or without its unit. Raises UnusableError.

    A single comma before other than three digits is a decimal comma; other commas separate thousands.

    >>> number("0.8 s", "s"), number("1e3"), number("0,5"), number("12,000"), number("1/8")
    (0.8, 1000.0, 0.5, 12000.0, 0.125)
    """
    text = typed.casefold().lstrip("~≈").strip()
    for word in spellings(unit):
        text = text.removesuffix(word.casefold()).strip()
    head, comma, digits = text.partition(",")
    if comma and "," not in digits and "." not in text and (len(digits) != 3 or head in ("0", "")):
        text = f"{head}.{digits}"
    numerator, slash, denominator = text.replace(",", "").partition("/")
    try:
        value = float(numerator) / float(denominator) if slash else float(numerator)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if not math.isfinite(value):
        raise UnusableError(f"Please type a number{f' in {unit}' if unit else ''}, such as 0.5 or 2e3.")
    return value


def spellings(unit: str) -> list[str]:
    """The ways to write a unit behind a number, longest first."""
    more = {"times": ["x", "\N{MULTIPLICATION SIGN}"], "%": ["percent"]}.get(unit, [])
    singular = [unit.removesuffix("s")] if len(unit) > 2 else []
    return [unit, *singular, *more] if unit else []
