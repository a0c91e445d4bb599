"""`grade --container`: run the same command in a container, which has no network and changes nothing but the results.

The container sees the course and the submissions read-only, at the same paths, and can write only the results. It
ends with the command that started it, however that ends: it reads the other end of this process's pipe (`inside.py`).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from course.sandbox.limits import Limits
from course.setup.bootstrap import ROOT

ENGINES = ("podman", "docker")
CONTAINERFILE = Path(__file__).with_name("Containerfile")
INGREDIENTS = (CONTAINERFILE, ROOT / "pyproject.toml", ROOT / "uv.lock")
"""What the image is made from; if one of these changes, it is built again."""

NOBODY = 65534
"""The user in the container if this one is root."""

STOP_SECONDS = 60.0
"""Time after Ctrl-C to write what is graded; then the container is killed."""

COMMAND = "course.commands.grade"
"""The module whose `run` grades in the container."""

COULD_NOT_START = 2
"""The exit code if there is no container."""


class NoContainerError(Exception):
    """There is no container to grade in; the text says why, and what to do."""


def grade(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Grade in a container; returns its exit code, or COULD_NOT_START."""
    try:
        refuse_mixed(options)
        engine = engine_here()
        image = image_of(engine)
        writable(options.to)
    except NoContainerError as error:
        print(error, file=sys.stderr)
        return COULD_NOT_START
    name = f"minidl-grade-{os.getpid()}-{secrets.token_hex(4)}"
    return ended_with_this_process(engine, name, run_command(engine, name, image, parser, options))


def refuse_mixed(options: argparse.Namespace) -> None:
    """Refuse a folder of results that contains the submissions: the container may change all of it."""
    if options.folder.resolve().is_relative_to(options.to.resolve()):
        raise NoContainerError(
            f"{options.folder} lies in the folder of the results, {options.to}, and the container may change all that "
            "is in there: give the results a folder of their own, with --to."
        )


def engine_here() -> str:
    """The first of podman and docker that works. Raises NoContainerError."""
    there = [path for path in map(shutil.which, ENGINES) if path]
    if not there:
        raise NoContainerError("--container needs podman or docker, and neither is here: install one of them.")
    problems = []
    for engine in there:
        asked = subprocess.run([engine, "info"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if asked.returncode == 0:
            return engine
        problems.append(f"`{Path(engine).name} info` says: {last_line(asked.stderr)}")
    raise NoContainerError("\n".join([*problems, "Start it (docker: its daemon), then type the same command again."]))


def last_line(text: str) -> str:
    """The last line that is not blank."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "nothing")


def image_of(engine: str) -> str:
    """The image with the course's packages; it is built if it is not there. Raises NoContainerError."""
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in INGREDIENTS)).hexdigest()[:12]
    image = f"localhost/minidl-grading:{digest}"
    if subprocess.run([engine, "image", "inspect", image], capture_output=True).returncode == 0:
        return image
    print(f"Building the image {image} (once; this needs the network) …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for path in INGREDIENTS:
            shutil.copy(path, folder)
        command = [engine, "build", "--tag", image, "--file", str(Path(folder) / CONTAINERFILE.name), folder]
        if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=2).returncode != 0:
            raise NoContainerError(
                f"The image could not be built: the lines above say why. It is made from {CONTAINERFILE}; "
                "the first time, it needs the network."
            )
    return image


