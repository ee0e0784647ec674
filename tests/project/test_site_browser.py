"""The documentation site: its links, its names, and what a browser shows of its pages."""

from __future__ import annotations

import functools
import html
import posixpath
import re
import shutil
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

from beaconframes import colours

from ..conftest import locked

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)

pytestmark = pytest.mark.long  # To build the site takes a minute.
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")

PAGES = (
    "index.html",
    "getting-started/solo-staker.html",
    "guide/units.html",
    "own-node.html",
    "recipes.html",
    "notebooks/01_validator_income.html",
    "gallery/index.html",
    "gallery/the-graffiti-wall.html",
    "dictionary/index.html",
    "dictionary/income_history.html",
    "api/index.html",
    "api/beaconframes.load_execution_performance.html",
    "api/beaconframes.plot.income.html",
    "api/beaconframes.Explorer.html",
)
"""One page or more of each kind."""

LOST_PICTURES = """
Promise.all([...document.querySelectorAll("article img")].map(async (image) => {
    image.loading = "eager";
    await image.decode().catch(() => null);
    return image.naturalWidth ? null : image.src;
})).then((found) => found.filter(Boolean))
"""

ATTRIBUTE = re.compile(r'<(?:a|img|link|script)\b[^>]*?\b(?:href|src)="([^"]*)"')
ANCHOR = re.compile(r'\bid="([^"]+)"')


