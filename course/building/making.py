"""Build the notebooks of texts, two at a time unless they measure; each is written whole or not at all."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

import nbformat

from course.building import text
from course.building.execution import Failed, execute
from course.building.sources import Source
from course.building.staleness import built_notebook
from course.interaction.without_kernel import with_present_script
from course.notebooks.notebook_file import as_bytes
from course.notebooks.release import released
from course.whole_file import replace

AT_ONCE = 2
CLEARING_UP_SECONDS = 10.0


class Display(Protocol):
    """Shows the progress of a build."""

    def begins(self, source: Source, cells: int) -> None: ...

    def reaches(self, source: Source, cell: int) -> None: ...

    def made(self, source: Source, seconds: float) -> None: ...

    def failed(self, source: Source, message: str, details: str) -> None: ...


def make(rerun: Sequence[Source], rewrite: Sequence[Source], display: Display) -> list[Source]:
    """Run and write `rerun`, then write `rewrite` again with the outputs they have; returns those that succeeded.

    Ctrl-C ends the running ones, and leaves no kernel and no partial notebook behind.
    """
    done = in_background(make_all(rerun, display))
    for source in rewrite:
        display.begins(source, 0)
        started = time.perf_counter()
        write(source, with_outputs(text.read(source.path, source.root), built_notebook(source.executed)))
        display.made(source, time.perf_counter() - started)
    return [*done, *rewrite]


async def make_all(texts: Sequence[Source], display: Display) -> list[Source]:
    """First the texts that measure nothing, AT_ONCE at a time; then the others, one at a time."""
    measuring = [source for source in texts if text.MEASURED in source.path.read_text(encoding="utf-8")]
    quiet = [source for source in texts if source not in measuring]
    places = asyncio.Semaphore(AT_ONCE)

    async def in_turn(source: Source) -> bool:
        async with places:
            return await make_one(source, display)

    results = await asyncio.gather(*(in_turn(source) for source in quiet))
    results += [await make_one(source, display) for source in measuring]
    return [source for source, succeeded in zip([*quiet, *measuring], results, strict=True) if succeeded]


async def make_one(source: Source, display: Display) -> bool:
    """Run a text and write its notebooks; returns whether that succeeded."""
    started = time.perf_counter()
    try:
        notebook = text.read(source.path, source.root)
        display.begins(source, len(notebook.cells))
        source.executed.parent.mkdir(parents=True, exist_ok=True)
        await execute(notebook, source.executed.parent, lambda cell: display.reaches(source, cell))
    except ValueError as problem:
        display.failed(source, str(problem), "")
        return False
    except Failed as failure:
        line = text.line_of(source.path, failure.cell, failure.line)
        display.failed(source, f"line {line} (cell {failure.cell + 1}): {failure}", failure.details)
        return False
    write(source, notebook)
    display.made(source, time.perf_counter() - started)
    return True


def with_outputs(notebook: nbformat.NotebookNode, built: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook, with the outputs of `built`, which has the same code cells; their scripts are the present ones."""
    codes = ([cell for cell in one.cells if cell.cell_type == "code"] for one in (notebook, built))
    for cell, ran in zip(*codes, strict=True):
        cell.outputs, cell.execution_count = ran.outputs, ran.execution_count
        for output in cell.outputs:
            if page := output.get("data", {}).get("text/html"):
                output["data"]["text/html"] = with_present_script(page)
    return notebook


def write(source: Source, notebook: nbformat.NotebookNode) -> None:
    """Write the executed notebook of a text and, for an assignment, the student's."""
    replace(source.executed, as_bytes(notebook))
    if source.exercise:
        source.exercise.parent.mkdir(parents=True, exist_ok=True)
        replace(source.exercise, as_bytes(released(notebook)))


def in_background(work: Coroutine[Any, Any, list[Source]]) -> list[Source]:
    """Run `work` in a thread of its own and wait; if interrupted, cancel it and wait for its cleanup.

    In the main thread, nbclient would install signal handlers, and notebooks would replace each other's.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    outcome = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return outcome.result()
    finally:
        outcome.cancel()
        asyncio.run_coroutine_threadsafe(all_others_end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def all_others_end() -> None:
    """Return when no other task of this loop is left, or after a while; their exceptions are ignored."""
    if others := asyncio.all_tasks() - {asyncio.current_task()}:
        ended = asyncio.gather(*others, return_exceptions=True)
        await asyncio.wait([ended], timeout=CLEARING_UP_SECONDS)
