"""The outputs that a notebook stores, in a page without a kernel: every control works, a guess stays after a reload."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

import pytest

pytest.importorskip("selenium", reason="needs selenium: pip install 'minidl[browser]'")

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from course.figures import page
from course.interaction import explore, guess, step_through, without_kernel
from course.interaction.guess import Guess, number
from tests.course.browser.lab_in_browser import chromium, needs_browser, wait_for
from tests.course.interaction.test_guess import DISTANCES, NUMBERS

pytestmark = [pytest.mark.timeout(300), needs_browser]

MORE_DISTANCES = [
    (2.25, 1, "s"), (2.35, 1, ""), (9, 8, ""), (1.135, 1, ""), (3, 1e7, ""), (1e-7, 1, ""), (5e9, 1, ""),
    (1.5e12, 3, "%"), (0.3, -0.1, "s"), (12345678905, 1, ""), (0.00012345, 1, "s"), (-1234.5, 2, ""), (2.5, 1, ""),
    (1.9999, 1, ""),
]  # fmt: skip


def rises(axes: Any, nodes: int, network: str) -> None:
    axes.plot([0, nodes], [0, 1 if network == "slow" else 2])
    axes.set(xlim=(0, 10), ylim=(0, 3))


def grows(axes: Any, step: int) -> None:
    axes.bar([0, 1], [step, 1])
    axes.set_ylim(0, 5)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """A page of outputs as a notebook stores them: two panels, two guesses, and the answers below."""
    outputs: list[Any] = []
    with pytest.MonkeyPatch.context() as patched:
        for place in (page, without_kernel):
            patched.setattr(place, "display", lambda thing, raw=False: outputs.append(thing))
        explore(rises, "it rises.", nodes=[4, 2, 8], network=["slow", "<fast>"])
        step_through(grows, "it grows.", frames=range(3), multiples=[0, 2])
        end, best = guess("When?", unit="s"), guess("Which?", ["ring", "**tree**"])
        for text in (end.against(2 * 0.7), best.against("**tree**")):
            page.say(text)
    home = tmp_path_factory.mktemp("page")
    (home / "page.html").write_text(
        '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        + "".join(f"<div>{as_page(output)}</div>" for output in outputs)
    )
    with chromium(home) as driver:
        driver.set_window_size(500, 1600)  # the narrowest window of a desktop
        driver.get((home / "page.html").as_uri())
        wait_for(lambda: len(panel_pictures(driver)) == 2)
        yield driver


def as_page(output: Any) -> str:
    """An output as nbconvert has it in a page."""
    if isinstance(output, dict):
        return str(output["text/html"])
    if hasattr(output, "_repr_png_"):
        return f'<img src="data:image/png;base64,{base64.b64encode(output._repr_png_()).decode()}">'
    return f"<p>{output.data}</p>"


def panel_pictures(driver: webdriver.Chrome) -> list[WebElement]:
    return driver.find_elements(By.CSS_SELECTOR, ".minidl-panel img")


def picture(driver: webdriver.Chrome, number: int) -> str:
    """What a panel shows, as SVG."""
    return unquote(str(panel_pictures(driver)[number].get_attribute("src")).removeprefix("data:image/svg+xml,"))


def drawn(draw: Any, **setting: Any) -> str:
    return without_kernel.as_svg(draw, setting, 6.5, 3.5, ())


def said(driver: webdriver.Chrome) -> list[str]:
    return [each.text for each in driver.find_elements(By.CSS_SELECTOR, "[data-against]")]


def form(driver: webdriver.Chrome, number: int) -> WebElement:
    return driver.find_elements(By.CSS_SELECTOR, ".minidl-guess")[number]


def press(part: WebElement, words: str) -> None:
    [button] = [each for each in part.find_elements(By.TAG_NAME, "button") if words in each.text]
    button.click()


def test_each_control_of_a_panel_shows_the_picture_of_its_setting(browser: webdriver.Chrome) -> None:
    panel = browser.find_elements(By.CSS_SELECTOR, ".minidl-panel")[0]
    assert picture(browser, 0) == drawn(rises, nodes=4, network="slow")
    slider = panel.find_element(By.TAG_NAME, "input")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert picture(browser, 0) == drawn(rises, nodes=8, network="slow")
    assert slider.get_attribute("aria-valuetext") == "8"
    Select(panel.find_element(By.TAG_NAME, "select")).select_by_visible_text("<fast>")
    assert picture(browser, 0) == drawn(rises, nodes=8, network="<fast>")
    assert panel.find_element(By.CSS_SELECTOR, "[aria-live]").text == "nodes 8, network <fast>"
    assert browser.execute_script("return arguments[0].naturalWidth", panel_pictures(browser)[0]) > 0


def test_buttons_step_forward_and_back_and_are_disabled_at_the_ends(browser: webdriver.Chrome) -> None:
    panel = browser.find_elements(By.CSS_SELECTOR, ".minidl-panel")[1]
    back, forward = panel.find_elements(By.TAG_NAME, "button")
    states = [(back.is_enabled(), forward.is_enabled())]
    for button, step in ((forward, 1), (forward, 2), (back, 1), (back, 0)):
        button.click()
        states.append((back.is_enabled(), forward.is_enabled()))
        assert picture(browser, 1) == drawn(grows, step=step)
    assert states == [(False, True), (True, True), (True, False), (True, True), (False, True)]


def test_a_panel_takes_the_place_of_its_static_picture_and_fits_the_window(browser: webdriver.Chrome) -> None:
    images = browser.find_elements(By.TAG_NAME, "img")
    assert [image.is_displayed() for image in images] == [False, True, False, True]
    assert images[1].location["y"] < browser.find_element(By.TAG_NAME, "p").location["y"]  # the words
    phone = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert [image.is_displayed() for image in images] == [True, False, True, False]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_guess_is_typed_or_chosen_shown_beside_its_answer_and_there_after_a_reload(browser: webdriver.Chrome) -> None:
    assert said(browser) == ["none", "none"]
    field = form(browser, 0).find_element(By.TAG_NAME, "input")
    field.send_keys("soon", Keys.ENTER)
    assert "Please type a number, such as 0.5 or 2e3." in form(browser, 0).text
    field.clear()
    field.send_keys("0,7 s", Keys.ENTER)
    press(form(browser, 1), "ring")
    answers = ["0.7 s, too small by a factor of 2", "ring: wrong, it is tree"]
    assert said(browser) == answers
    browser.refresh()
    wait_for(lambda: said(browser) == answers)
    assert "Your guess: 0.7 s." in form(browser, 0).text
    press(form(browser, 0), "give up")
    press(form(browser, 1), "tree")
    assert said(browser) == ["none", "tree: right"]
    browser.execute_script("Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') }")
    press(form(browser, 1), "ring")  # counts as long as the page is open
    assert said(browser) == ["none", "ring: wrong, it is tree"]


def test_the_script_of_a_guess_says_the_same_words_as_the_kernel(browser: webdriver.Chrome) -> None:
    """Each value is typed, and stands beside its answer as `Guess.against` has it."""
    cases = [(repr(value), answer, unit) for value, answer, unit, *_ in (*DISTANCES, *MORE_DISTANCES)]
    cases += [(typed, 3.0, unit) for typed, unit, _ in NUMBERS]
    page_of_cases, wanted = "", []
    with pytest.MonkeyPatch.context() as patched:
        outputs: list[Any] = []
        for place in (page, without_kernel):
            patched.setattr(place, "display", lambda thing, raw=False: outputs.append(thing))
        for place, (typed, answer, unit) in enumerate(cases):
            asked = guess(f"Case {place}?", unit=unit)
            page_of_cases += outputs[-1]["text/html"] + f"<p>{asked.against(answer)}</p>"
            wanted.append(Guess("?", unit=unit, value=number(typed, unit)).against(answer))
    browser.get("data:text/html;charset=utf-8," + quote(page_of_cases))  # a page that may store nothing
    browser.execute_script(TYPE_ALL, [typed for typed, *_ in cases])
    assert said(browser) == wanted
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


TYPE_ALL = """
document.querySelectorAll(".minidl-guess input").forEach((field, place) => {
  field.value = arguments[0][place];
  field.dispatchEvent(new Event("change"));
});
"""
