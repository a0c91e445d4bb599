"""The classroom of a chapter, in which tests have answers judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest

from course.building import text
from course.building.known_answers import Classroom
from course.building.sources import sources


@pytest.fixture(scope="module")
def classroom() -> Iterator[Callable[[str], Classroom]]:
    """The classroom of a chapter, one process for all its answers."""
    rooms: list[Classroom] = []
    paths = {source.name.split("_", 1)[1]: source.path for source in sources() if not source.is_lecture}

    @cache
    def room(chapter: str) -> Classroom:
        rooms.append(Classroom(text.read(paths[chapter])))
        return rooms[-1]

    yield room
    for each in rooms:
        each.close()
