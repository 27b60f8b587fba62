"""The page in headless Chromium: accessible, offline, operable by keyboard, and every planted failure can be seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsv4gen.report.html import write_html
from tests.report.browser import open_browser
from tests.report.planted import all_failures
from tests.tools import need_module

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
TABS = ("summary", "paths", "proofs", "resources", "executed", "benchmark", "source")
#: what must be readable somewhere in a tab of a cell
PLANTED = [
    ("gfx90a/topk", "summary", "does not fit"),
    ("gfx90a/topk", "proofs", "18456 over the limit of 8192"),
    ("gfx950/topk", "summary", "stale tuning"),
    ("gfx950/topk", "summary", "block_threads: 384 is not among the tiles 256, 512, 1024"),
    ("gfx950/topk", "paths", "requires cluster.remote_shared, but cluster.remote_shared is False"),
    ("sm_90/gather_dequant", "paths", "tuned: specs/tuning/sm_90/gather_dequant.yaml, kernels.scope[0]"),
    ("gfx950/topk", "executed", "register2"),
    ("gfx950/topk", "executed", "180,145"),
    ("gfx950/gather_dequant", "summary", "older results"),
    ("gfx1250/topk", "summary", "compile-only"),
    ("gfx1250/topk", "summary", "not verified"),
    ("gfx1250/topk", "benchmark", "no card of this kind was at hand"),
    ("sm_90/topk", "resources", "3 registers spilled, 0 allowed"),
    ("sm_90/topk", "benchmark", "NVIDIA H200"),
    ("sm_90/gather_dequant", "summary", "gather_dequant.py is edited"),
    ("sm_90/gather_dequant", "executed", "3 of 512 values differ"),
    ("sm_90/gather_dequant", "executed", "the emulator cannot"),
    ("sm_90/gather_dequant", "benchmark", "not measured"),
]
HEADLINES = {
    "gfx90a/topk": "does not fit",
    "gfx950/topk": "stale tuning",
    "gfx950/gather_dequant": "older results",
    "gfx1250/topk": "not built",
    "sm_90/topk": "spills",
    "sm_90/gather_dequant": "damaged",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    _, report = all_failures(folder)
    return write_html(report, folder / "html").as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    need_module("axe_playwright_python")
    with open_browser() as opened:
        yield opened


class Visit:
    """One page with everything it did wrong: script errors, messages, requests."""

    def __init__(self, browser: Any, address: str, **context: Any) -> None:
        self.wrong: list[str] = []
        self.requests: list[str] = []
        self.address = address
        self.page = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **context}).new_page()
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)

    def open(self, place: str) -> str:
        """Go to a place in the page; the text of the open tab once it is drawn."""
        self.page.evaluate("place => { location.hash = place }", place)
        tab = place.split("/")[2] if place.count("/") > 1 else "summary"
        panel = self.page.locator(f"#panel-{tab}")
        panel.wait_for(state="visible")
        if tab == "source":
            panel.locator('.line[aria-selected="true"]').wait_for()
        return str(panel.inner_text())

    def close(self) -> None:
        """Nothing was wrong and nothing was asked of anybody."""
        self.page.context.close()
        assert self.wrong == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))] == []
        assert [url for url in self.requests if url.startswith("file:")] == [self.address]


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Visit]:
    visiting = Visit(browser, address)
    yield visiting
    visiting.close()


def violations(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:150]}" for one in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_tab_is_accessible(browser: Any, address: str, scheme: str) -> None:
    visiting = Visit(browser, address, color_scheme=scheme)
    assert violations(visiting.page) == []
    for cell, tab in (("sm_90/topk", tab) for tab in TABS):
        visiting.open(f"{cell}/{tab}")
        assert violations(visiting.page) == [], tab
    for cell in ("gfx950/topk/executed", "gfx90a/topk/proofs", "gfx1250/topk/benchmark"):
        visiting.open(cell)
        assert violations(visiting.page) == [], cell
    visiting.page.locator("#search").fill("topk")
    assert violations(visiting.page) == []
    visiting.close()


def test_a_narrow_page_is_accessible_and_does_not_overflow(browser: Any, address: str) -> None:
    visiting = Visit(browser, address, viewport={"width": 390, "height": 800})
    for tab in TABS:
        visiting.open(f"sm_90/topk/{tab}")
        assert visiting.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), tab
    assert violations(visiting.page) == []
    visiting.close()


def test_every_planted_failure_is_in_the_matrix(visit: Visit) -> None:
    for cell, headline in HEADLINES.items():
        button = visit.page.locator(f'[data-cell="{cell}"]')
        assert button.locator(".headline").inner_text() == headline
        assert headline in (button.get_attribute("aria-label") or "")
    attention = visit.page.locator(".attention").inner_text()
    assert "gone.json: there is no such file" in attention
    assert "other.json: not a result of dsv4gen bench schema 1" in attention
    assert "gfx950/topk executed: 1 not executed" in attention


@pytest.mark.parametrize(("cell", "tab", "expected"), PLANTED)
def test_every_planted_failure_is_explained(visit: Visit, cell: str, tab: str, expected: str) -> None:
    assert expected in visit.open(f"{cell}/{tab}")


def test_states_differ_in_shape_and_not_only_in_colour(visit: Visit) -> None:
    drawn = visit.page.evaluate("[...document.querySelectorAll('symbol')].map(one => [one.id, one.innerHTML])")
    shapes = [re.sub(r'(fill|stroke)="[^"]*"', "", shape) for _, shape in drawn]
    assert len(set(shapes)) == len(drawn) == 6


def test_the_keyboard_reaches_everything(visit: Visit) -> None:
    page = visit.page
    press = page.keyboard.press
    page.locator('[data-cell="gfx90a/gather_dequant"]').focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        press(key)
    assert page.evaluate("location.hash") == "#gfx950/topk"
    assert page.evaluate("document.activeElement.id") == "detail"
    page.locator("#tab-summary").focus()
    press("ArrowRight")
    assert page.evaluate("location.hash") == "#gfx950/topk/paths"
    assert page.evaluate("document.activeElement.id") == "tab-paths"
    press("ArrowLeft")
    press("ArrowLeft")
    assert page.evaluate("location.hash").startswith("#gfx950/topk/source")
    press("Escape")
    assert page.evaluate("document.activeElement.dataset.cell") == "gfx950/topk"
    press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("register2")
    assert page.locator(".cell.hit").evaluate_all("all => all.map(one => one.dataset.cell)") == ["gfx950/topk"]
    press("ArrowDown")
    press("Enter")
    assert page.evaluate("location.hash") == "#gfx950/topk/summary"
    page.locator("#panel-summary").wait_for(state="visible")
    assert "row path register2" in page.locator("#panel-summary").inner_text()
    assert page.locator(".cell.hit").count() == 0


def test_a_source_that_loads_late_leaves_the_address_alone(visit: Visit) -> None:
    page = visit.page
    page.evaluate("""() => {
        const { text } = Response.prototype, released = new Promise((go) => { window.arrive = go; });
        Response.prototype.text = async function () { await released; return text.call(this); };
    }""")
    page.evaluate("location.hash = 'gfx950/topk/source'")
    page.locator("#panel-source").wait_for(state="visible")
    page.evaluate("location.hash = 'gfx950/topk/summary'")
    page.locator("#panel-summary").wait_for(state="visible")
    page.evaluate("arrive()")
    page.locator('#panel-source .line[aria-selected="true"]').wait_for(state="attached")
    assert page.evaluate("location.hash") == "#gfx950/topk/summary"


def test_a_generated_line_leads_to_its_template_and_its_spec(visit: Visit) -> None:
    visit.open("sm_90/topk/source/topk.cu:1")
    page = visit.page
    row = page.locator(".line", has_text="constexpr").filter(has_text="kFineBins").first
    number = int(row.get_attribute("data-line") or 0)
    row.click()
    assert page.evaluate("location.hash") == f"#sm_90/topk/source/topk.cu:{number}"
    panes = page.locator(".pane")
    template = panes.nth(1)
    assert "templates/" in template.inner_text()
    marked = template.locator(".line.at").inner_text()
    assert "fine_bins" in marked or "constexpr" in marked
    assert "fine_bins: 256" in panes.nth(2).locator(".line.at").first.inner_text()
    page.locator(".listing").first.press("ArrowDown")
    assert page.evaluate("location.hash") == f"#sm_90/topk/source/topk.cu:{number + 1}"


def test_a_spec_key_leads_to_its_line(visit: Visit) -> None:
    visit.open("gfx950/topk/paths")
    visit.page.locator("#panel-paths a[title='ops.select.launch_paths[1].requires[0]']").click()
    at = visit.page.locator(".pane").nth(2).locator(".line.at")
    at.wait_for()
    assert "requires: [cluster.remote_shared]" in at.inner_text()


def test_charts_show_ours_floor_and_peers(visit: Visit) -> None:
    visit.open("sm_90/topk/benchmark")
    charts = visit.page.locator(".chart")
    assert charts.count() == 2
    assert charts.first.locator("title").all_text_contents() == ["floor", "sglang", "flashinfer", "torch", "ours"]
    legend = visit.page.locator(".key span").all_inner_texts()
    assert legend == ["ours", "floor", "sglang", "flashinfer", "torch"]


def test_colours_follow_the_system_until_chosen(browser: Any, address: str) -> None:
    visiting = Visit(browser, address, color_scheme="dark")
    colour = "getComputedStyle(document.body.parentElement).backgroundColor"
    dark = visiting.page.evaluate(colour)
    visiting.page.locator("#theme").click()
    assert visiting.page.locator("#theme").inner_text() == "Light"
    assert visiting.page.evaluate(colour) != dark
    visiting.page.locator("#theme").click()
    assert visiting.page.evaluate(colour) == dark
    visiting.close()


def test_a_print_has_the_matrix_and_all_tables_of_the_open_cell(visit: Visit) -> None:
    visit.open("sm_90/topk/proofs")
    visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    visit.page.emulate_media(media="print")
    text = visit.page.locator("body").inner_text()
    for expected in ("does not fit", "Launch paths", "3 registers spilled", "NVIDIA H200", "threads"):
        assert expected in text
    assert not visit.page.locator(".tools").is_visible()
    visit.page.set_viewport_size({"width": 1060, "height": 740})  # A4 on its side
    assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_matrix_reads_without_scripts(browser: Any, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator(".headline").all_inner_texts().count("does not fit") == 1
    assert "Details need scripts" in page.locator("#detail").inner_text()
    context.close()


def test_text_of_specs_stays_text(tmp_path: Path, browser: Any) -> None:
    planted, _ = all_failures(tmp_path)
    planted.copy.edit(
        "specs/families/topk.yaml", "summary: Select", "summary: </script><script>alert(1)</script> Select"
    )
    file = write_html(planted.collect(), tmp_path / "html")
    visiting = Visit(browser, file.as_uri())
    visiting.open("sm_90/topk")
    assert "</script><script>alert(1)</script> Select" in visiting.page.locator("#detail header").inner_text()
    visiting.close()


def test_the_readme_shows_a_picture_of_it() -> None:
    root = Path(__file__).parent.parent.parent
    assert "(docs/report.png)" in (root / "README.md").read_text(encoding="utf-8")
    picture = (root / "docs" / "report.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 300_000
