"""The book in a browser, opened as files: no request leaves, nothing is too wide for a telephone, all can be read."""

from __future__ import annotations

import html
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

pytest.importorskip("selenium", reason="needs selenium: pip install 'minidl[browser]'")
pytest.importorskip("furo", reason="needs Sphinx: install the extra `book`")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import minidl.compress
from course.book import api, conf, contents, site
from course.setup.bootstrap import ROOT
from minidl import nn, optim
from tests.course.browser.lab_in_browser import chromium, needs_browser, wait_for
from tests.tiers import exhaustively

SOME = ("notebooks/00_start_here.ipynb", "notebooks/02c_step_sizes.ipynb", contents.CORE[2], "minidl/for_engineers.md")
"""Pictures; formulas; code; tables. The start page and one of the API reference come with them."""

TELEPHONE = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
OUTSIDE = ["http://*", "https://*", "ws://*", "wss://*"]
READABLE = {"normal": 4.5, "large": 3.0}
"""Contrasts of text and its background: WCAG 2.2, criterion 1.4.3."""

FAULTS = """
const light = c => c.slice(0, 3).map(x => x / 255).map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
const numbers = text => text.match(/[\\d.]+/g).map(Number);
const behind = e => { for (; e; e = e.parentElement) {
    const c = numbers(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0.99) return c;
} return [255, 255, 255]; };
const found = [], readable = arguments[0];
if (document.documentElement.scrollWidth > WIDTH) found.push("wide: " + document.documentElement.scrollWidth);
for (const {name} of performance.getEntriesByType("resource")) if (!name.startsWith("file:")) found.push(name);
for (const image of document.images) {
    if (!image.alt) found.push("no alt: " + image.src);
    if (image.complete && !image.naturalWidth) found.push("not there: " + image.src);
}
const columns = /[^.\\s] {2,}[^\\s#].*\\n(.*\\n)*.*[^.\\s] {2,}[^\\s#]/;
for (const e of document.querySelectorAll("article :is(p, li, td, pre):not(.table-wrapper *, .output *)")) {
    const isTable = e.matches(":is(.highlight-none, .highlight-text, .doctest) pre") && columns.test(e.textContent);
    if (isTable ? getComputedStyle(e).whiteSpace !== "pre" : e.scrollWidth > e.clientWidth + 1)
        found.push((isTable ? "wrapped: " : "cut: ") + e.textContent.slice(0, 40));
}
for (const e of document.querySelectorAll("math")) {
    const {parentElement, data = ""} = e.nextSibling ?? e.parentElement.nextSibling ?? e;
    if (/^\\S/.test(data) && getComputedStyle(parentElement).whiteSpace !== "nowrap") found.push("not whole: " + data);
}
const walker = document.createTreeWalker(document.querySelector(".page"), NodeFilter.SHOW_TEXT);
for (let node; node = walker.nextNode();) {
    const e = node.parentElement, style = getComputedStyle(e);
    if (!node.textContent.trim() || !e.checkVisibility({visibilityProperty: true})) continue;
    const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
    const [a, b] = [light(numbers(style.color)), light(behind(e))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < readable[large ? "large" : "normal"])
        found.push("contrast " + contrast.toFixed(2) + ": " + node.textContent.trim().slice(0, 40));
}
return found;
""".replace("WIDTH", str(TELEPHONE["width"]))


class Page(HTMLParser):
    """What a page links to, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.targets += [found[name] for name in ("href", "src") if name in found]
        self.anchors |= {found["id"]} if "id" in found else set()


def broken_links(folder: Path) -> list[str]:
    """The links of all pages to a file or an anchor that is not there."""
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for target in page.targets:
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = unquote(target).partition("#")
            file = (path.parent / name.partition("?")[0]).resolve() if name else path
            if not file.exists() or (anchor and file in pages and anchor not in pages[file].anchors):
                broken.append(f"{path.relative_to(folder)}: {target}")
    return broken


def faults(folder: Path, home: Path) -> dict[str, list[str]]:
    """What is wrong with each page on a telephone, in both colours."""
    found = {}
    with chromium(home) as driver:
        driver.execute_cdp_cmd("Network.enable", {})
        driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": OUTSIDE})  # the page's list of requests has them all
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", TELEPHONE)
        for path in sorted(folder.rglob("*.html")):
            for colours in ("light", "dark"):
                features = [{"name": "prefers-color-scheme", "value": colours}]
                driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
                driver.get(path.as_uri())
                messages = [entry["message"] for entry in driver.get_log("browser")]
                if wrong := [*driver.execute_script(FAULTS, READABLE), *messages]:
                    found[f"{path.relative_to(folder)}, {colours}"] = wrong
    return found


@pytest.fixture(scope="module")
def book(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole book, or one of some pages, made as `course book` does."""
    folder = tmp_path_factory.mktemp("book") / "html"
    if request.param == "whole":
        assert site.build(ROOT, folder) == 0
        return folder
    root = tmp_path_factory.mktemp("clone")
    for name in (*SOME, contents.START, "pyproject.toml", "course/pictures"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, root / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "public_packages", lambda: [minidl.compress])
        patch.setattr(api, "documented", api.documented.__wrapped__)
        assert site.build(root, folder) == 0
    return folder


