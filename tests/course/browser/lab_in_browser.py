"""JupyterLab as `course lab` starts it, and a headless Chromium in front of it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    StaleElementReferenceException,
)
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from course.setup.bootstrap import ROOT

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHROMEDRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason="needs chromium and chromedriver")
QUIET = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--window-size=1400,2000",
)  # fmt: skip
SECONDS = 120.0
"""A deadline that only a hang exceeds."""

SECONDS_FOR_KEYS = 3.0
"""After this time without an effect keys are pressed again."""


def wait_for(what: Callable[[], Any], seconds: float = SECONDS, message: Callable[[], str] = str) -> Any:
    """Poll until `what()` is true, and return it; an element that the page has just replaced is looked for again."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(StaleElementReferenceException):
            if found := what():
                return found
        time.sleep(0.1)
    raise AssertionError(f"waited {seconds:g} s in vain: {message()}")


@contextlib.contextmanager
def lab_server(root: Path, home: Path) -> Iterator[dict[str, Any]]:
    """JupyterLab on the clone at `root`, by `course lab`: its url and token. Ends with its kernels."""
    program = "import sys; from pathlib import Path; from course.commands import lab; "
    program += f"sys.exit(lab.run(sys.argv[1:], Path({str(root)!r})))"
    own = {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    own["JUPYTERLAB_SETTINGS_DIR"] = str(all_cells_in_the_page(home / "settings"))
    options = ["--no-browser", "--allow-root", "--port=0", "--ServerApp.port_retries=0"]
    options += ["--LabApp.expose_app_in_browser=True"]  # so that a test can run a cell as the menu does
    environment = {**os.environ, **own, "IPYTHONDIR": str(home / "ipython"), "PYTHONPATH": str(ROOT)}
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *options], cwd=ROOT, env=environment, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip

    def at_work() -> dict[str, Any] | None:
        assert process.poll() is None, (home / "log").read_text()
        for path in (home / "runtime").glob("jpserver-*.json"):
            with contextlib.suppress(ValueError):  # it is being written
                return dict(json.loads(path.read_text()))
        return None

    try:
        yield wait_for(at_work, message=(home / "log").read_text)
    finally:
        end(process)


def all_cells_in_the_page(folder: Path) -> Path:
    """Settings by which the page holds the cells out of view too; returns their folder."""
    path = folder / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    path.parent.mkdir(parents=True)
    path.write_text('{"windowingMode": "none"}')
    return folder


