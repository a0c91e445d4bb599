"""What is published about minidl: one version, a licence for the data, types, no relative links."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import minidl

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_stands_in_the_package_and_the_citation_and_changelog_agree() -> None:
    assert PROJECT["dynamic"] == ["version"]
    assert f"version: {minidl.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## [{minidl.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_licence_covers_the_code_and_the_data() -> None:
    assert PROJECT["license"] == "MIT AND CC-BY-4.0"
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])


def test_the_long_description_links_to_nothing_relative() -> None:
    text = (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
    assert re.findall(r"\]\((?!https?://)|src=", text) == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_mypy_reads_the_types_of_the_package_in_a_script_of_a_user(tmp_path: Path) -> None:
    assert (ROOT / "minidl" / "py.typed").is_file()
    script = tmp_path / "script.py"
    script.write_text(
        "from minidl import Tensor, cluster, nn\n\nreveal_type(Tensor([1.0]))\nnn.Linaer(4, 5)\ncluster.lunch(print)\n"
        "x: int = Tensor([1.0])\n"
    )
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), str(script)]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    assert "minidl.tensor.tensor.Tensor" in told
    assert "Incompatible types in assignment" in told
    assert 'Module has no attribute "Linaer"' in told
    assert 'Module has no attribute "lunch"' in told
    assert "import-untyped" not in told
