"""The command `minidl`: each of its commands is a folder or file of that name.

`networks` is in `info`; `predict`, `sample` and `export` are in `trained`.

`minidl COMMAND --help` lists the options of a command. The other files are shared by the commands: what a user types
(`strategies`, `models`, `imported`, `job`, `engines`, `cluster_file`, `quantities`), how it is read (`components`,
`shared_options`), and what is printed and written (`display`, `run_folder`, `ending`).
`signals` handles Ctrl-C and SIGTERM; `mpi_job` handles a command that mpiexec has started several times.
"""

from __future__ import annotations

import io
import os
import sys

from minidl.cli.signals import answer_signals, ignore_signals


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 the run failed, 2 bad input, 130 interrupted, 143 terminated."""
    os.environ["MPLBACKEND"] = "agg"  # pictures go into files; Jupyter exports a backend that other environments lack
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error: an accent must not raise
    answer_signals()
    try:
        from minidl.cli import mpi_job  # imported here, so that Ctrl-C during the import is handled, too
        from minidl.cli.app import app

        mpi_job.begin()

        app(prog_name="minidl")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        ignore_signals()
