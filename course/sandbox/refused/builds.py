"""What an exercise has students build: the names of the library's versions, which the answer may not call."""

from __future__ import annotations

from dataclasses import dataclass

OTHER_LIBRARIES = (
    "autograd", "flax", "jax", "keras", "mpi4py", "mxnet", "numdifftools", "optax", "paddle", "tensorflow", "tinygrad",
    "torch",
)  # fmt: skip
"""Other libraries of automatic differentiation, optimizers or collectives; refused to the same exercises."""

CORE = "minidl.mini"
"""The core has a short version of nearly every exercise; refused to the same exercises."""


@dataclass(frozen=True, init=False)
class Builds:
    """`Builds("minidl.cluster.collectives", instead="comm.send and comm.recv")`, for an exercise of a chapter.

    Parameters
        names     modules, packages, classes or functions; a package includes its modules, a class its methods
        instead   what an answer uses in their place, for the error message

    While the check calls the answer, a call of one of these raises, under any name that the answer has for it. So do
    imports of them, of CORE and of OTHER_LIBRARIES. Calls by the library itself are allowed, so that an answer may use
    other functions that are built on them. Cells are not restricted: students may try the library there.
    """

    names: tuple[str, ...]
    instead: str

    def __init__(self, *names: str, instead: str) -> None:
        object.__setattr__(self, "names", (*names, CORE))
        object.__setattr__(self, "instead", instead)

    def sentence(self, exercise: str, used: str) -> str:
        """The error message for an answer that used one of them."""
        return (
            f"{used} may not be used in {exercise}, which is to be built without the library's version: "
            f"use {self.instead}"
        )
