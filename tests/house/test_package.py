"""What is published about minidl: one version, a licence for the data, types, no relative links."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

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


def test_the_package_says_that_it_has_types() -> None:
    """What the types find in a user's program, `course lint` checks: course/linting/types_for_users.py."""
    assert (ROOT / "minidl" / "py.typed").is_file()
