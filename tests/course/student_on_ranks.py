"""A student's process, whose function runs on ranks, for tests."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from course.judging import Answer, AnswerFailed
from course.judging.process.student_process import START_SECONDS
from course.judging.process.student_session import StudentSession
from course.judging.ranks.rank_run import RankRun
from course.sandbox.limits import Limits
from minidl.cluster import Network

A_SECOND_A_MESSAGE = Network(alpha=1.0, beta=0.0)


class Student:
    """One student's process, whose function `program` is replaced from test to test."""

    def __init__(self) -> None:
        self.source = ""
        self.session = StudentSession(self._load, Limits(seconds=5.0, reply=2**22))

    def _load(self, session: StudentSession) -> None:
        session.sources.add("<cell program>", "cell program", self.source)
        session.request("run_cell", ("cell program", self.source), START_SECONDS)

    def on_ranks(
        self, program: str | Callable[..., Any], arguments: list[tuple[Any, ...]],
        network: Network | None = A_SECOND_A_MESSAGE, **options: Any,
    ) -> RankRun:  # fmt: skip
        """Run it: a function of this file, or a cell's text."""
        text = program if isinstance(program, str) else textwrap.dedent(inspect.getsource(program))
        name = "program" if isinstance(program, str) else program.__name__
        self.source = f"from __future__ import annotations\nimport numpy as np\n{text}\nprogram = {name}\n"
        if self.session.process is not None:
            self._load(self.session)
        self.session.begin_check()
        return Answer("program", self.session).on_ranks(arguments, network, **options)

    def failure(self, program: str | Callable[..., Any], nodes: int = 2) -> str:
        with pytest.raises(AnswerFailed) as failed:
            self.on_ranks(program, [()] * nodes)
        return failed.value.message
