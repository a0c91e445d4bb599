"""The course: `python3 -m course` from the root of a clone, with nothing but Python installed.

commands/        what is typed, one file per command; command_line.py finds them
student/         one student: the copy of the exercises, the report of a check, the points
book/            what there is to read, as web pages
results/         what each part of the course ends in: networks trained by what the reader wrote
grading/         a class: submissions, results, feedback, roster
building/        from texts to notebooks
lectures/, assignments/    these texts
checks/          what answers must do, one folder per chapter
judging/         what checks are made of
sandbox/         where a student's code runs
probes/          measurements inside a student's process
notebooks/       notebook files
figures/         pictures of the lectures
interaction/     guesses, what-if panels, progress bars
setup/           the environment `.venv`
chapters.py      the list of chapters
whole_file.py    writing a file whole or not at all
formulas.py      LaTeX as MathML
plural.py        numbers with nouns
"""

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
