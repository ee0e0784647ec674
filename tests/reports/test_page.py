"""The page of a report: one file, without requests, in which text of the chain cannot run."""

import base64
import csv
import gzip
import io
import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from html.parser import HTMLParser

import polars as pl
import pytest

from beaconframes.errors import DatasetError, UsageError
from beaconframes.reports.completeness import build_marks
from beaconframes.reports.formats import (
    show_decimal,
    show_eth,
    show_eth_signed,
    show_eth_wei,
    show_percent,
    show_points,
    show_quantity,
    show_signed,
)
from beaconframes.reports.page import render_page
from beaconframes.reports.report import Report, make_report

from ..support.untrusted_texts import GRAFFITI, NAMES

ADDRESS = "0xcda3124ef516ecab24b11127c338bb63920bd5bb"


class Elements(HTMLParser):
    """Collects the elements of a page with their attributes, without texts."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.titles = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        # A title has the whole text of a name that is shortened.
        self.found.append((tag, tuple(pair for pair in attrs if pair[0] != "title")))
        self.titles += [value for name, value in attrs if name == "title"]

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def page(made):
    return made.report.to_html()


@pytest.mark.more
def test_the_page_is_one_file_without_requests(page):
    """No element loads anything, and a policy forbids it."""
    elements = Elements(page)
    names = {name for _, attributes in elements.found for name, _ in attributes}
    assert not {"src", "srcset", "action", "onclick", "onload"} & names
    links = [
        value for _, attributes in elements.found for name, value in attributes if "href" in name
    ]
    known = ("#", "data:image/png", "data:application/gzip;base64,")
    assert all(link.startswith(known) for link in links)
    assert "http://" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", page).replace(
        "http://127.0.0.1", ""
    )
    metas = [dict(attributes) for tag, attributes in elements.found if tag == "meta"]
    (policy,) = (m["content"] for m in metas if m.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy
    assert len(page) < 300_000


def test_the_numbers_of_the_answer_are_in_the_page(made, page):
    """The cards show the summary: amounts in ETH, rounded exactly."""
    text = Elements(page).text
    answer = made.report.frames["summary"].row(0, named=True)
    for shown in (
        show_eth_wei(answer["net_income_wei"]),
        show_eth(answer["consensus_income_gwei"]),
        show_eth(answer["lost_gwei"]),
        f"{100 * answer['apr_on_effective']:.2f} %",
        f"{100 * answer['network_effectiveness']:.2f} %",
    ):
        assert shown in text
    assert "Simulated data" in text
    assert "Balances reconcile" in text


def test_cells_of_problems_have_their_heading(page):
    """A phone shows this table as lists of headings and values."""
    section = page.partition('<section id="problems"')[2].partition("</section>")[0]
    table = section.partition("<table>")[2].partition("</table>")[0]
    headings = re.findall(r"<button[^>]*>([^<]*)</button>", table)
    rows = [re.findall('<td[^>]* data-label="([^"]*)"', row) for row in table.split("<tr>")[2:]]

    assert [headings] * len(rows) == rows
    assert rows


def test_every_chart_has_an_alternative_text(page):
    figures = [dict(a) for tag, a in Elements(page).found if tag == "figure"]
    assert len(figures) == 9
    assert all(figure["role"] == "img" and len(figure["aria-label"]) > 20 for figure in figures)
    identifiers = re.findall(r' id="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))


def test_amounts_are_rounded_exactly():
    """Half a step is rounded up, tiny amounts are not 0, and no float loses a digit."""
    assert "1.00001" == show_eth(1_000_005_000)
    assert "\u22120.50000" == show_eth(-500_000_000)
    assert ["<0.00001", ">\u22120.00001"] == [show_eth(4_999), show_eth(-4_999)]
    assert "0.00000" == show_eth(0)
    assert "unknown" == show_eth(None)
    assert "90,071,992,547.40993" == show_eth_wei(Decimal(90_071_992_547_409_930_000_000_000_001))


def test_a_difference_of_zero_has_no_sign():
    """A rounded difference has the sign of what is shown, and zero has none."""
    assert ["\u221229.89 %", "0.00 %"] == [show_percent(share) for share in (-0.29891, -1e-9)]
    assert ["\u221230.0", "0.0"] == [show_decimal(number) for number in (-30, -0.01)]
    assert ["0.00 points", "+0.02 points", "\u22121.30 points"] == [
        show_points(share) for share in (-0.00001, 0.0002, -0.013)
    ]
    assert ["0.0", "+5.6", "\u22120.1"] == [show_signed(value) for value in (-0.01, 5.6, -0.1)]
    assert ["+0.00002", "\u22120.00018", "0.00000", "<0.00001", "unknown"] == [
        show_eth_signed(gwei) for gwei in (20_000, -180_000, 0, 2_000, None)
    ]


def test_one_is_singular(made, no_charts):
    """The page and the terminal say "1 day", "1 problem" and "1 gap"."""
    assert ["0 days", "1 day", "2,000 days"] == [show_quantity(n, "day") for n in (0, 1, 2000)]
    frames = dict(made.report.frames)
    frames["summary"] = frames["summary"].with_columns(
        days_without_price=1, validators=1, active=1, cost_unknown=1
    )
    gap = {"input": ["validators"], "reason": ["unknown to the service"]}
    frames["missing"] = pl.DataFrame(gap)
    report = Report(frames, {})

    text, lines = Elements(report.to_html()).text, report.summarize()

    assert not re.findall(r"\b1 (?:validators|days|problems|gaps|rows)\b", text)
    assert "1 day without a price" in text
    assert "The cost of 1 problem is unknown." in text
    assert any("1 of 1 validator active, " in line for line in lines)
    assert any(" ETH, the cost of 1 problem is unknown; " in line for line in lines)
    assert any(line.endswith(", 1 day without a price") for line in lines)
    assert "Report(1 validator," in repr(report)


def test_an_unknown_validator_is_stated_first(made, no_charts):
    """A report on fewer validators than requested says which."""
    frames = dict(made.report.frames)
    assert "requested validator" not in Report(frames, {}).to_html()
    gap = {
        "input": ["validators"] * 2,
        "reason": ["unknown to the service"] * 2,
        "validator_index": [5000, None],
        "pubkey": [None, f"0x{'ab' * 48}"],
    }
    frames["missing"] = pl.DataFrame(gap)
    report = Report(frames, {})

    header = Elements(report.to_html().partition("</header>")[0]).text

    named = "2 requested validators are unknown to the source: 5000, 0xabababababab"
    assert f"{named}." in header
    assert f"  {named}" in report.summarize()
    frames["missing"] = frames["missing"][[0] * 4].with_columns(validator_index=pl.Series(range(4)))
    lines = Report(frames, {}).summarize()
    assert "  4 requested validators are unknown to the source: 0, 1, 2, ..." in lines


def test_a_validator_without_a_duty_has_no_rate(made, no_charts):
    """A duty that a validator did not have is blank; "unknown" would be a gap in the data."""
    frames = dict(made.report.frames)
    names = ["net_income_wei", "apr_on_effective", "effectiveness"]
    row = pl.int_range(pl.len())
    frames["validators"] = frames["validators"].with_columns(
        pl.when(row > 0).then(pl.col(*names, "votes_missed")),
        sync_rate=pl.when(row > 0).then(1.0),
    )
    assert "unknown" not in _get_validators(Report(frames, {}))

    # It voted, and priority fees are missing: its income is unknown.
    frames["validators"] = frames["validators"].with_columns(
        net_income_wei=pl.when(row > 1).then("net_income_wei")
    )
    assert 1 == _get_validators(Report(frames, {})).count("unknown")


def _get_validators(report):
    text = report.to_html()
    return text[text.index('<section id="validators">') : text.index('<section id="value">')]


def test_validators_that_lost_most_are_listed_first(made, no_charts):
    """Of 150 validators the page has 20; those of unknown loss are below all others."""
    row = made.report.frames["validators"].head(1)
    losses = [None if number % 5 == 0 else number for number in range(150)]
    table = pl.concat(row.with_columns(validator_index=pl.lit(n)) for n in range(150))
    table = table.with_columns(pl.Series("lost_gwei", losses, pl.Int64))

    section = _get_validators(Report(made.report.frames | {"validators": table}, {}))

    listed = re.findall(r"<tr><td[^>]*>(\d+)</td>", section)
    known = sorted((n for n in range(150) if n % 5), reverse=True)
    assert list(map(str, known[:20])) == listed
    assert "20 of 150 rows." in section
    few = table.head(22)
    section = _get_validators(Report(made.report.frames | {"validators": few}, {}))
    listed = re.findall(r"<tr><td[^>]*>(\d+)</td>", section)
    known = [n for n in range(21, -1, -1) if n % 5]
    assert [*known, 0, 5, 10] == list(map(int, listed))


def test_groups_have_names_and_units(page):
    """Measures are named in words, and their values have units and no exponent."""
    section = page[page.index('<section id="groups">') : page.index('<section id="upcoming">')]
    text = Elements(section).text
    assert "yearly rate" in text
    assert "lost, per validator of 32 ETH (ETH)" in text
    assert "points" in text
    assert "_gwei" not in text
    assert "e+0" not in text


def test_worse_groups_are_listed_first(made, no_charts):
    """Then those that lost most, on the page and as text; the file has all of many groups."""
    names = [f"group {number:02}" for number in range(12)]
    verdicts = ["better", *["like the others"] * 9, "worse", None]
    lost = [None, 5, 9, 7, *[1] * 7, 99]
    table = pl.concat([made.report.frames["group_verdict"].head(1)] * 12).with_columns(
        group=pl.Series(names),
        verdict=pl.Series(verdicts),
        lost_per_validator_gwei=pl.Series(lost, dtype=pl.Int64),
    )
    report = Report(made.report.frames | {"group_verdict": table}, {})

    page, lines = report.to_html(), report.summarize()

    section = page[page.index('<section id="groups">') : page.index("All measures")]
    listed = re.findall(r'data-label="Group">([^<]*)<', section)
    assert ["group 10", "group 02", "group 03", "group 01"] == listed
    assert "4 of 12 rows." in section
    known = [line for line in lines if line.startswith("  group ")]
    assert listed == [line.split("group ", 1)[1][:8] for line in known]
    assert known[0].endswith(": worse")
    assert "  and 8 other groups" == lines[-1]
    few = Report(made.report.frames | {"group_verdict": table.tail(8)}, {}).summarize()
    known = [line for line in few if line.startswith("  group ")]
    assert "group 10" in known[0]
    assert 8 == len(known)
    assert few[-1] == known[-1]


def test_a_range_with_missing_epochs_says_so(made, no_charts):
    """A week of income in a range of a month is not the income of a month."""
    assert "Income covers" not in made.report.to_html()
    frames = dict(made.report.frames)
    frames["summary"] = frames["summary"].with_columns(
        first_epoch=pl.col("last_epoch") - 6749, days_without_price=2
    )
    report = Report(frames, {})

    assert "Income covers 211 of these 6,750 epochs" in Elements(report.to_html()).text
    lines = "\n".join(report.summarize())
    assert "epochs with income: 211 of 6,750" in lines
    assert " EUR, 2 days without a price" in lines


def numbered(problems):
    """The same problems, each of its own rows."""
    return problems.with_columns(rows=pl.format("slot == {}", pl.int_range(pl.len())))


def test_many_problems_are_summed_by_kind(made, no_charts):
    """A slashing of unknown cost is below the listed rows; the sums by kind begin with it."""
    problems = made.report.frames["problems"]
    votes = problems.filter(pl.col("kind") == "missed votes").head(1)
    assert votes.height == 1
    slashed = votes.with_columns(kind=pl.lit("slashed"), cost_gwei=pl.lit(None, pl.Int64))
    frames = made.report.frames | {"problems": numbered(pl.concat([*[votes] * 30, slashed]))}

    page = Report(frames, {}).to_html()

    section = page[page.index("By kind") : page.index("Most costly")]
    cells = re.findall("<td[^>]*>([^<]*)</td>", section)
    assert ["slashed", "1", "1", "unknown", "1", "missed votes", "30", "1"] == cells[:8]
    listed = page.partition("Most costly")[2].partition("</tbody>")[0]
    assert 3 == listed.count(">missed votes</td>")
    assert "3 of 31 rows." in page


def test_unknown_costs_are_not_a_sum_of_zero(made, no_charts):
    """Daily statistics have no costs: the sum of usual rows is unknown, the loss a lower bound."""
    frames = dict(made.report.frames)
    usual = frames["problems"].filter(~pl.col("avoidable"))
    assert usual.height
    frames["problems"] = usual.with_columns(cost_gwei=pl.lit(None, pl.Int64))
    text = Elements(Report(frames, {}).to_html()).text
    assert "no more than other validators have. Their cost is unknown." in text
    assert "at least" not in text
    frames["problems"] = pl.concat([usual, frames["problems"]])
    assert "Cost: at least 0." in Elements(Report(frames, {}).to_html()).text

    frames["summary"] = frames["summary"].with_columns(cost_unknown=2)
    frames |= build_marks(made.inputs, frames)
    report = Report(frames, {})
    assert "Lost" in Elements(report.to_html()).text.partition("at least 0.")[0]
    lines = {line[2:19].strip(): line for line in report.summarize()}
    assert "at least" in lines["lost"]
    assert "at least" in lines["avoidable"]


def test_much_to_come_is_counted_by_kind_and_day(made, no_charts):
    """Issue 19, 4: 200 seats of one committee are one row, and the first few are listed."""
    rows = made.report.frames["upcoming"].head(1)
    assert rows.height == 1
    many = pl.concat(rows.with_columns(validator_index=pl.lit(index)) for index in range(200))
    many = many.with_columns(kind=pl.lit("sync committee"))

    page = Report(made.report.frames | {"upcoming": many}, {}).to_html()
    few = Report(made.report.frames | {"upcoming": many.head(3)}, {}).to_html()

    section = page[page.index('<section id="upcoming">') : page.index('<section id="validators">')]
    totals, first = section.split("The first few")
    assert ["sync committee", "200", "200"] == re.findall("<td[^>]*>([^<]*)</td>", totals)[:3]
    assert 5 == first.count(">sync committee</td>")
    assert "5 of 200 rows." in first
    section = few[few.index('<section id="upcoming">') : few.index('<section id="validators">')]
    assert 3 == section.count(">sync committee</td>")


def test_long_names_of_groups_are_short_and_whole_in_the_title(made, no_charts):
    """A name wider than a phone or a sheet of paper does not push other columns off it."""
    name = "Operator " + "x" * 90
    frames = dict(made.report.frames)
    for table in ("groups", "validators"):
        frames[table] = frames[table].with_columns(group=pl.lit(name))

    found = Elements(Report(frames, {}).to_html())

    assert name not in found.text
    assert name[:20] in found.text
    assert name in found.titles


def test_advice_has_a_table_of_its_own(made, no_charts):
    """It has no cost, so it would be below the costs that are listed. A kind is one row."""
    problems = made.report.frames["problems"]
    votes = problems.filter(pl.col("kind") == "missed votes").head(1)
    advice = votes.with_columns(
        kind=pl.lit("consolidation possible"),
        cost_gwei=pl.lit(None, pl.Int64),
        avoidable=pl.lit(None, pl.Boolean),
        validators=pl.lit(7, pl.Int64),
        detail=pl.lit(f"7 validators fit into 1, withdrawal address {ADDRESS}"),
    )
    few = advice.with_columns(
        kind=pl.lit("BLS credentials"),
        validators=pl.lit(2, pl.Int64),
        detail=pl.lit("no withdrawals"),
    )
    most = advice.with_columns(
        validators=pl.lit(9, pl.Int64), detail=pl.lit("9 validators fit into 2")
    )
    problems = pl.concat([*[votes] * 30, *[advice] * 12, most, few])
    frames = made.report.frames | {"problems": numbered(problems)}

    page = Report(frames, {}).to_html()

    section = page[page.index("Possible improvements") : page.index('<section id="time">')]
    assert "without an estimate of their value" in section
    rows = re.findall("<td[^>]*>([^<]*)</td>", section.partition("</tbody>")[0])
    assert ["consolidation possible", "93", "13 times, such as: 9 validators fit into 2"] == rows[
        :3
    ]
    assert ["BLS credentials", "2", "no withdrawals"] == rows[3:]
    kinds = page[page.index("By kind") : page.index("Most costly")]
    assert "consolidation possible" not in kinds


def test_addresses_are_short_and_whole_in_the_title(made, no_charts):
    """They have no place in a narrow column; the whole one can be copied."""
    problems = made.report.frames["problems"].filter(pl.col("kind") == "missed votes").head(1)
    problems = problems.with_columns(detail=pl.lit(f"to {ADDRESS}, of 0x{'ab' * 48}"))

    found = Elements(Report(made.report.frames | {"problems": problems}, {}).to_html())

    assert "to 0xcda3…d5bb, of 0xabab…abab" in found.text
    assert ADDRESS not in found.text
    assert f"to {ADDRESS}, of 0x{'ab' * 48}" in found.titles


def test_the_page_has_nothing_for_programmers_alone(made, no_charts):
    """Who reads the page does not have the frames: what is not on it is in its files."""
    page = made.report.to_html()

    assert "report.frames" not in page
    assert "validator_index ==" not in Elements(page).text
    assert not re.search(r"<button[^>]*>Rows</button>", page.partition('id="trust"')[0])


def test_the_file_of_each_table_has_all_rows(made, no_charts):
    """Those of the frame, with all digits; text that a spreadsheet would run has an apostrophe."""
    frames = dict(made.report.frames)
    name = made.report.frames["validators"].with_columns(name=pl.lit('=1+"2"'))
    frames["validators"] = name
    frames["missing"] = pl.DataFrame({"input": ["validators"], "reason": ["unknown, twice"]})
    frames["income_gaps"] = pl.DataFrame({"validator_index": [3], "reason": ["unknown"]})
    frames["summary"] = frames["summary"].with_columns(
        left_out_days=1, left_out_execution_wei=pl.lit(None, pl.Decimal(38, 0))
    )
    frames["reconciliation"] = frames["reconciliation"].with_columns(unexplained=1)

    links = [dict(a) for tag, a in Elements(Report(frames, {}).to_html()).found if tag == "a"]

    files = {each["download"]: each["href"] for each in links if "download" in each}
    assert {
        f"{name}.csv.gz"
        for name in (
            *("problems", "group_verdict", "groups", "summary", "upcoming", "validators"),
            *("years", "value", "inputs", "missing", "income_gaps", "unexplained"),
        )
    } == set(files)
    for name, link in files.items():
        data = gzip.decompress(base64.b64decode(link.partition(",")[2])).decode()
        frame = frames[name.removesuffix(".csv.gz")]
        assert [frame.columns, *map(show_cells, frame.rows())] == [*csv.reader(io.StringIO(data))]


def show_cells(row):
    """Return the cells of a row as a CSV file has them."""
    return [show_cell(cell) for cell in row]


def show_cell(cell):
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, datetime):
        return f"{cell.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    return f"'{cell}" if isinstance(cell, str) and cell.startswith("=") else str(cell)


def test_the_window_of_the_network_is_named(made, page):
    """Issue 19: V2 has windows that end now, so the network is not that of the report's range."""
    since, until = made.report.frames["network"].select("since", "until").row(0)
    window = f" %, {since:%Y-%m-%d} to {until:%Y-%m-%d}"

    assert window in Elements(page).text
    (line,) = (each for each in made.report.summarize() if "; network" in each)
    assert line.rpartition(":")[0].endswith(window)
    assert f"Network, {since:%b} {since.day} to {until:%b} {until.day}, {until.year}" in page


