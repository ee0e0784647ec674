"""Charts, the wall and a notebook in a real browser."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from plotly import graph_objects as go

import beaconframes as bf
from beaconframes import text

from ..support import chart_frames
from ..support.untrusted_texts import TEXTS

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
PATIENCE = 120_000
"""Milliseconds: the notebook may have to simulate its chain first."""

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


@pytest.fixture(scope="module")
def browser():
    """A headless browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # As root in a container the sandbox does not work; the browser opens only our own pages.
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def short():
    """A folder for sockets: the names of pytest's folders may be too long for sockets."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def read_port(folder):
    """The port in the file of a Jupyter server, or None if there is none yet."""
    for file in folder.glob("jpserver-*.json"):
        with contextlib.suppress(json.JSONDecodeError):
            return json.loads(file.read_text())["port"]
    return None


@pytest.fixture
def lab(tmp_path, short, machine_cache):
    """A JupyterLab without the user's settings: the address of a folder of notebooks."""
    folder, settings = tmp_path / "notebooks", tmp_path / "settings"
    shutil.copytree(NOTEBOOKS, folder)
    # Cells out of sight are in the page as well; the prompt about news is off.
    for extension, choices in {
        "notebook-extension/tracker": {"windowingMode": "none"},
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    }.items():
        file = settings / "@jupyterlab" / f"{extension}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(choices))
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", "--port=0"),
        *("--IdentityProvider.token=secret", "--allow-root", f"--ServerApp.root_dir={folder}"),
        "--KernelManager.transport=ipc",
    ]
    surroundings = {
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(machine_cache),
        "JUPYTER_RUNTIME_DIR": str(short),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
        "JUPYTER_DATA_DIR": str(tmp_path / "data"),
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        # As slow as a service with this rate limit, so that progress is visible.
        "BEACONFRAMES_RATE": "15",
    }
    with (tmp_path / "log").open("w") as log:
        running = subprocess.Popen(
            command, env=os.environ | surroundings, cwd=folder, stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + 180
        # The server creates its file before it writes it, so a partial file is read again.
        while (port := read_port(short)) is None:
            assert running.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/lab/tree/{{}}?token=secret"
    finally:
        running.terminate()
        running.wait(30)


@pytest.fixture
def open_figure(browser, tmp_path):
    """Save a figure, open it in a page, and return the page and its network requests."""
    pages = []

    def show(figure):
        file = tmp_path / "figure.html"
        figure.write_html(file)
        page = browser.new_page(viewport={"width": 1000, "height": 600})
        pages.append(page)
        wanted = []
        page.on("request", lambda request: wanted.append(request.url))
        page.on("pageerror", lambda error: wanted.append(str(error)))
        page.goto(file.as_uri())
        page.locator(".nsewdrag").first.wait_for(state="attached")
        return page, [url for url in wanted if url != file.as_uri()]

    yield show
    for page in pages:
        page.close()


def middle(page):
    """The middle of the plot, in pixels."""
    box = page.locator(".nsewdrag").first.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def point(page, number):
    """Where a point of the first trace is, in pixels."""
    return page.evaluate(
        "n => { const chart = document.querySelector('.js-plotly-plot');"
        " const { xaxis: x, yaxis: y } = chart._fullLayout;"
        " const data = chart._fullData[0], box = chart.getBoundingClientRect();"
        " return [box.left + x._offset + x.d2p(data.x[n]),"
        " box.top + y._offset + y.d2p(data.y[n])] }",
        number,
    )


def span(page):
    """The range that the x axis shows, as milliseconds or numbers."""
    return page.evaluate(
        "document.querySelector('.js-plotly-plot')._fullLayout.xaxis.range.map(x =>"
        " typeof x === 'number' ? x : Date.parse(x + 'Z'))"
    )


def test_an_interactive_chart_shows_hover_texts_and_zooms(open_figure, explorer):
    """Hovering shows day and amount; the wheel zooms; nothing is fetched or uploaded."""
    income = bf.load_income_history(range(5), since=0)
    page, wanted = open_figure(bf.interactive.income(income, every="epoch"))

    page.mouse.move(*point(page, 200))
    page.locator(".hovertext").first.wait_for()
    text = page.locator(".hovertext").first.text_content()
    assert re.search("2026, [0-9:]+ UTC", text)
    assert "gwei" in text

    first, last = span(page)
    page.get_by_role("button", name="Zoom in").or_(
        page.locator("[data-title='Zoom in']")
    ).first.click()
    page.wait_for_function(
        "width => { const r = document.querySelector('.js-plotly-plot')._fullLayout.xaxis.range;"
        " return Date.parse(r[1] + 'Z') - Date.parse(r[0] + 'Z') < width * 0.9 }",
        arg=last - first,
    )

    buttons = page.locator(".modebar-btn").evaluate_all("all => all.map(b => b.dataset.title)")
    uploading = re.compile("cloud|share|upload|edit", re.IGNORECASE)
    assert [] == [title for title in buttons if uploading.search(title)]
    assert [] == wanted


def test_incomplete_days_are_drawn(open_figure, explorer):
    """A hatched bar is a bar with stripes on it, not a gap."""
    income = bf.load_income_history(range(5), since=0)
    page, _ = open_figure(bf.interactive.income(income, every="day"))

    fills = page.locator(".bars path").evaluate_all("all => all.map(bar => bar.style.fill)")
    ids = [fill.split("#")[1].rstrip('")') for fill in fills if "url(" in fill]
    backgrounds = [
        page.evaluate(
            "id => [...document.getElementById(id).querySelectorAll('rect')]"
            ".map(r => r.style.fill || r.getAttribute('fill'))",
            pattern,
        )
        for pattern in ids
    ]

    assert backgrounds
    assert [] == [found for found in backgrounds if not found]


def test_charts_are_readable_on_a_phone(open_figure):
    """At 360 pixels, axis titles, tick labels, legend and caption do not cover each other."""
    frame = chart_frames.income(
        range(100, 400), slashing_penalty_gwei=900, attestation_head_reward_gwei=10**6
    )
    figure = bf.interactive.income(frame, by="component", title="Income", template="plotly_dark")
    page, _ = open_figure(figure)
    page.set_viewport_size({"width": 360, "height": 700})
    page.wait_for_function("document.querySelector('.main-svg').clientWidth <= 360")

    boxes = page.evaluate(
        "() => ['.xtick', '.ytick', '.y2tick', '.xtitle', '.ytitle', '.y2title', '.gtitle',"
        " '.legend'].flatMap(name => [...document.querySelectorAll(name)].map(element => {"
        " const box = element.getBoundingClientRect();"
        " return [name, box.left, box.top, box.right, box.bottom] }))"
    )
    assert {".xtick", ".ytick", ".y2tick", ".xtitle", ".ytitle", ".legend"} <= {b[0] for b in boxes}
    for name, left, top, right, bottom in boxes:
        assert 0 <= left <= right <= 361, name
        for other, *box in boxes:
            apart = left >= box[2] or right <= box[0] or top >= box[3] or bottom <= box[1]
            assert apart or name == other or {name, other} <= {".ytick", ".y2tick"}, (name, other)
    label = page.locator(".plotly-graph-div").get_attribute("aria-label")
    assert bf.interactive.alt_text(figure) == label


@pytest.mark.parametrize("width", [pytest.param(900, marks=pytest.mark.long), 390])
@pytest.mark.parametrize(
    "name",
    [
        "leaderboard",
        "luck",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("income by component", "attestations", "yield of layers")
        ),
    ],
)
def test_the_height_of_a_page_follows_its_content(open_figure, name, width):
    """P6: the plot has 0.42 of the width, or 300 pixels; legend and page end together."""
    chart, frame, others, options = chart_frames.CHARTS[name]
    page, _ = open_figure(getattr(bf.interactive, chart)(frame(), *others, **options))
    page.set_viewport_size({"width": width, "height": 600})
    page.wait_for_function(
        "width => { const { _fullLayout: all, layout } = document.querySelector('.js-plotly-plot');"
        " return all.width === width - 16 && layout.height }",
        arg=width,
    )

    plot, height, legend, rows = page.evaluate(
        "() => { const chart = document.querySelector('.js-plotly-plot');"
        " const top = chart.getBoundingClientRect().top;"
        " const box = document.querySelector('.legend')?.getBoundingClientRect();"
        " const rows = {};"
        " for (const one of document.querySelectorAll('.legend .traces')) {"
        "  const { top, left, right } = one.getBoundingClientRect();"
        "  (rows[Math.round(top)] ??= []).push([left, right]) }"
        " const all = chart._fullLayout;"
        " return [all._size.h, all.height, box ? box.bottom - top : null, Object.values(rows)] }"
    )
    least = 380 if "layers" in name else 300
    assert abs(max(0.42 * (width - 16), least) - plot) < 3
    # The page has a margin of 8 pixels.
    assert height <= (592 if width == 900 else 700)
    if legend is not None:
        assert abs(legend - height) < 4
    # No entry would have had room in the row above.
    for above, below in itertools.pairwise(rows):
        (left, right), (_, end) = below[0], above[-1]
        assert end + (right - left) > width - 120


