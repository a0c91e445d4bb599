"""The reproductions that are fast enough show what they must, fresh."""

import importlib
import io
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.reproductions.reproduction import Reproduction

# names of files in benchmarks/reproductions/, each of a few seconds
FAST: list[str] = [
    "d06_overlap",
    "t05_sign_and_error_feedback",
    "t09_stability_of_stale_gradients",
]
