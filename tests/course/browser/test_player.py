"""The player in Chromium: what it shows is the run, by mouse, keyboard and touch, on a phone and on paper."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="needs selenium: pip install 'minidl[browser]'")

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from minidl import cluster
from minidl.plots.player.columns import Played, Run
from minidl.plots.player.page import Player
from minidl.plots.style import bytes_text
from tests.course.browser.lab_in_browser import chromium, needs_browser, wait_for

pytestmark = [pytest.mark.timeout(300), needs_browser]

MOST = 18_000
"""Rectangles of a frame: single events, hits and messages; everything else is drawn as pixels of one picture."""

FITS = "const all = document.scrollingElement; return all.scrollWidth <= innerWidth && all.scrollHeight <= innerHeight"

ZOOMED = """
const whole = player.view.end, found = [];
for (let n = 0; n < 40; n++) {
  const span = whole * 0.7 ** n, middle = whole * (0.2 + n / 80);
  player.show(middle - span / 2, middle + span / 2);
  player.frame();
  found.push(player.statistics.rectangles);
}
return found;
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def trace() -> Any:
    def program(comm: cluster.Communicator) -> None:
        for step in range(3):
            comm.mark("forward" if step else "warm <up> & </script>")
            comm.compute(seconds=3e-3 * (1 + (comm.rank == 2)))
            comm.all_reduce(cluster.Phantom(1_300_000), algorithm="ring")
        comm.compute(seconds=2e-3 * comm.rank)  # not all end at the same time

    return cluster.launch(program, nodes=5, on="simulation", network="10gbe").trace


@pytest.fixture
def opened(driver: webdriver.Chrome, trace: Any, tmp_path: Path) -> Iterator[webdriver.Chrome]:
    """The player of the run; afterwards there must be no error in the console, and no request must have been made."""
    open_page(driver, trace.player("Five ranks"), tmp_path)
    yield driver
    assert driver.get_log("browser") == []
    assert driver.execute_script("return performance.getEntriesByType('resource').map(one => one.name)") == []


def open_page(driver: webdriver.Chrome, player: Player, folder: Path) -> None:
    player.save(folder / "run.html")
    driver.get((folder / "run.html").as_uri())
    wait_for(lambda: driver.execute_script("return !!window.player"), message=lambda: driver.page_source[:2000])


def view(driver: webdriver.Chrome, name: str) -> Any:
    return driver.execute_script(f"return player.view.{name}")


def text(driver: webdriver.Chrome, name: str) -> str:
    return str(driver.execute_script(f"return document.getElementById('{name}').textContent"))


def press(driver: webdriver.Chrome, *keys: str) -> None:
    driver.find_element(By.ID, "canvas").send_keys(*keys)


def test_the_pointer_reads_each_event_with_its_bytes_times_and_cause(opened: webdriver.Chrome, trace: Any) -> None:
    long = [event for event in trace.events if event.end - event.start > 2e-4]
    shown = [next(event for event in long if event.kind == kind and event.rank == rank)
             for kind, rank in (("compute", 2), ("wait", 0), ("receive", 3))]  # fmt: skip
    for event in shown:
        middle = (event.start + event.end) / 2
        x, y = opened.execute_script(
            "const [rank, time] = arguments, place = player.view.shown[rank], box = canvas.getBoundingClientRect();"
            "return [Math.round(player.x(time) - box.width / 2),"
            " Math.round(place.y + place.height / 2 - box.height / 2)];", event.rank, middle,
        )  # fmt: skip
        ActionChains(opened).move_to_element_with_offset(opened.find_element(By.ID, "canvas"), x, y).perform()
        tip = text(opened, "tip")
        assert tip.startswith(f"rank {event.rank}: ")
        lasts = event.end - event.start
        assert f"{lasts * 1e3:.6g} ms, from " in tip or f"{lasts * 1e6:.6g} µs, from " in tip
        if event.kind == "compute":
            assert "warm <up> & </script>" in tip
        elif event.kind == "wait":
            assert f"waits for rank {event.peer}" in tip
            assert f"until rank {event.peer} " in tip
        else:
            assert f"receives {bytes_text(event.nbytes)} from rank {event.peer}" in tip
            assert f"in all_reduce, call {event.call}" in tip
    legend, shares = text(opened, "legend"), trace.shares()
    for kind, share in (("compute", shares.compute), ("wait", shares.waiting)):
        assert re.search(rf" {kind}[^\d]*{100 * share:.1f} %", legend), legend