def luck(validators, committees):
    """Proposals and seats of many validators, so that labels and caption are long."""
    frame = chart_frames.balances(range(100), validators)
    sums = chart_frames.totals(range(100), 1_000_000)
    blocks = chart_frames.proposals(*["proposed"] * 40, proposers=validators)
    seats = pl.concat(chart_frames.committee(range(512), period) for period in range(committees))
    return bf.interactive.luck(frame, sums, blocks, seats)


LONG_LABELS = "labels and caption of luck"
TEXTS_OF_PAGES = {
    LONG_LABELS: lambda: luck(range(100_000, 100_600), 9),
    "empty luck": lambda: bf.interactive.luck(
        *(chart_frames.balances(range(100)), chart_frames.totals(range(100), 2)),
        chart_frames.proposals("proposed"),
    ),
    "one reading of gas fees": lambda: bf.interactive.gas_fees(chart_frames.gas(0)),
    "outliers": lambda: bf.interactive.income(
        pl.concat(
            [
                chart_frames.income(validators=range(60)),
                chart_frames.income(validators=[100_000], slashing_penalty_gwei=10**12),
            ]
        ),
        by="validator",
    ),
}


@pytest.mark.parametrize("width", [pytest.param(900, marks=pytest.mark.long), 390])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name not in ("outliers", LONG_LABELS) else ())
        for name in TEXTS_OF_PAGES
    ],
)
def test_no_text_of_a_page_is_cut(open_figure, name, width):
    """All texts, also of all four tiers of gas fees, are within the figure, and it in its page."""
    page, _ = open_figure(TEXTS_OF_PAGES[name]())
    page.set_viewport_size({"width": width, "height": 600})
    page.wait_for_function(
        "width => document.querySelector('.js-plotly-plot')._fullLayout.width === width - 16",
        arg=width,
    )

    texts, height = page.evaluate(
        "() => { const whole = document.querySelector('.main-svg').getBoundingClientRect();"
        " const texts = [...document.querySelectorAll('.main-svg text')].map(text => {"
        "  const { left, top, right, bottom } = text.getBoundingClientRect();"
        "  return [text.textContent, left - whole.left, top - whole.top, whole.right - right,"
        "   whole.bottom - bottom] });"
        " return [texts, whole.bottom] }"
    )
    assert [] == [text for text, *sides in texts if min(sides) < -1]
    assert height <= (600 if width == 900 else 700)
    if "gas" in name:
        ticks = ("Rapid", "Fast", "Standard", "Slow")
        assert ticks == tuple(re.match("[A-Za-z]*", text)[0] for text, *_ in texts[:4])


