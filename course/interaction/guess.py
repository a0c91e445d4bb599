"""A guess: the reader predicts an answer before the next cell computes it.

    guess_end = guess("When does rank 3 end?", unit="s")                # in a cell of its own
    guess_best = guess("Which is faster with 4 KB?", ["ring", "tree"])

    say(f"Your guess: {guess_end.against(1.4)}")                        # in the cell that computes the answer

Where a person sits in front of the kernel, the cell shows buttons or a field, and no other cell runs until the
reader has guessed or given up. Elsewhere it returns at once, and the page that is made from the notebook asks
(`without_kernel.py`). The kernel remembers a guess, so it survives a reload of the page and a second run of its cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import ipywidgets
from IPython import get_ipython
from IPython.display import display

from course.figures.page import say
from course.interaction import frontend, without_kernel

NO_GUESS = "none"
CLOSE = 0.05
"""A number this close to the answer, relative to it, counts as right."""

Choice = str | int | float


@dataclass
class Guess:
    """What the reader expects; it is filled in when a button is pressed.

    question   the text of the question
    choices    what can be chosen; empty for a number
    unit       the unit of a number
    value      the number, the choice, or None without a guess
    awaited    whether the other cells wait for it
    on_page    whether it is made on a page without a kernel
    """

    question: str
    choices: Sequence[Choice] = ()
    unit: str = ""
    value: Choice | None = None
    awaited: bool = False
    on_page: bool = False

    def __str__(self) -> str:
        return NO_GUESS if self.value is None else shown(self.value, self.unit)

    def against(self, answer: Choice) -> str:
        """The guess and how far off it is: "0.5 s, too small by a factor of 3", "ring: right", "none".

        Without a person the text is HTML, for `say` and `table`: the page fills in what its reader guesses.

        Errors: ValueError if `answer` is none of the choices, or no finite number.
        """
        if self.choices and answer not in self.choices:
            raise ValueError(f"the answer {answer!r} is none of the choices {list(self.choices)}")
        if not self.choices and (isinstance(answer, str) or not math.isfinite(answer)):
            raise ValueError(f"the answer to a question for a number is a finite number, got {answer!r}")
        right = next((choice for choice in self.choices if choice == answer), None)  # as it was offered: 7, not 7.0
        if self.on_page:
            place = None if right is None else (list(self.choices).index(right), plain(right))
            return without_kernel.against(self.question, place or float(answer), self.unit)
        if self.value is None:
            return NO_GUESS
        if right is not None:
            return f"{self}: right" if self.value == answer else f"{self}: wrong, it is {plain(right)}"
        return f"{self}, {distance(float(self.value), float(answer), self.unit)}"


class GuessAwaitedError(Exception):
    """A cell was run while a guess is awaited; the notebook shows the sentence without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class UnusableError(ValueError):
    """What was typed is no answer; the text says what is expected."""


made: dict[str, Guess] = {}
"""By question: the guesses of this kernel."""


def guess(question: str, choices: Sequence[Choice] = (), *, unit: str = "") -> Guess:
    """Ask `question`; the reader chooses one of `choices`, or without choices types a number in `unit`.

    Errors: ValueError for a single choice, equal choices, or choices with a unit.
    """
    if len(choices) == 1 or len({plain(choice).casefold() for choice in choices}) < len(choices):
        raise ValueError(f"a guess needs at least two different choices, or none for a number; got {list(choices)}")
    if choices and unit:
        raise ValueError(f"choices carry their own units, so unit={unit!r} has no meaning beside them")
    say(f"**Predict.** {question}")
    if not frontend.person_is_there():
        words = [(plain(choice), shown(choice)) for choice in choices]
        without_kernel.show_guess(question, words, unit, spellings(unit))
        return Guess(question, choices, unit, on_page=True)
    asked = made.setdefault(question, Guess(question, choices, unit, awaited=True))
    if let_cells_wait not in (transformers := get_ipython().input_transformers_cleanup):
        transformers.append(let_cells_wait)
    show_controls(asked)
    return asked


