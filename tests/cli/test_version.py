"""The version on the command line is that of the package."""

from __future__ import annotations

from typer.testing import CliRunner

import minidl
from minidl.cli.app import app


def test_version_prints_the_name_and_the_version_and_exits() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"minidl {minidl.__version__}\n")


def test_without_a_command_the_help_is_shown() -> None:
    assert "--version" in CliRunner().invoke(app, []).output
