"""What tests of several folders use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.course.student_on_ranks import Student


@pytest.fixture(scope="module")
def student() -> Iterator[Student]:
    student = Student()
    yield student
    student.session.close()