def let_cells_wait(lines: list[str]) -> list[str]:
    """The lines of a cell before it runs; while a guess is awaited, all but guesses become the request to make it."""
    if any("guess(" in line for line in lines) or not any(each.awaited for each in made.values()):
        return lines
    return [f"from {__name__} import request_guess\n", "request_guess()\n"]


def request_guess() -> None:
    """Raise GuessAwaitedError with the question."""
    question = next(each.question for each in made.values() if each.awaited)
    raise GuessAwaitedError(
        f"First your guess: {question}\nAnswer above or give up, then run this cell. "
        "(If the buttons are gone, run the cell of the guess again.)"
    )


def show_controls(asked: Guess) -> None:
    """Show a button for each choice, or a field for a number; below them what was noted."""
    noted = ipywidgets.Label()

    def note(value: Choice | None) -> None:
        asked.value, asked.awaited = value, False
        noted.value = f"Your guess: {asked}. Go on with the next cell."

    def read(text: str) -> None:
        try:
            note(number(text, asked.unit))
        except UnusableError as problem:
            noted.value = str(problem)

    if asked.choices:
        answers = [button(plain(choice), lambda choice=choice: note(choice)) for choice in asked.choices]
    else:
        field = ipywidgets.Text(layout={"width": "8em"})
        field.observe(lambda change: read(change["new"]), names="value")
        field.continuous_update = False  # the value comes with Enter
        answers = [field, ipywidgets.Label(asked.unit), button("guess", lambda: read(field.value))]
    if not asked.awaited:
        noted.value = f"Your guess: {asked}."
    controls = [*answers, button("give up", lambda: note(None))]
    display(ipywidgets.VBox([ipywidgets.HBox(controls, layout={"flex_flow": "row wrap"}), noted]))


def button(words: str, pressed: Callable[[], None]) -> ipywidgets.Button:
    """A button as wide as its words."""
    made = ipywidgets.Button(description=words, layout={"width": "auto"})
    made.on_click(lambda _: pressed())
    return made


def shown(value: Choice, unit: str = "") -> str:
    """A guess as it is shown: a number with its unit."""
    text = plain(value) if isinstance(value, str) else f"{value:,.10g}"
    return f"{text}{unit}" if unit == "%" else f"{text} {unit}".strip()


def distance(value: float, answer: float, unit: str = "") -> str:
    """How far `value` is from `answer`: by a factor, for percentages and across zero by the difference.

    >>> distance(0.5, 1.5, "s"), distance(12, 10), distance(10.2, 10), distance(50, 12, "%"), distance(-1, 2, "s")
    ('too small by a factor of 3', '20 % too large', 'right within 5 %', '38 points too large', '3 s too small')
    """
    if value == answer:
        return "right"
    if abs(value - answer) <= CLOSE * abs(answer):
        return f"right within {100 * CLOSE:g} %"
    way = "large" if value > answer else "small"
    if unit == "%" or value * answer <= 0:
        return f"{abs(value - answer):,.3g} {'points' if unit == '%' else unit}".strip() + f" too {way}"
    factor = max(value / answer, answer / value)
    if factor >= 2:
        return f"too {way} by a factor of {float(f'{factor:.2g}'):,g}"
    return f"{100 * abs(value / answer - 1):.0f} % too {way}"


def plain(text: Choice) -> str:
    """A choice as it is compared and as a button shows it: without Markdown's marks and repeated spaces."""
    return " ".join(str(text).replace("`", "").replace("*", "").split())


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
        raise UnusableError("Please type a number, such as 0.5 or 2e3.")
    return value


def spellings(unit: str) -> list[str]:
    """The ways to write a unit behind a number, longest first."""
    more = {"times": ["x", "\N{MULTIPLICATION SIGN}"], "%": ["percent"]}.get(unit, [])
    singular = [unit.removesuffix("s")] if len(unit) > 2 else []
    return [unit, *singular, *more] if unit else []
