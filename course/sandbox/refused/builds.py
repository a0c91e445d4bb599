"""What an exercise has students build, by the names of the library's versions, which its answer may not call."""

from __future__ import annotations

from dataclasses import dataclass

OTHER_LIBRARIES = (
    "autograd", "flax", "jax", "keras", "mpi4py", "mxnet", "numdifftools", "optax", "paddle", "tensorflow", "tinygrad",
    "torch",
)  # fmt: skip
"""Automatic differentiation, optimizers and collectives of others: an exercise that builds something does without."""


@dataclass(frozen=True, init=False)
class Builds:
    """`Builds("minidl.cluster.collectives", instead="comm.send and comm.recv")`, for an exercise of a chapter.

    names: modules with all that is in them, packages with all modules in them, classes with their methods, functions.
    instead: what an answer uses, for the sentence that it gets.

    While the check calls the answer, a call of one of these raises, by whatever name the answer knows it; importing
    one, and importing a library of OTHER_LIBRARIES, does so as well. The library's own calls go on, so that an answer
    may use whatever else is built on them. Cells are not restricted: there students try the library.
    """

    names: tuple[str, ...]
    instead: str

    def __init__(self, *names: str, instead: str) -> None:
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "instead", instead)

    def sentence(self, exercise: str, used: str) -> str:
        """What an answer is told that used one of them."""
        return (
            f"{used} may not be used in {exercise}, which is to be built without the library's version: "
            f"use {self.instead}"
        )
