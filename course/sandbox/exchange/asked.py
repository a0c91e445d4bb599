"""Functions that an answer calls and the check computes: a call is a message to the check, and its reply.

The answer sees the results, and not the code.
"""

from __future__ import annotations

import builtins
import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any

from course.sandbox.exchange import channel, plain_data


class Asked:
    """A function of the check, in the student's process: number `number`, shown as `name`."""

    def __init__(self, number: int, name: str) -> None:
        self._number = number
        self.__name__ = name

    def __call__(self, *arguments: Any) -> Any:
        return connection.ask(self._number, arguments)

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


class Connection:
    """The descriptors for requests and replies, and the number of the current request."""

    def __init__(self) -> None:
        self.requests = self.replies = self.request = -1
        self._one_at_a_time = threading.Lock()

    def ask(self, number: int, arguments: tuple[Any, ...]) -> Any:
        """The result of the check's function for these arguments; its errors are raised here."""
        with self._one_at_a_time:
            channel.write_message(self.replies, plain_data.dumps((self.request, "ask", (number, arguments))))
            message = channel.read_message(self.requests)
        if message is None:
            raise EOFError("the check has ended")
        kind, value = pickle.loads(message)
        if kind == "value":
            return value
        raise getattr(builtins, kind, RuntimeError)(value)


connection = Connection()


def reply_of(functions: Sequence[Callable[..., Any]], number: int, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    """In the check's process: ("value", value), or the type name and the text of an exception."""
    if not 0 <= number < len(functions):
        raise plain_data.DamagedError("no such function")
    try:
        return "value", functions[number](*arguments)
    except Exception as error:  # the answer's arguments do not fit
        return type(error).__name__, str(error)
