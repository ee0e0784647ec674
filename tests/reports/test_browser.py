"""A report in a browser: no request, no error, no script but its own; sorting, dark and phone."""

import shutil
from datetime import timedelta
from itertools import chain

import polars as pl
import pytest

from beaconframes.reports.report import Report

from ..support.untrusted_texts import GRAFFITI, NAMES
from .test_page import hostile

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield running
        running.close()


@pytest.fixture(scope="module")
def file(made, tmp_path_factory):
    """A report whose names and details are the 75 hostile texts."""
    texts = [*GRAFFITI, *NAMES]
    frames = dict(made.report.frames)
    frames["validators"] = hostile(frames["validators"], "name", texts).with_columns(
        validator_index=pl.int_range(75), lost_gwei=pl.int_range(75) * 7919 % 1000 * 10**6
    )
    # Each problem is another one: repeated rows are refused.
    frames["problems"] = hostile(frames["problems"], "detail", texts).with_columns(
        first_epoch=400 + pl.int_range(75), last_epoch=400 + pl.int_range(75)
    )
    return Report(frames, {}).save(tmp_path_factory.mktemp("report") / "report.html")


@pytest.mark.parametrize(
    ("width", "scheme", "paper"),
    [
        (1200, "light", "rgb(255, 255, 255)"),
        (1200, "dark", "rgb(20, 24, 31)"),
        (360, "light", None),
    ],
)
def test_the_page_in_a_browser(browser, file, width, scheme, paper):
    """It follows the reader's setting, fits a phone, and sends and runs nothing."""
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    requests, messages, dialogs = [], [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))

    page.goto(file.as_uri())
    page.wait_for_timeout(200)

    assert ([file.as_uri()], [], []) == (requests, messages, dialogs)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(
        "[...document.querySelectorAll('figure')].every(e => e.scrollWidth <= e.clientWidth)"
    )
    if paper is not None:
        style = "getComputedStyle(document.body).backgroundColor"
        assert paper == page.evaluate(style)
    page.close()


def measure(browser, path, width):
    """Return the height above the first chart, that of the page, and what is too wide."""
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(path.as_uri())
    found = page.evaluate(
        """() => ({
          chart: document.querySelector("figure").getBoundingClientRect().top,
          page: document.documentElement.scrollHeight,
          wide: [...document.querySelectorAll("html, .scroll")]
            .filter((e) => e.scrollWidth > e.clientWidth)
            .map((e) => e.closest("section")?.id),
        })"""
    )
    page.close()
    return found


@pytest.mark.parametrize(
    ("count", "groups"),
    [
        (200, 8),
        *(pytest.param(*case, marks=pytest.mark.long) for case in ((3, 1), (2000, 20))),
    ],
)
def test_the_first_chart_is_within_two_screens(browser, made, tmp_path, count, groups):
    """However many validators, problems, groups and addresses there are; no table is cut off."""
    frames = dict(made.report.frames)
    row = pl.int_range(count)
    for name in ("validators", "problems", "upcoming"):
        rows = pl.concat([frames[name].drop_nulls("validator_index")] * count).head(count)
        frames[name] = rows.with_columns(validator_index=500_000 + row)
    group = pl.format("Operator number {} of all", pl.col("validator_index") % groups)
    frames["validators"] = frames["validators"].with_columns(group=group, name=group)
    address = pl.format("fits into 1, withdrawal address 0x{}", pl.lit("ab" * 20))
    advice = frames["problems"].with_columns(
        kind=pl.lit("consolidation possible"), avoidable=pl.lit(None, pl.Boolean), detail=address
    )
    frames["problems"] = pl.concat([frames["problems"], advice])
    verdict = frames["group_verdict"].head(1)
    frames["group_verdict"] = pl.concat(
        verdict.with_columns(group=pl.lit(f"Operator number {number} of all"))
        for number in range(groups)
    )
    path = Report(frames, {}).save(tmp_path / "report.html")

    desktop, phone = (measure(browser, path, width) for width in (1280, 360))

    assert max(desktop["chart"], phone["chart"]) <= 2 * 800
    assert desktop["page"] < 6000
    assert ([], []) == (desktop["wide"], phone["wide"])


def test_the_file_of_a_table_is_saved(browser, file):
    """A click saves the rows of the frame, unpacked, without a request."""
    page = browser.new_page()
    page.goto(file.as_uri())

    with page.expect_download() as download:
        page.locator("#validators a[download]").click()

    assert "validators.csv" == download.value.suggested_filename
    rows = pl.read_csv(download.value.path())
    assert [n * 7919 % 1000 * 10**6 for n in range(75)] == rows["lost_gwei"].to_list()
    page.close()


def test_the_rule_of_a_word_unfolds(browser, file):
    """It is on hover, and below the word after a click, for phones."""
    page = browser.new_page()
    page.goto(file.as_uri())
    word = page.locator("#answer summary").first
    rule = page.locator("#answer details p").first

    assert not rule.is_visible()
    word.click()
    assert rule.is_visible()
    assert rule.inner_text() == word.get_attribute("title")
    page.close()


