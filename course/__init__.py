"""The course: `python3 -m course` from the root of a clone, with nothing but Python installed."""

import sys

# nbformat asks jsonschema, which asks this package for a grammar of international links. That takes two seconds to
# compile at every start, and no notebook has such links. jsonschema does without it if the import fails.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


def __getattr__(name):  # type: ignore[no-untyped-def]  # a Python that is too old must be able to read this
    """`from course import progress`, as notebooks have it; likewise `overview`."""
    if name in ("overview", "progress"):
        from importlib import import_module

        return import_module("course.commands." + name)
    raise AttributeError("module 'course' has no attribute " + repr(name))
