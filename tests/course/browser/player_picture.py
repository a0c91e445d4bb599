"""The moving picture at the top of README: the player plays three strategies, then shows what ended a wait.

python -m tests.course.browser.player_picture FILE.webp
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

from minidl import data, nn, optim, parallel
from minidl.cluster import play_traces
from minidl.plots.player.page import Player
from tests.course.browser.lab_in_browser import chromium, wait_for

WAYS = {
    "synchronous SGD: every step ends with an all-reduce": parallel.Synchronous(),
    "local SGD: models are averaged after every second step": parallel.LocalSGD(period=2),
    "a parameter server (rank 4) takes each gradient as it comes": parallel.ParameterServer(),
}
SHOWN = 3.2e-3  # simulated seconds
SIZE = {"width": 1120, "height": 860, "deviceScaleFactor": 1, "mobile": False}
PLAYED, ZOOMED = 60, 16  # frames
FRAME, REST = 70, 3500  # milliseconds of a frame, and of the last one


def player() -> Player:
    """Four simulated nodes, one of them slow, learn to read digits."""
    job = parallel.Job(
        model=lambda: nn.models.MLP(64, 128, 10), data=data.digits, batch_size=64, epochs=1, seed=2,
        optimizer=lambda parameters: optim.SGD(parameters, lr=0.1),
    )  # fmt: skip
    comparison = parallel.compare(job, WAYS, nodes=4, networks=["10gbe"], slow={3: 2.0}, keep_traces=True)
    traces = [run.trace for run in comparison.runs if run.trace is not None]
    return play_traces(traces, list(WAYS), "Four nodes read digits; rank 3 takes twice as long", end=SHOWN)


def main(file: Path) -> None:
    """Write the frames as one animated WebP."""
    with tempfile.TemporaryDirectory() as folder, chromium(Path(folder)) as driver:
        page = Path(folder) / "run.html"
        player().save(page)
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIZE)
        driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        driver.get(page.as_uri())
        wait_for(lambda: driver.execute_script("return !!window.player"))
        driver.execute_script(f"player.show(0, {SHOWN})")
        bottom = driver.execute_script("return document.getElementById('legend').getBoundingClientRect().bottom + 8")
        frames: list[Any] = []

        def take(script: str = "") -> None:
            driver.execute_script(f"{script}; player.frame();")
            shot = Image.open(io.BytesIO(driver.get_screenshot_as_png()))
            frames.append(shot.convert("RGB").crop((0, 0, SIZE["width"], int(bottom))))

        take()
        for number in range(PLAYED):
            take(f"player.view.playing = true; player.view.time = {SHOWN} * {number + 1} / {PLAYED}")
        take("player.view.playing = false; player.view.time = 0; document.getElementById('path').click()")
        for number in range(ZOOMED):
            share = (number + 1) / ZOOMED
            take(f"player.show({0.7e-3 * share}, {SHOWN} + ({1.9e-3} - {SHOWN}) * {share})")
        canvas = driver.find_element(By.ID, "canvas")
        x, y = driver.execute_script(
            "const place = player.view.shown[2], box = canvas.getBoundingClientRect();"
            "return [player.x(1.2e-3) - box.width / 2, place.y + place.height / 2 - box.height / 2].map(Math.round);"
        )  # a wait of rank 1
        ActionChains(driver).move_to_element_with_offset(canvas, x, y).perform()
        take()
        durations = [600, *[FRAME] * (len(frames) - 2), REST]
        frames[0].save(
            file, save_all=True, append_images=frames[1:], duration=durations, loop=0, quality=75, method=4,
            minimize_size=True,
        )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
