"""Grad mode: whether operations are recorded, and whether a forward pass is a recomputation."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import wraps
from typing import ParamSpec, TypeVar

grad_enabled: ContextVar[bool] = ContextVar("minidl_grad_enabled", default=True)
recomputing: ContextVar[bool] = ContextVar("minidl_recomputing", default=False)  # by activation checkpointing

_P = ParamSpec("_P")
_R = TypeVar("_R")


class no_grad:  # noqa: N801  (a context manager and decorator, in lower case as PyTorch's)
    """Within `with no_grad():`, or in a function decorated with `@no_grad()`, nothing is recorded."""

    _enabled = False

    def __init__(self) -> None:
        self._tokens: list[Token[bool]] = []  # a list, since one object may be entered again inside itself

    def __enter__(self) -> None:
        self._tokens.append(grad_enabled.set(self._enabled))

    def __exit__(self, *error: object) -> None:
        grad_enabled.reset(self._tokens.pop())

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def decorated(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with type(self)():
                return function(*args, **kwargs)

        return decorated


class enable_grad(no_grad):  # noqa: N801
    """Within `with enable_grad():`, operations are recorded even inside a `no_grad`."""

    _enabled = True


def is_grad_enabled() -> bool:
    """Whether operations are being recorded."""
    return grad_enabled.get()