@pytest.fixture(scope="session")
def site(site_folder):
    """The folder of the site, which one worker builds for all. A warning fails the build."""
    folder = site_folder
    with locked(folder):
        if not (folder / "site" / "index.html").exists():
            # The other workers use the other cores; processes of Sphinx take more CPU time.
            command = [sys.executable, ROOT / "docs" / "site" / "build.py", folder / "site"]
            command += ["--jobs", "1"]
            built = subprocess.run(command, capture_output=True, text=True, check=False)
            assert 0 == built.returncode, built.stderr
    return folder / "site"


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Print nothing."""


@pytest.fixture(scope="module")
def address(site):
    """The address of the site on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=site))
    with server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser():
    """A headless browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # As root in a container the sandbox does not work; the browser opens only our own pages.
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield running
        running.close()


@pytest.fixture(params=[(1300, 900), (360, 740)], ids=["desktop", "phone"])
def page(request, browser, address):
    """A page of the browser that collects what goes wrong."""
    width, height = request.param
    page = browser.new_page(viewport={"width": width, "height": height}, base_url=address)
    page.emulate_media(color_scheme="light")
    page.problems = []
    report = page.problems.append
    page.on("console", lambda said: report(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: report(str(error)))
    # A page that is left aborts the pictures that it still loads.
    aborted = "net::ERR_ABORTED"
    page.on(
        "requestfailed",
        lambda sent: None if sent.failure == aborted else report(f"failed: {sent.url}"),
    )
    page.on("response", lambda got: report(f"{got.status}: {got.url}") if got.status > 399 else 0)
    page.on(
        "request",
        lambda sent: None if sent.url.startswith((address, "data:", "blob:")) else report(sent.url),
    )
    yield page
    page.close()


def find_targets(site):
    """Return the links and the anchors of every page."""
    links, anchors = {}, {}
    for path in site.rglob("*.html"):
        name = path.relative_to(site).as_posix()
        if name.startswith("_static/"):
            continue  # Templates of the theme.
        text = path.read_text(encoding="utf-8")
        links[name] = set(map(html.unescape, ATTRIBUTE.findall(text)))
        anchors[name] = set(ANCHOR.findall(text))
    return links, anchors


def test_every_link_of_the_site_leads_somewhere(site):
    """Pages, anchors, pictures, scripts and styles exist; nothing is loaded from elsewhere."""
    links, anchors = find_targets(site)

    broken = set()
    for name, targets in links.items():
        for target in targets:
            path, _, anchor = unquote(target).partition("#")
            path = path.partition("?")[0]
            if re.match(r"[a-z]+:", path):
                continue
            full = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            full = full if path else name
            lost_anchor = anchor and full in anchors and anchor not in anchors[full]
            if lost_anchor or not (site / full).exists():
                broken.add((name, target))
    assert len(links) > 300
    assert set() == broken


def test_every_public_name_is_in_the_index_of_the_site(site):
    """Sphinx documents each name, so that pages and other projects can link to it."""
    from sphinx.util.inventory import InventoryFile

    import beaconframes as bf

    with (site / "objects.inv").open("rb") as file:
        inventory = InventoryFile.loads(file.read(), uri="").data
    names = {name for kind in inventory.values() for name in kind}

    modules = [(bf, ""), (bf.v2, "v2."), (bf.analysis, "analysis."), (bf.wall, "wall.")]
    modules += [(bf.plot, "plot."), (bf.interactive, "interactive.")]
    public = [
        f"beaconframes.{prefix}{name}" for module, prefix in modules for name in module.__all__
    ]
    assert [] == [name for name in public if name not in names]
    assert "beaconframes.Explorer.close" in names


@in_browser
def test_every_kind_of_page_fits_and_has_no_errors(page):
    """No errors, no request that fails or leaves the machine, no sideways scroll, all pictures.

    Each page is light, and then dark.
    """
    wide, blank = [], []
    for name in PAGES:
        page.goto(f"/{name}")
        blank += page.evaluate(LOST_PICTURES)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.locator(f'html[data-theme="{scheme}"]').wait_for()
            size = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            wide += [name] if size[0] > size[1] else []

    assert [] == page.problems
    assert [] == wide
    assert [] == blank


@in_browser
def test_the_search_finds_a_table_and_its_loader(browser, address):
    """The words of a user lead to the dictionary and to the reference."""
    page = browser.new_page(base_url=address)
    page.goto("/search.html?q=income_history")
    page.get_by_text("Search finished").wait_for()
    found = page.locator("ul.search li a").evaluate_all("links => links.map(link => link.href)")
    page.close()

    names = [link.removeprefix(f"{address}/").partition("?")[0].partition("#")[0] for link in found]
    assert "dictionary/income_history.html" in names[:5]
    assert "api/beaconframes.load_income_history.html" in names[:5]


@in_browser
def test_the_search_shows_where_it_found_words_without_a_web_server(browser, site):
    """A browser fetches no files from a disk; the search reads the texts from a script."""
    page = browser.new_page()
    page.goto(f"file://{site}/search.html?q=compounding")
    page.get_by_text("Search finished").wait_for()
    first = page.locator("ul.search li p.context").first
    first.wait_for()

    assert "compounding" in first.inner_text().lower()
    page.close()


@in_browser
def test_interactive_figures_are_drawn_when_their_tab_is_opened(page):
    """One tab switches all pictures of the page; each figure is as wide as its tab."""
    page.goto("/gallery/yield.html")
    figures = page.locator("[data-figure]")
    assert 0 == page.locator(".main-svg").count()
    page.locator("label.sd-tab-label", has_text="plotly").first.click()

    for number in range(figures.count()):
        figures.nth(number).scroll_into_view_if_needed()
        figures.nth(number).locator(".main-svg").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.emulate_media(color_scheme="dark")
    page.locator('html[data-theme="dark"]').wait_for()
    theme = colours.Theme("#14181e")
    for colour in (theme.paper, theme.adapt(colours.RED), theme.adapt(colours.PURPLE)):
        parts = ", ".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))
        page.locator(f'.main-svg [style*="rgb({parts})"]').first.wait_for(state="attached")
    assert [] == page.problems


@in_browser
def test_charts_are_dark_on_a_dark_page(page, address):
    """Issue 19: their pictures are those of the dark theme; the wall keeps its colours."""
    page.goto(f"{address}/gallery/index.html")
    read = "[...document.querySelectorAll('.picture img')].map(image => image.src)"
    light = page.evaluate(read)
    page.emulate_media(color_scheme="dark")
    page.locator('html[data-theme="dark"]').wait_for()
    page.locator('.picture img[src$="-dark.png"]').first.wait_for()

    dark = page.evaluate(read)

    assert {"wall_image", "wall_target", "wall_timelapse"} == {
        Path(url).stem for url in dark if not url.endswith("-dark.png")
    }
    assert len(dark) == len(light) > 30
    assert [] == page.evaluate(LOST_PICTURES)
    page.emulate_media(color_scheme="light")
    page.locator('.picture img[src$="-dark.png"]').first.wait_for(state="detached")
    assert light == page.evaluate(read)
    assert [] == page.problems
