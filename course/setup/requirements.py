"""The requirements in pyproject.toml, and whether the lock and an environment meet them. Standard library only."""

from __future__ import annotations

import platform
import re
import tomllib
from pathlib import Path

EXTRAS = ("course",)
"""The extras that every environment of the course has; a command may need more, such as `test` the extra `dev`."""

REQUIREMENT = re.compile(r"\s*(?P<name>[A-Za-z0-9._-]+)\s*(\[[^]]*\])?\s*(?P<range>[^;]*)")
SYSTEM = re.compile(r";\s*platform_system\s*==\s*['\"](?P<system>\w+)['\"]\s*$")  # the only marker in use


def missing(root: Path, extras: tuple[str, ...]) -> list[str]:
    """The distributions that pyproject.toml requires on this system and this Python lacks."""
    names = [name for line in lines(root, extras) if suits(line) for name, _ in named([line])]
    return [name for name in names if not installed(name)]


def suits(line: str) -> bool:
    """Whether a requirement applies to this operating system."""
    match = SYSTEM.search(line)
    return match is None or match["system"] == platform.system()


def installed(name: str) -> bool:
    """Whether this Python has the distribution, in any version."""
    from importlib import metadata  # a start that finds all in order does not need it, and it takes a while

    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def lock_is_current(root: Path) -> bool:
    """Whether uv.lock was made from the names and ranges that pyproject.toml has now."""
    if not (root / "uv.lock").exists():
        return False
    lock = tomllib.loads((root / "uv.lock").read_text(encoding="utf-8"))
    project = next((package for package in lock["package"] if package["source"] == {"editable": "."}), None)
    if project is None:
        return False
    entries = project["metadata"]["requires-dist"]
    locked = {(normal(entry["name"]), sorted_range(entry.get("specifier", ""))) for entry in entries}
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    return locked == set(named(lines(root, tuple(extras))))


def lines(root: Path, extras: tuple[str, ...]) -> list[str]:
    """The requirements of pyproject.toml, unparsed: the project's own, then those of `extras`."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]


def extras_of_project(root: Path) -> set[str]:
    """The extras that pyproject.toml defines; an environment may have been made when there were others."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return set(project.get("optional-dependencies", {}))


def named(requirements: list[str]) -> list[tuple[str, str]]:
    """Name and version range of each requirement."""
    matches = [REQUIREMENT.match(line) for line in requirements]
    return [(normal(match["name"]), sorted_range(match["range"])) for match in matches if match]


def normal(name: str) -> str:
    """A distribution's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def sorted_range(text: str) -> str:
    """A version range without spaces and in one order, so that equal ranges compare equal."""
    return ",".join(sorted(part.strip() for part in text.replace(" ", "").split(",")))