def test_the_time_of_the_report_is_readable(made, page):
    """Issue 19: to the minute, in UTC; programs find the exact time in the attribute."""
    made_at = made.inputs.made_at
    elements = Elements(page)

    assert f"Made at{made_at:%Y-%m-%d %H:%M} UTC" in elements.text
    times = [dict(attributes)["datetime"] for tag, attributes in elements.found if tag == "time"]
    assert [made_at.isoformat(timespec="seconds")] == times


def test_simulated_data_are_stated_once(page):
    """Prominently, beside the range; the facts do not repeat it."""
    assert 1 == Elements(page).text.lower().count("simulated")


@pytest.mark.parametrize(
    ("unexplained", "possible", "text"),
    [
        (2, 1, "are not explained (0.39562 ETH). 1 of them has a possible cause"),
        (2, 2, "are not explained (0.39562 ETH). All of them have a possible cause"),
        (1, 1, "is not explained (0.39562 ETH). It has a possible cause"),
    ],
)
def test_a_possible_cause_of_an_unexplained_balance_is_stated(
    made, no_charts, unexplained, possible, text
):
    frames = dict(made.report.frames)
    frames["reconciliation"] = frames["reconciliation"].with_columns(
        explained=pl.col("changes") - unexplained,
        unexplained=unexplained,
        unexplained_gwei=395619428,
        with_possible_cause=possible,
    )

    assert text in Elements(Report(frames, {}).to_html()).text
    assert 0 == made.report.frames["reconciliation"]["with_possible_cause"][0]


