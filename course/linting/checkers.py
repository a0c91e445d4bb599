"""Runs the checkers of style, types and floors, each as a program of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECKERS = {
    "types": ["-m", "mypy"],
    "style": ["-m", "ruff", "check", "."],
    "format": ["-m", "ruff", "format", "--check", "."],
    "floors": ["-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
}
"""The arguments of Python for each checker. Settings are in pyproject.toml."""


class Checker:
    """A checker that runs in the background until `complaints` waits for it."""

    def __init__(self, root: Path, arguments: list[str]) -> None:
        self._program = subprocess.Popen(
            [sys.executable, *arguments], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def complaints(self) -> list[str]:
        """What it prints, if it fails; nothing if it passes."""
        printed, _ = self._program.communicate()
        return printed.splitlines() if self._program.returncode else []
