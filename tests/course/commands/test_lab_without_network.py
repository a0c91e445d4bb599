"""JupyterLab, as `course lab` starts it, serves all that its page asks for by itself, and asks nobody else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from jupyterlab_server.config import get_page_config

from course.chapters import FIRST_LECTURE
from course.commands import lab
from tests.course.grading.submitted_class import ROOT
from tests.tiers import exhaustively


@contextmanager
def lab_server(home: Path) -> Iterator[str]:
    """Where the lab is; it keeps its files in a folder of its own."""
    own = {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    options = ["--no-browser", "--allow-root", "--port=0", "--ServerApp.port_retries=0", "--IdentityProvider.token="]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={ROOT}", *options],
            env={**os.environ, **lab.environment(ROOT), **own}, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        yield address_in(home, process)
    finally:
        process.kill()
        process.wait()


def address_in(home: Path, process: subprocess.Popen[bytes]) -> str:
    """What the server says of itself, once it is there."""
    until = time.monotonic() + 200
    while time.monotonic() < until and process.poll() is None:
        for path in (home / "runtime").glob("jpserver-*.json"):
            try:
                return str(json.loads(path.read_text())["url"])
            except ValueError:  # it is being written
                continue
        time.sleep(0.1)
    raise AssertionError((home / "log").read_text())


def get(url: str) -> str:
    for _ in range(100):
        try:
            with urllib.request.urlopen(url, timeout=60) as reply:
                return str(reply.read().decode())
        except urllib.error.URLError as error:  # the server tells its address a moment before it listens
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            time.sleep(0.1)
    raise AssertionError(url)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_served", [False, *exhaustively(True)], ids=["as set", "as served"])
def test_the_page_of_the_lab_names_no_address_outside_and_asks_for_no_news(is_served, tmp_path, monkeypatch):
    if not is_served:
        monkeypatch.setenv("JUPYTER_CONFIG_PATH", lab.environment(ROOT)["JUPYTER_CONFIG_PATH"])
        config = get_page_config([])
        settings = json.loads((ROOT / "course" / "jupyter" / "jupyter_lab_config.json").read_text())["LabApp"]
        assert settings["news_url"] is None
        assert settings["check_for_updates_class"].endswith("NeverCheckForUpdate")
        assert settings["extension_manager"] == "readonly"
        assert "@jupyterlab/apputils-extension:announcements" in config["disabledExtensions"]
        return
    with lab_server(tmp_path) as address:
        page = get(f"{address}lab/tree/{FIRST_LECTURE}")
        assert re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\W*(?:https?:)?//[^>]*>", page) == []
        config = json.loads(re.search(r'id="jupyter-config-data"[^>]*>(.*?)</script>', page, re.DOTALL)[1])
        assert config["news"] == {"disabled": True}
        assert "@jupyterlab/apputils-extension:announcements" in config["disabledExtensions"]
        assert config["extensionManager"]["can_install"] is False
        assert json.loads(get(f"{address}lab/api/update"))["notification"] is None