def hostile(frame, column, texts):
    """Repeat the rows of a frame until each text is in one of them."""
    rows = pl.concat([frame] * (len(texts) // frame.height + 1)).head(len(texts))
    return rows.with_columns(pl.Series(column, texts))


def test_text_of_the_chain_cannot_run(made, no_charts):
    """75 texts as names, groups, reasons and facts add no element and no attribute."""
    texts = [*GRAFFITI, *NAMES]
    assert 75 == len(texts)

    def render(values):
        frames = dict(made.report.frames)
        frames["validators"] = hostile(frames["validators"], "name", values)
        frames["groups"] = hostile(frames["groups"], "group", values)
        frames["inputs"] = hostile(frames["inputs"], "reason", values)
        frames["problems"] = numbered(hostile(frames["problems"], "detail", values))
        frames["upcoming"] = hostile(frames["upcoming"], "kind", values)
        frames["facts"] = pl.concat(
            [frames["facts"], pl.DataFrame({"fact": values, "value": values})]
        )
        left_out = dict.fromkeys(("proposals", "sync"), values[0])
        page = render_page(frames, left_out, interactive=False)
        # The files have the texts themselves, compressed.
        return Elements(re.sub(r"(?<=base64,)[\w+/=]+", "", page))

    plain, found = render([f"text {number}" for number in range(75)]), render(texts)

    assert plain.found == found.found
    assert "<script>alert(1)</script>" in found.text
    assert not any("\u202e" in title or "\x1b" in title for title in found.titles)
    assert "\u202e" not in found.text
    assert "\x1b" not in found.text


def test_json_is_exact(made):
    """The rows of all frames, with wei as text and times in UTC."""
    document = json.loads(made.report.to_json())

    frames = made.report.frames
    assert set(frames) == set(document["frames"])
    (summary,) = document["frames"]["summary"]
    assert frames["summary"]["net_income_wei"][0] == Decimal(summary["net_income_wei"])
    assert frames["summary"]["since"][0].isoformat() == summary["since"]


def test_a_report_is_saved_and_shows_itself(made, no_charts, tmp_path):
    """In a notebook, the page is in a sandbox, from which it cannot reach the notebook."""
    path = made.report.save(tmp_path / "report.html")
    page = made.report.to_html()

    assert page == path.read_text(encoding="utf-8")
    shown = Elements(made.report._repr_html_()).found
    assert ["iframe"] == [tag for tag, _ in shown]
    assert "allow-scripts allow-downloads" == dict(shown[0][1])["sandbox"]
    assert page == dict(shown[0][1])["srcdoc"]
    since = made.report.frames["summary"]["since"][0]
    assert repr(made.report).startswith(f"Report(6 validators, {since:%Y-%m-%d} to ")
    lines = str(made.report).partition("validators active")[2].splitlines()[1:]
    names = [line[2:19].strip() for line in lines]
    cards = ["net income", "yearly rate", "effectiveness", "lost", "online now"]
    parts = ["consensus layer", "execution layer", "value at receipt", "avoidable"]
    assert [*cards, *parts, "group A", "group B"] == names


@pytest.mark.more
def test_a_file_that_cannot_be_a_report_is_refused(made, tmp_path):
    """Another ending, or a folder that does not exist."""
    with pytest.raises(UsageError, match=r"report is an HTML page, and '.*v\.pdf' ends in \.pdf"):
        made.report.save(tmp_path / "v.pdf")
    with pytest.raises(UsageError, match=r"folder '.*missing' does not exist. Create it first"):
        made.report.save(tmp_path / "missing" / "v.html")
    assert [] == [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "write",
    ["save", *(pytest.param(n, marks=pytest.mark.more) for n in ("save_json", "to_notebook"))],
)
def test_only_a_report_is_replaced(made, no_charts, tmp_path, write):
    """A file of other contents is replaced on request alone; an earlier report always."""
    path = tmp_path / "report"
    save = getattr(make_report(made.inputs), write)
    save(path)
    first = path.read_text(encoding="utf-8")
    assert path == save(path)
    assert first == path.read_text(encoding="utf-8")

    for other in (b"my notes", b"", b"\xff\xfe"):
        path.write_bytes(other)
        with pytest.raises(DatasetError, match=r"already exists, and is no report.*overwrite=True"):
            save(path)
        assert other == path.read_bytes()
    save(path, overwrite=True)
    assert first == path.read_text(encoding="utf-8")


@pytest.mark.more
def test_an_interactive_report_has_plotly_in_it(made):
    """Its charts are in plotly, which is in the file; small multiples and the rest stay."""
    report = Report(made.report.frames, {}, interactive=True)

    page = report.to_html()

    assert "chart-income" in page
    assert "Plotly.newPlot" in page
    assert len(page) > 3_000_000