@pytest.mark.long
def test_two_bars_a_year_apart_are_at_the_ends_of_the_axis(open_figure):
    """In plotly, the axis showed half of a year before and after them, without data."""
    frame = chart_frames.transfers(10**9, 10**9, days=[300, 665])
    page, _ = open_figure(bf.interactive.deposits(frame, every="month"))

    first, last = span(page)
    days = (last - first) / 86_400_000
    assert 365 + 24 < days < 365 + 100


@pytest.mark.long
def test_a_wall_leaves_no_gap_on_a_phone(open_figure):
    """P6: below the caption there are the labels of the slider, and then the page ends."""
    frame = chart_frames.wall([(slot, slot, 2, "ff0000", 7) for slot in range(0, 200, 10)])
    page, _ = open_figure(bf.interactive.wall(frame, region=(0, 0, 199, 119)))
    page.set_viewport_size({"width": 390, "height": 700})
    page.wait_for_function("document.querySelector('.main-svg').clientWidth <= 390")
    page.wait_for_timeout(200)

    title, slider, bottom = page.evaluate(
        "() => ['.xtitle', '.slider-container', '.main-svg'].map(name => {"
        " const { top, bottom } = document.querySelector(name).getBoundingClientRect();"
        " return name === '.slider-container' ? top : bottom })"
    )
    assert 0 < slider - title < 40
    assert slider < bottom < slider + 100