of_some_pages = pytest.mark.parametrize("book", ["some"], indirect=True)
of_all_pages_exhaustively = pytest.mark.parametrize("book", ["some", *exhaustively("whole")], indirect=True)


@of_some_pages
@pytest.mark.timeout(300)
def test_the_start_page_is_light(book: Path) -> None:
    start = Page(book / "index.html")
    loaded = [book / target.partition("?")[0] for target in start.targets if not target.endswith((".html", "#"))]
    files = {path for path in loaded if path.is_file()} | {book / "index.html"}
    assert sum(path.stat().st_size for path in files) < 500_000


@of_all_pages_exhaustively
@pytest.mark.timeout(1800)
def test_no_link_is_broken(book: Path) -> None:
    assert broken_links(book) == []


@of_some_pages
@pytest.mark.timeout(300)
def test_a_class_has_its_signature_and_its_methods_and_a_method_its_docstring(book: Path) -> None:
    page = (book / "reference/minidl.compress.html").read_text(encoding="utf-8")
    text = re.sub(r"\s", "", re.sub("<[^>]*>", "", page))
    assert "classTopK(density,*,all_reduce='gather')" in html.unescape(text)
    assert "begin_step(norm,nodes)¶Clipthenextgradient" in text
    kinds = {nn.ReLU: "()", optim.StepLR: "(optimizer, step_size, gamma=0.1, last_epoch=-1)"}
    for kind, taken in kinds.items():
        assert conf.signature(None, "class", "", kind, None, "(*args, **options)", "") == (taken, "")


@needs_browser
@of_all_pages_exhaustively
@pytest.mark.timeout(1800)
def test_every_page_can_be_read_on_a_telephone_without_a_network(book: Path, tmp_path: Path) -> None:
    assert faults(book, tmp_path) == {}


@needs_browser
@of_some_pages
@pytest.mark.timeout(300)
def test_a_guess_unfolds_its_results_and_a_tap_enlarges_a_picture(book: Path, tmp_path: Path) -> None:
    with chromium(tmp_path) as driver:
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", TELEPHONE)
        driver.get((book / "notebooks/02c_step_sizes.html").as_uri())
        results = driver.find_elements(By.CSS_SELECTOR, "details.result")
        picture = results[0].find_element(By.CSS_SELECTOR, "img")
        assert not any(result.get_property("open") for result in results)
        driver.execute_script("arguments[0].click()", driver.find_element(By.XPATH, "//button[text()='give up']"))
        wait_for(picture.is_displayed)
        assert [bool(result.get_property("open")) for result in results] == [True] + [False] * (len(results) - 1)
        tapped = "arguments[0].click(); return arguments[0].getBoundingClientRect().width / arguments[0].naturalWidth"
        assert driver.execute_script(tapped, picture) == 0.75  # at 150 dots an inch letters of 6 points have 9 pixels
        assert driver.execute_script("return document.documentElement.scrollWidth") == TELEPHONE["width"]


@needs_browser
@of_some_pages
@pytest.mark.timeout(300)
def test_the_search_works_from_a_file_and_the_contents_by_keyboard(book: Path, tmp_path: Path) -> None:
    with chromium(tmp_path) as driver:
        driver.get((book / "index.html").as_uri())
        keys = ActionChains(driver)
        keys.send_keys(Keys.TAB).perform()
        assert driver.switch_to.active_element.get_property("textContent").strip() == "Skip to content"
        driver.find_element(By.CSS_SELECTOR, "input.sidebar-search").send_keys("spectral radius", Keys.ENTER)
        wait_for(lambda: driver.find_elements(By.PARTIAL_LINK_TEXT, "02c. How far"))
        assert driver.get_log("browser") == []
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", TELEPHONE)
        driver.get((book / "index.html").as_uri())
        menu = driver.find_element(By.CSS_SELECTOR, ".sidebar-drawer a")
        assert not menu.is_displayed()
        keys.send_keys(Keys.TAB, Keys.SPACE).perform()
        wait_for(menu.is_displayed)
