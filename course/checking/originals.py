"""minidl and the course as they were before a student's code ran: what that code replaced in them is put back.

A check has things counted and measured beside the answer, by functions of these modules. A notebook that replaces
`minidl.cluster.launch`, a method of the communicator or a probe would otherwise be measured by its own yardstick.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

GUARDED = ("minidl.", "course.")
FREE = ("minidl.kernels",)
"""Here functions are replaced on purpose, when another set of kernels is chosen."""


class Originals:
    """Functions and classes of the guarded modules that are loaded now, with their methods and code."""

    def __init__(self) -> None:
        self._attributes: list[tuple[Any, str, Any]] = []
        self._code: list[tuple[FunctionType, Any, Any, Any]] = []
        for name, module in list(sys.modules.items()):
            if f"{name}.".startswith(GUARDED) and not name.startswith(FREE):
                self._keep(module, name)

    def put_back(self) -> None:
        """Undo what was replaced since."""
        for owner, name, value in self._attributes:
            if vars(owner).get(name) is not value:
                setattr(owner, name, value)
        for function, code, defaults, keywords in self._code:
            if function.__code__ is not code:
                function.__code__ = code
            if function.__defaults__ is not defaults:
                function.__defaults__ = defaults
            if function.__kwdefaults__ is not keywords:
                function.__kwdefaults__ = keywords

    def _keep(self, owner: Any, module: str) -> None:
        for name, value in list(vars(owner).items()):
            if name.startswith("__") and name not in ("__init__", "__call__", "__getattr__", "__setattr__", "__new__"):
                continue
            if isinstance(value, FunctionType):
                self._attributes.append((owner, name, value))
                self._code.append((value, value.__code__, value.__defaults__, value.__kwdefaults__))
            elif isinstance(value, type):
                self._attributes.append((owner, name, value))
                if value.__module__ == module and owner is not value:
                    self._keep(value, module)
            elif isinstance(value, property | classmethod | staticmethod):
                self._attributes.append((owner, name, value))