def end(process: subprocess.Popen[Any]) -> None:
    """End the lab as Ctrl-C, typed twice, does: the server shuts its kernels down."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def chromium(home: Path) -> Iterator[webdriver.Chrome]:
    """A browser with a profile of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in (*QUIET, f"--user-data-dir={home / 'profile'}"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=str(CHROMEDRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


class OpenNotebook:
    """A notebook in JupyterLab; its cells are numbered from 0, texts included."""

    def __init__(self, driver: webdriver.Chrome, server: dict[str, Any], path: str) -> None:
        self.driver, self.path = driver, path
        self.cells = len(json.loads((Path(server["root_dir"]) / path).read_bytes())["cells"])
        driver.get(f"{server['url']}lab/tree/{path}?token={server['token']}")
        self.wait_for_page()

    def wait_for_page(self) -> None:
        """Wait for all cells and an idle kernel."""
        wait_for(
            lambda: len(self.found(".jp-Notebook .jp-Cell")) == self.cells, message=lambda: self.driver.page_source
        )
        wait_for(self.is_idle, message=lambda: f"the kernel of {self.path} is not idle")

    def reload(self) -> None:
        """Reload the page; the kernel stays."""
        self.driver.refresh()
        self.wait_for_page()

    def found(self, selector: str, inside: WebElement | None = None) -> list[WebElement]:
        """The elements that a CSS selector finds."""
        return (inside or self.driver).find_elements(By.CSS_SELECTOR, selector)

    def cell(self, number: int) -> WebElement:
        return self.found(".jp-Notebook .jp-Cell")[number]

    def is_idle(self) -> bool:
        """Whether the page is connected to a kernel that has nothing to do.

        JupyterLab's own indicator says so before the page is connected; a cell that is run then opens the dialog
        that asks for a kernel.
        """
        return bool(self.driver.execute_script(CONNECTED_AND_IDLE))

    def run(self, number: int) -> None:
        """Select a cell and run it: a click and Ctrl-Enter, again if the page was not ready to take the keys."""
        before = self.prompt(number)

        def has_begun() -> bool:
            wait_for(lambda: self.is_selected(number))
            ActionChains(self.driver).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
            with contextlib.suppress(AssertionError):
                return bool(wait_for(lambda: self.prompt(number) != before, SECONDS_FOR_KEYS))
            return False

        wait_for(has_begun)

    def is_selected(self, number: int) -> bool:
        """Click before a cell; whether the keyboard is the cell's then."""
        cell = self.cell(number)
        with contextlib.suppress(ElementNotInteractableException, ElementClickInterceptedException):  # not laid out yet
            self.found(".jp-InputArea-prompt, .jp-InputPrompt", cell)[0].click()
        return bool(self.driver.execute_script("return arguments[0].contains(document.activeElement)", cell))

    def prompt(self, number: int) -> str:
        """What stands before a code cell: `[*]:` while it waits or runs, `[1]:` afterwards."""
        return self.found(".jp-InputPrompt", self.cell(number))[0].text

    def has_run(self, number: int) -> bool:
        """Whether a code cell has ended."""
        return any(digit.isdigit() for digit in self.prompt(number))

    def output(self, number: int) -> str:
        """The text of a cell's outputs; read again if the page replaces one meanwhile."""

        def texts() -> list[list[str]]:  # never empty: a cell may have no output
            return [[output.text for output in self.found(".jp-OutputArea-output", self.cell(number))]]

        return "\n".join(wait_for(texts)[0])

    def type(self, number: int, line: str) -> None:
        """Replace the text in the field of a cell's widgets by a line."""
        field = self.found(".widget-text input", self.cell(number))[0]
        field.clear()
        field.send_keys(line, Keys.ENTER)

    def picture(self, number: int) -> str:
        """The pixels of a cell's widget picture, as a data address; empty while there is none."""
        return str(self.driver.execute_script(PIXELS, self.cell(number)) or "")

    def press(self, number: int, words: str) -> None:
        """Press the button of a cell's widgets that says `words`."""
        [button] = [each for each in self.found("button.jupyter-button", self.cell(number)) if words in each.text]
        button.click()

    def picture_is_visible(self, number: int) -> bool:
        return self.found("img.widget-image", self.cell(number))[0].is_displayed()

    def move_slider(self, number: int) -> None:
        """Move the first slider of a cell to its next value, or from its last to the one before."""
        handle = self.found(".noUi-handle", self.cell(number))[0]
        is_last = float(str(handle.get_attribute("aria-valuenow"))) >= float(str(handle.get_attribute("aria-valuemax")))
        handle.send_keys(Keys.ARROW_LEFT if is_last else Keys.ARROW_RIGHT)

    def choose(self, number: int) -> None:
        """Choose the next value in the first drop-down list of a cell."""
        choices = Select(self.found("select", self.cell(number))[0])
        choices.select_by_index(choices.options.index(choices.first_selected_option) + 1)

    def turn(self, number: int) -> None:
        """Move the first slider of a cell; without one, choose in its first list."""
        if self.found(".noUi-handle", self.cell(number)):
            self.move_slider(number)
        else:
            self.choose(number)


CONNECTED_AND_IDLE = """
const context = window.jupyterapp?.shell.currentWidget?.sessionContext, kernel = context?.session?.kernel;
return context?.isReady && kernel?.connectionStatus === "connected" && kernel.status === "idle";
"""

PIXELS = """
const image = arguments[0].querySelector("img.widget-image");
if (!image || !image.complete || !image.naturalWidth) return "";
const canvas = document.createElement("canvas");
canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
canvas.getContext("2d").drawImage(image, 0, 0);
return canvas.toDataURL();
"""
