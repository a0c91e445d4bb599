"""Slides in a browser: keys, answers, notes, a phone, and a print with a page for each slide."""

from __future__ import annotations

import base64
import re

import pytest

pytest.importorskip("selenium", reason="needs selenium: pip install 'minidl[browser]'")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from course.notebooks.notebook_file import read_notebook
from course.setup.bootstrap import ROOT
from course.slides.deck import deck
from course.slides.page import page
from tests.course.browser.lab_in_browser import chromium, needs_browser, wait_for

LECTURE = "11a_pipelines"
OVERFLOWING = """
document.documentElement.classList.add("fitting");
const isFull = (box) => box.scrollHeight > box.clientHeight + 1 || box.scrollWidth > box.clientWidth + 1;
const full = [...document.querySelectorAll(".slide, .body")].filter(isFull).map((box) => box.textContent);
document.documentElement.classList.remove("fitting");
return full;
"""


@pytest.mark.timeout(300)
@needs_browser
def test_keys_turn_slides_answers_and_notes_and_a_print_has_a_page_for_each_slide(tmp_path) -> None:
    slides = deck(read_notebook(ROOT / "notebooks" / f"{LECTURE}.ipynb"), LECTURE)
    count, question = len(slides), next(number for number, slide in enumerate(slides, 1) if slide.answer)
    (tmp_path / "slides.html").write_text(page(slides), encoding="utf-8")
    with chromium(tmp_path) as driver:
        driver.get((tmp_path / "slides.html").as_uri())

        def press(*keys: str) -> str:
            """Press keys; the number of the slide that is there then."""
            ActionChains(driver).send_keys(*keys).perform()
            return str(driver.execute_script("return document.querySelector('footer output').textContent"))

        assert press(Keys.ARROW_LEFT) == f"1 / {count}"
        assert press(Keys.END) == press(Keys.ARROW_RIGHT) == f"{count} / {count}"
        assert press(Keys.HOME, *[Keys.ARROW_RIGHT] * (question - 1)) == f"{question} / {count}"
        answer = driver.find_element("css selector", ".now .answer")
        assert not answer.is_displayed()
        assert press(" ") == f"{question} / {count}"
        assert answer.is_displayed()
        assert press(" ") == f"{question + 1} / {count}"
        driver.refresh()  # the slide stays
        assert press("n") == f"{question + 1} / {count}"
        assert driver.find_element("css selector", ".now aside").is_displayed()
        assert driver.execute_script(OVERFLOWING) == []
        press("n", Keys.HOME)
        panel = next(number for number, slide in enumerate(slides, 1) if "minidl-panel" in slide.body)
        while press(Keys.ARROW_RIGHT) != f"{panel} / {count}":
            pass
        slider, image = (driver.find_element("css selector", f".now .minidl-panel {each}") for each in ("input", "img"))
        before = image.get_attribute("src")
        slider.send_keys(Keys.ARROW_RIGHT)
        assert image.get_attribute("src") != before
        assert press(Keys.PAGE_DOWN) == f"{panel + 1} / {count}"  # as a clicker does
        press("p")
        wait_for(lambda: len(driver.window_handles) == 2)
        here, notes = sorted(driver.window_handles, key=lambda one: one != driver.current_window_handle)
        driver.switch_to.window(notes)
        ActionChains(driver).send_keys(Keys.HOME).perform()
        assert driver.title == f"Notes 1 / {count}"
        assert "Reading time" in driver.find_element("tag name", "body").text
        driver.switch_to.window(here)
        printed = driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"]
        assert len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed))) == count
        phone = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        while press(Keys.ARROW_RIGHT) != f"{count} / {count}":
            assert driver.execute_script("return document.documentElement.scrollWidth") == 360
        assert driver.get_log("browser") == []