@pytest.mark.parametrize(
    "title", [pytest.param("Income", marks=pytest.mark.long), "Income of\nour validators"]
)
def test_a_title_is_between_the_edge_and_the_plot(open_figure, title):
    """All lines of it are visible."""
    page, _ = open_figure(bf.interactive.income(chart_frames.income(), title=title))

    top, bottom, figure, plot = page.evaluate(
        "() => ['.gtitle', '.js-plotly-plot', '.nsewdrag'].map(name => {"
        " const { top, bottom } = document.querySelector(name).getBoundingClientRect();"
        " return name === '.gtitle' ? [top, bottom] : [top] }).flat()"
    )
    assert figure <= top < bottom <= plot


def test_a_height_of_the_user_stays(open_figure):
    """Also after the page was made narrower."""
    page, _ = open_figure(bf.interactive.leaderboard(chart_frames.leaderboard(5, 3), height=333))
    page.set_viewport_size({"width": 390, "height": 600})
    page.wait_for_function("document.querySelector('.main-svg').clientWidth <= 390")

    assert 333 == page.evaluate("document.querySelector('.js-plotly-plot')._fullLayout.height")


@pytest.mark.long
def test_the_legend_has_no_stripes(open_figure, explorer):
    """Z3: each swatch is plain, in the colour of its bars, though the first bars are hatched."""
    income = bf.load_income_history(range(5), since=0)
    page, _ = open_figure(bf.interactive.income(income, every="day", by="component"))

    fill = "all => all.map(shape => shape.style.fill)"
    swatches = page.locator(".legend .legendpoints path").evaluate_all(fill)
    names = page.locator(".legend .legendtext").all_text_contents()

    assert {"Attestations", "Block proposals"} <= set(names)
    assert len(names) == len(set(swatches))
    assert [] == [found for found in swatches if "url(" in found]


@pytest.mark.long
def test_a_million_points_open_and_pan(open_figure):
    """A series of a million points is shown within seconds and follows the mouse."""
    epochs = np.tile(np.arange(50_000), 20)
    frame = pl.DataFrame(
        {
            "validator_index": np.repeat(np.arange(20), 50_000),
            "epoch": epochs,
            "time": pl.Series((1_606_824_023 + 384 * epochs) * 1_000_000).cast(
                pl.Datetime("us", "UTC")
            ),
            "balance_gwei": 32_000_000_000 + 10 * epochs,
            "effective_balance_gwei": np.full(len(epochs), 32_000_000_000),
        }
    )
    began = time.monotonic()
    page, wanted = open_figure(bf.interactive.balances(frame))
    assert time.monotonic() - began < 90

    before = span(page)
    x, y = middle(page)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 200, y, steps=5)
    page.mouse.up()
    page.wait_for_function(
        "first => Date.parse(document.querySelector('.js-plotly-plot')"
        "._fullLayout.xaxis.range[0] + 'Z') > first",
        arg=before[0],
    )

    after = span(page)
    assert after[1] > before[1]
    assert abs((after[1] - after[0]) - (before[1] - before[0])) < 60_000
    assert [] == wanted