def test_tables_of_events_are_lists_on_a_phone(browser, file):
    """Each row is a block with the headings beside its values: nothing scrolls sideways."""
    page = browser.new_page(viewport={"width": 360, "height": 800})
    page.goto(file.as_uri())

    scrolls = "(e) => [e.clientWidth, e.scrollWidth]"
    tables = page.locator("#problems .scroll, #upcoming .scroll").all()
    sizes = [table.evaluate(scrolls) for table in tables]
    assert len(sizes) >= 2
    assert [width for width, _ in sizes] == [needed for _, needed in sizes]
    label = "(e) => getComputedStyle(e, '::before').content"
    cells = page.locator("#problems .list tbody tr").first.locator("td").all()
    headings = page.locator("#problems .list thead").first.locator("th").all_inner_texts()
    assert [f'"{heading}"' for heading in headings[1:]] == [
        cell.evaluate(label) for cell in cells[1:]
    ]
    page.locator("#problems .list th", has_text="Validator").first.click()
    assert "ascending" == page.locator("#problems .list th").nth(1).get_attribute("aria-sort")
    page.close()


def test_tables_sort(browser, file):
    """A click sorts by number, ascending, then descending; the heading says so."""
    page = browser.new_page()
    page.goto(file.as_uri())
    head = page.locator("#validators th", has_text="Lost (ETH)")

    def read():
        cells = page.locator("#validators tbody tr td:last-child").all_inner_texts()
        return [float(cell.replace(",", "")) for cell in cells]

    head.click()
    ascending = read()
    assert (sorted(ascending), "ascending") == (ascending, head.get_attribute("aria-sort"))
    head.click()
    assert (ascending[::-1], "descending") == (read(), head.get_attribute("aria-sort"))
    assert 20 == len(ascending)
    page.close()


@pytest.mark.long
def test_the_page_prints(browser, file):
    """On paper, it is light, and as wide as the page."""
    page = browser.new_page(viewport={"width": 690, "height": 900}, color_scheme="dark")
    page.goto(file.as_uri())
    page.emulate_media(media="print", color_scheme="dark")

    style = "getComputedStyle(document.body).backgroundColor"
    assert "rgb(255, 255, 255)" == page.evaluate(style)
    # Chromium repeats the head of a table on each page unless it has buttons.
    count = "[...document.querySelectorAll('th')].map(e => [e.innerText, e.children[0].tagName])"
    heads = page.evaluate(count)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert [[text, "SPAN"] for text, _ in heads] == page.evaluate(count)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert heads == page.evaluate(count)
    printed = page.pdf(prefer_css_page_size=True)
    assert printed.startswith(b"%PDF")
    assert {"BUTTON"} == {tag for _, tag in page.evaluate(count)}
    page.close()


@pytest.mark.long
def test_ticks_of_interactive_charts_do_not_overlap_on_a_phone(browser, made, tmp_path):
    """Issue 19: the dates of a week, and the amounts of the small panel of penalties."""
    income = made.report.frames["income"]
    days = [income.with_columns(pl.col("date") + timedelta(days=2 * step)) for step in range(4)]
    frames = made.report.frames | {"income": pl.concat(days)}
    path = Report(frames, {}, interactive=True).save(tmp_path / "report.html")
    page = browser.new_page(viewport={"width": 360, "height": 800}, bypass_csp=True)
    page.goto(path.as_uri())
    page.wait_for_function("document.querySelectorAll('#chart-income .xtick text').length")

    boxes = page.evaluate(
        "['xtick', 'ytick', 'y2tick'].map(name => [...document.querySelectorAll("
        "`#chart-income .${name} text`)].map(e => e.getBoundingClientRect().toJSON()))"
    )

    assert all(len(ticks) > 1 for ticks in boxes)
    ticks = [*chain.from_iterable(boxes)]
    overlaps = [
        (one, other)
        for number, one in enumerate(ticks)
        for other in ticks[:number]
        if min(one["right"], other["right"]) > max(one["left"], other["left"])
        and min(one["bottom"], other["bottom"]) > max(one["top"], other["top"])
    ]
    assert not overlaps
    page.close()


@pytest.mark.long
def test_interactive_charts_fit_their_column_and_paper(browser, made, tmp_path):
    """A chart is drawn before the page is complete; on paper, all are as wide as the sheet."""
    frames = {name: made.report.frames[name] for name in made.report.frames}
    path = Report(frames, {}, interactive=True).save(tmp_path / "report.html")
    # The page forbids the evaluation of texts, which waiting needs.
    page = browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)
    page.goto(path.as_uri())
    drawn = "[...document.querySelectorAll('.js-plotly-plot')].map(e => [e._fullLayout?.width,"
    fits = f"{drawn} e.clientWidth]).every(([width, room]) => Math.abs(width - room) < 2)"

    page.wait_for_function(fits)

    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function(f"{drawn} 0]).every(([width]) => width === 640)")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.wait_for_function(fits)
    page.close()