def writable(to: Path) -> None:
    """Make the folder of results; if this user is root, give it to the container's user."""
    try:
        to.mkdir(parents=True, exist_ok=True)
        if os.getuid() == 0:
            for path in (to, *to.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    except OSError as error:
        raise NoContainerError(f"The results cannot be written to {to}: {error.strerror}.") from None


def time_zone(place: Path = Path("/etc/localtime")) -> str:
    """This computer's time zone as a TZ rule that needs no data base, such as CET-1CEST,M3.5.0,M10.5.0/3; else UTC0.

    Deadlines without a time zone are in this one, in the container too. The rule is the last line of a zone's file
    (RFC 8536, section 3.3).
    """
    name = os.environ.get("TZ", "").removeprefix(":")
    try:
        content = (Path("/usr/share/zoneinfo", name) if name else place).read_bytes()
        *_, rule, end = content.split(b"\n")
        return rule.decode("ascii") if content.startswith(b"TZif") and rule and not end else "UTC0"
    except (OSError, ValueError):
        return name or "UTC0"  # TZ may hold a rule instead of a name


def run_command(
    engine: str, name: str, image: str, parser: argparse.ArgumentParser, options: argparse.Namespace
) -> list[str]:
    """The command line that grades in the container `name`."""
    user = (NOBODY, NOBODY) if os.getuid() == 0 else (os.getuid(), os.getgid())
    memory = options.workers * (Limits().memory >> 30) + 2
    given = [path for value in vars(options).values() for path in paths_in(value) if path != options.to]
    mounts = [(ROOT, True), *((path.resolve(), True) for path in given), (options.to.resolve(), False)]
    command = [engine, "run", "--rm", "--init", "--interactive", "--name", name]
    command += ["--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    if Path(engine).name == "podman":  # otherwise SELinux refuses the mounted folders on some systems
        command += ["--security-opt", "label=disable", *(["--userns", "keep-id"] if os.getuid() else [])]
    command += ["--user", f"{user[0]}:{user[1]}"]
    command += ["--memory", f"{memory}g", "--pids-limit", str(options.workers * 1000), "--cpus", str(options.workers)]
    command += ["--shm-size", "1g", "--tmpfs", "/tmp:rw,exec,size=4g,mode=1777"]
    for path, is_read_only in sorted(set(mounts), key=lambda mount: len(mount[0].parts)):
        command += ["--mount", mount(path, is_read_only)]
    fixed = ("MINIDL_NO_VENV=1", "HOME=/tmp", "PYTHONDONTWRITEBYTECODE=1")
    for variable in (*fixed, f"TZ={time_zone()}", f"PYTHONPATH={ROOT}"):
        command += ["--env", variable]
    inside = ["python", "-m", "course.grading.container.inside", COMMAND, *typed(parser, options)]
    return [*command, "--workdir", str(ROOT), image, *inside]


def mount(path: Path, is_read_only: bool) -> str:
    """The option that mounts a folder at the same path in the container; fields are quoted as in CSV."""
    quoted = str(path).replace('"', '""')
    return f'type=bind,"source={quoted}","destination={quoted}"{",readonly" if is_read_only else ""}'


def paths_in(value: Any) -> Iterator[Path]:
    """The paths in an option's value."""
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, Path):
            yield one


def typed(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[str]:
    """The arguments of `course grade` for these options, with absolute paths, and without --container."""
    arguments = [str(options.folder.resolve()), f"--to={options.to.resolve()}", f"--workers={options.workers}"]
    for name, value in vars(options).items():
        if name in ("folder", "to", "workers", "container") or value == parser.get_default(name):
            continue
        option = f"--{name.replace('_', '-')}"
        for one in value if isinstance(value, list | tuple) else [value]:
            text = one.resolve() if isinstance(one, Path) else one
            arguments.append(option if one is True else f"{option}={text}")
    return arguments


def ended_with_this_process(engine: str, name: str, command: list[str]) -> int:
    """Run the container and return its exit code. After Ctrl-C or SIGTERM it has STOP_SECONDS to end by itself."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    try:
        with terminated_as_interrupted():
            try:
                return process.wait()
            except KeyboardInterrupt:
                process.stdin.close()
                return process.wait(STOP_SECONDS)
    except (KeyboardInterrupt, subprocess.TimeoutExpired):  # a second interrupt, or it does not end
        return 130
    finally:
        if process.poll() is None:
            subprocess.run([engine, "kill", name], capture_output=True)
            process.kill()
            process.wait()
        process.stdin.close()


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Within the block, SIGTERM acts as Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