@pytest.mark.long
def test_the_wall_shows_the_painter_at_the_slot_of_the_slider(open_figure):
    """A pixel painted twice shows the later write, and the earlier one further back."""
    rows = [(10, 5, 5, "ff0000", 7), (20, 5, 5, "0000ff", 8), (10, 0, 0, "00ff00", 9)]
    frame = chart_frames.wall(rows)
    page, wanted = open_figure(bf.interactive.wall(frame, region=(0, 0, 10, 10), steps=2))

    def read_hover():
        x, y = middle(page)
        page.mouse.move(x + 150, y)
        page.mouse.move(x + 3, y + 3, steps=3)
        page.locator(".hovertext").first.wait_for()
        return page.locator(".hovertext").first.text_content()

    assert "x 5, y 5: #0000ffslot 20Jan 1, 1970, 00:00:20 UTCvalidator 8" == read_hover()
    page.locator(".slider-rail-touch-rect").click(position={"x": 5, "y": 5}, force=True)
    page.locator("text=Up to slot 10").wait_for()
    assert "x 5, y 5: #ff0000slot 10Jan 1, 1970, 00:00:10 UTCvalidator 7" == read_hover()
    assert [] == wanted


@pytest.mark.long
def test_malicious_names_are_drawn_as_text(open_figure):
    """75 names in a legend, and one in a title: no link, tag or formula, and no script runs."""
    figure = go.Figure(layout={"height": 2500, "title": text.for_plotly(TEXTS[0])})
    for name in TEXTS:
        figure.add_scatter(x=[1, 2], y=[1, 2], name=text.for_plotly(name))

    page, wanted = open_figure(figure)

    drawn = page.locator(".legendtext").evaluate_all("all => all.map(one => one.textContent)")
    expected = [text.visible(name, text.LABEL) for name in TEXTS]
    assert [" ".join(name.split()) for name in expected] == [
        " ".join(name.split()) for name in drawn
    ]
    for live in ("svg a", "svg foreignObject", "svg script", "body img[onerror]", "body iframe"):
        assert 0 == page.locator(live).count()
    assert [] == wanted


@pytest.mark.parametrize(
    ("first", "tables", "images", "loaded"),
    [
        pytest.param(6, 2, 2, ("16/16", "111,603 rows"), marks=pytest.mark.long),
        pytest.param(None, 4, 7, ("43/43", "335,511 rows"), marks=pytest.mark.long),
    ],
    ids=["first cells", "all cells"],
)
def test_the_first_notebook_runs_in_jupyterlab(
    browser, lab, tmp_path, first, tables, images, loaded
):
    """All its cells run; it shows progress, tables, charts and the wall, and no error."""
    notebook = json.loads((NOTEBOOKS / "01_validator_income.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        cell |= {"outputs": [], "execution_count": None}
    if first is not None:
        # A part of the notebook takes half of the time; the whole one also runs in its own test.
        wall = ("load_graffiti_wall", "wall.render")
        notebook["cells"] = cells = [
            cell
            for number, cell in enumerate(cells)
            if number < first or any(name in "".join(cell["source"]) for name in wall)
        ]
        # So does a load of two days in place of six.
        source = "".join(cells[2]["source"])
        assert "timedelta(days=6)" in source
        cells[2]["source"] = source.replace("timedelta(days=6)", "timedelta(days=2)")
    count = len(cells)
    (tmp_path / "notebooks" / "shown.ipynb").write_text(json.dumps(notebook))
    page = browser.new_page(viewport={"width": 1000, "height": 700}, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE)

    page.goto(lab.format("shown.ipynb"))
    page.locator(".jp-Notebook .jp-CodeCell").nth(count - 1).wait_for(state="attached")
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.locator(".jp-CodeCell .jp-InputPrompt", has_text=f"[{count}]:").wait_for()

    def shown(what):
        return page.locator(f".jp-OutputArea-output {what}").count()

    assert 0 == page.locator('[data-mime-type="application/vnd.jupyter.error"]').count()
    assert 0 == page.locator('[data-mime-type="application/vnd.jupyter.stderr"]').count()
    bar = page.locator(".jp-OutputArea-output .jupyter-widgets", has_text="income_history").first
    assert bar.locator(".progress-bar-success").count() == 1
    text = re.sub(r"\s+", " ", bar.text_content())
    requests, rows = loaded
    assert re.search(rf"100% {requests} \[0[0-9:]+<00:00, .* requests/s, {rows}\]", text)
    assert shown("table.dataframe") >= tables
    assert shown("img") >= images
    page.close()
