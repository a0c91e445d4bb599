"""How a command ends if it cannot do what was asked: one sentence on standard error, and an exit code."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from minidl.cli.signals import raising_dropped_signals

TO_SPEAK_SECONDS = 1.0  # for rank 0, which mpiexec ends as soon as another rank ends by an error


@contextmanager
def ending(command: str) -> Iterator[None]:
    """Turn an error inside into the end of `command`: exit code 2 for bad input, 1 for a failed run, 130 for Ctrl-C.

    Of the copies that mpiexec starts, rank 0 alone speaks: whatever is raised here is raised by all.
    """
    try:
        with raising_dropped_signals():
            yield
            sys.stdout.flush()
    except BrokenPipeError:
        raise  # nobody reads on, as in `minidl predict ... | head`: click ends the command in silence
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except (ValueError, ImportError, OSError) as error:
        _fail(command, _sentence(error), 2)
    except (ArithmeticError, RuntimeError) as error:
        cause = getattr(error, "cause", None)  # of a ClusterError
        if isinstance(cause, SystemExit):  # SIGTERM arrived while a simulated rank ran, which is in this process
            raise cause from None
        _fail(command, str(error), 1)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot read or write {error.filename}: {error.strerror}"
    return str(error)


def _fail(command: str, message: str, code: int) -> None:
    from minidl.cli.display import say  # here, so that --help comes at once
    from minidl.cli.mpi_job import is_silent

    if is_silent():
        time.sleep(TO_SPEAK_SECONDS)
    else:
        say(Console(stderr=True), f"{command}: {message}", style="red")
    raise typer.Exit(code)