def test_the_keys_play_step_zoom_search_and_end(opened: webdriver.Chrome, trace: Any) -> None:
    press(opened, " ")
    assert view(opened, "playing")
    wait_for(lambda: view(opened, "time") > 0)
    press(opened, " ")
    assert not view(opened, "playing")
    middle = opened.execute_script("return player.view.time = 0.45 * player.view.end")
    press(opened, Keys.ARROW_RIGHT)  # the event under the playhead
    start, end = (view(opened, f"chosen.row.track.{side}[player.view.chosen.i]") for side in ("start", "end"))
    assert start <= middle < end
    press(opened, Keys.ESCAPE, Keys.HOME, Keys.ARROW_RIGHT)
    rank = view(opened, "chosen.row.rank")
    press(opened, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert view(opened, "chosen.row.rank") == rank + 1
    assert text(opened, "details").startswith(f"rank {rank + 1}: ")
    press(opened, "++")
    assert view(opened, "to - player.view.from") == pytest.approx(view(opened, "end") / 4)
    press(opened, "-0c")
    assert view(opened, "to - player.view.from") == pytest.approx(view(opened, "end"))
    assert view(opened, "path")
    press(opened, "/")
    search = opened.switch_to.active_element
    search.send_keys("FORWARD")
    hits = [event for event in trace.events if "forward" in event.label]
    assert text(opened, "hits") == f"{len(hits)} hits"
    search.send_keys(Keys.ENTER)
    first = min(event.start for event in hits)
    after = min((event.start for event in hits if event.start > view(opened, "time")), default=first)
    assert view(opened, "chosen.row.track.start[player.view.chosen.i]") <= after
    search.send_keys(Keys.ESCAPE)
    assert (view(opened, "hits"), view(opened, "chosen")) == (None, None)
    loops = opened.execute_script(
        "const queue = []; window.requestAnimationFrame = (call) => queue.push(call);"
        "window.cancelAnimationFrame = (number) => delete queue[number - 1];"
        "for (let n = 0; n < 3; n++) document.getElementById('play').click();"
        "return queue.filter((call) => call.name === 'tick').length;"
    )
    assert loops == 1  # played, paused and played before the next frame


def test_keys_and_search_pass_ranks_without_events(driver: webdriver.Chrome, tmp_path: Path) -> None:
    events = [Played(0, "compute", 0.0, 1.7), Played(3, "compute", 0.0, 2.3)]
    open_page(driver, Player([Run(events, 5, "measured")]), tmp_path)
    press(driver, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert view(driver, "chosen.row.rank") == 3
    press(driver, Keys.ARROW_DOWN, "/")
    for rank, hits in (("rank 1", "no hit"), ("RANK 3", "1 row")):
        search = driver.switch_to.active_element
        search.clear()
        search.send_keys(rank)
        assert (text(driver, "hits"), view(driver, "chosen.row.rank")) == (hits, 3)
    assert driver.get_log("browser") == []


def test_the_page_fits_a_phone_and_two_fingers_zoom(opened: webdriver.Chrome) -> None:
    phone = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    opened.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    try:
        wait_for(lambda: view(opened, "width") < 360)
        assert opened.execute_script(FITS)
        x, y = opened.execute_script("const box = canvas.getBoundingClientRect(); return [box.left, box.top + 60];")

        def touch(*places: tuple[int, ...]) -> float:
            """Two fingers go from place to place; the share of the time that is shown then."""
            for kind, place in zip(("touchStart", "touchMove", "touchMove", "touchEnd"), (*places, ()), strict=True):
                fingers = [{"x": x + at, "y": y, "id": number} for number, at in enumerate(place)]
                opened.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})
            return float(view(opened, "to - player.view.from") / view(opened, "end"))

        share = touch((150, 200), (120, 240), (90, 290))
        assert 0 < share < 0.5
        assert touch((150, 200), (240, 190), (250, 200)) == pytest.approx(share)  # they cross
    finally:
        opened.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_paper_is_white_and_has_the_table(opened: webdriver.Chrome) -> None:
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    try:
        opened.execute_script(
            "addEventListener('beforeprint', () => { const { data } = canvas.getContext('2d').getImageData(2, 2, 1, 1);"
            "window.printed = [...data, words.open]; });"
        )
        pdf = base64.b64decode(opened.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
        assert pdf.startswith(b"%PDF")
        assert opened.execute_script("return printed") == [255, 255, 255, 255, True]
        assert opened.execute_script("return words.open") is False
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("count", [60_000, pytest.param(1_000_000, marks=pytest.mark.exhaustive)])
def test_a_frame_draws_a_bounded_number_of_rectangles_however_many_events(
    count: int, driver: webdriver.Chrome, tmp_path: Path
) -> None:
    kinds = ("compute", "wait", "receive", "reduce", "send")
    events = [
        Played(i % 7, kinds[i // 7 % 5], i // 7 * 3e-5, i // 7 * 3e-5 + (i % 11 + 1) * 2e-6, label=f"layer {i % 13}")
        for i in range(count)
    ]
    open_page(driver, Player([Run(events, 7, "simulated")]), tmp_path)
    drawn = driver.execute_script(ZOOMED)
    assert 0 < max(drawn) <= MOST
    assert driver.execute_script("document.getElementById('search').value = 'layer 1'; search.oninput();"
                                 "return document.getElementById('hits').textContent") == (
        f"{sum(i % 13 in (1, 10, 11, 12) for i in range(count)):,} hits"
    )  # fmt: skip
    assert max(driver.execute_script(ZOOMED)) <= MOST


def test_ranks_that_do_the_same_are_one_row_until_they_are_asked_for(driver: webdriver.Chrome, tmp_path: Path) -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.compute(seconds=1e-3)
        comm.all_reduce(cluster.Phantom(4 * 30 * 1_000), algorithm="ring")

    trace = cluster.launch(program, nodes=30, on="simulation", network="10gbe").trace
    open_page(driver, trace.player(), tmp_path)
    assert driver.execute_script("return player.view.shown.map(each => each.name)") == ["ranks 0 to 29"]
    last = driver.execute_script("const { row } = player.view.shown[0]; return player.words(row, row.track.count - 2)")
    assert last.startswith("ranks 0 to 29, such as rank 0: receives 4 KB from rank 29")
    first = driver.execute_script(
        "const { row } = player.view.shown[0]; return player.words(row, row.track.end.findIndex(time => time > 0))"
    )
    assert first.endswith("\n1 ms, from 0 s to 1 ms")
    press(driver, "g")
    assert driver.execute_script("return player.view.shown.map(each => each.name)") == [f"rank {n}" for n in range(30)]


@pytest.mark.parametrize("width", [360, 768, 1400])
def test_a_notebook_shows_the_whole_player_in_a_frame(driver: Any, trace: Any, tmp_path: Path, width: int) -> None:
    (tmp_path / "cell.html").write_text(f"<!doctype html>{trace.player('In a cell')._repr_html_()}", encoding="utf-8")
    screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    driver.get((tmp_path / "cell.html").as_uri())
    driver.switch_to.frame(0)
    wait_for(lambda: driver.execute_script("return !!window.player"))
    assert text(driver, "facts").startswith("5 ranks · ")
    assert driver.execute_script(FITS)
    driver.switch_to.default_content()
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
