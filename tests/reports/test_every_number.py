"""Every column of every frame of a report equals a polars query on the tables of the dataset."""

import dataclasses
import json
import math
import re
import warnings
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from html.parser import HTMLParser

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.reports.parts import build_frames
from beaconframes.reports.parts.groups import build_validators

from ..support.node_index import open_index
from ..support.report_queries import QUERIES, Source
from .conftest import FIRST, LAST, MINE, PRICES


def compare(frames, source):
    """Compare the frames of a report with the queries: their names, columns, rows and values."""
    expected = {name: query(source) for name, query in QUERIES.items()}
    missing = {name for name, rows in expected.items() if rows is None}
    assert {*QUERIES} - missing == set(frames)
    is_time = pl.col("fact") == "made at"
    (made_at,) = frames["facts"].filter(is_time)["value"]
    seconds = (datetime.now(UTC) - datetime.fromisoformat(made_at)).total_seconds()
    assert 0 <= seconds < 3600
    frames = frames | {"facts": frames["facts"].filter(~is_time)}
    if source.sent is None:
        # A dataset is read without requests over HTTP: their sum is that of the explorer.
        assert source.requests == frames["inputs"]["requests"].sum()
        for tables in (frames, expected):
            tables["inputs"] = tables["inputs"].drop("requests")
    for name in sorted({*QUERIES} - missing):
        check_rows(name, expected[name], frames[name])


def check_rows(name, expected, found):
    """Compare all columns: whole numbers and texts exactly, ratios to nine digits."""
    assert set(expected.columns) == set(found.columns), name
    assert expected.height == found.height, name
    for column in found.columns:
        for row, (wanted, value) in enumerate(zip(expected[column], found[column], strict=True)):
            assert is_equal(wanted, value), f"{name}, {column}, row {row}: {wanted} != {value}"


def is_equal(wanted, value):
    if isinstance(wanted, float) and isinstance(value, float):
        return math.isclose(wanted, value, rel_tol=1e-9, abs_tol=1e-12)
    return wanted == value and (wanted is None) == (value is None)


def load(path, mine, **options):
    """Make a report of a dataset; return it, and its source."""
    with warnings.catch_warnings(), bf.open(path) as explorer:
        warnings.simplefilter("error")
        report = bf.report(mine, explorer=explorer, **options)
        head, clock, requests = explorer.chain_head, explorer.chain, explorer.requests
    epochs = report.frames["summary"].row(0, named=True)
    source = Source(
        Dataset.open(path),
        list(mine),
        epochs["first_epoch"],
        epochs["last_epoch"],
        head.latest("epoch"),
        head.latest("epoch", finalized=True),
        clock,
        groups=options.get("groups") or {},
        address=str(path),
        requests=requests,
    )
    return report, source


def test_every_number_of_the_simulated_chain(made, chain):
    """Two groups, with prices; the requests of each input are those that were sent over HTTP."""
    head, clock = made.inputs.explorer.chain_head, made.inputs.chain
    final = head.latest("epoch", finalized=True)
    source = Source(
        chain, MINE, FIRST, LAST, head.latest("epoch"), final, clock,
        groups={"A": MINE[:3], "B": MINE[3:]}, prices=PRICES,
        address=made.inputs.explorer.url.removeprefix("http://"),
        requests=len(made.sent), sent=made.sent,
    )  # fmt: skip
    compare(made.report.frames, source)


def test_a_validator_without_a_problem_lost_nothing(made):
    """It lost 0, which is not unknown: means of groups count it. Without income, it is unknown."""
    frames = made.report.frames
    problems = frames["problems"].filter(pl.col("validator_index").ne_missing(MINE[0]))
    less = frames | {"problems": problems}

    lost = build_validators(made.inputs, less)["validators"]["lost_gwei"]

    assert [0, *frames["validators"]["lost_gwei"][1:]] == lost.to_list()
    item = dataclasses.replace(made.inputs.items["income"], rows=None)
    without = dataclasses.replace(made.inputs, items=made.inputs.items | {"income": item})
    unknown = build_frames(without)[0]["validators"]["lost_gwei"]
    assert len(MINE) == unknown.null_count()


class Cards(HTMLParser):
    """Collects the words, numbers and comparisons of the cards by their title."""

    def __init__(self, page):
        super().__init__()
        self.found, self.place = {}, None
        self.feed(page.partition('<section id="answer"')[2].partition("</section>")[0])

    def handle_starttag(self, tag, attrs):
        kind = dict(attrs).get("class")
        if tag in ("h2", "summary"):
            self.place = tag
        elif tag == "p":
            self.place = kind or "rule"

    def handle_endtag(self, tag):
        self.place = self.place if tag == "small" else None

    def handle_data(self, data):
        if self.place == "h2":
            self.card = self.found.setdefault(data, {})
        elif self.place is not None:
            self.card[self.place] = self.card.get(self.place, "") + data


def read_cells(page, section):
    """Return the texts of the cells of each row of the first table of a section."""
    body = page.partition(f'<section id="{section}"')[2].partition("<tbody>")[2]
    rows = body.partition("</tbody>")[0].split("<tr>")[1:]
    return [re.findall("<td[^>]*>([^<]*)</td>", row) for row in rows]


def show(amount, unit, places="1e-5"):
    """Show an amount in *unit*, rounded half up."""
    rounded = (Decimal(amount) / unit).quantize(Decimal(places), ROUND_HALF_UP)
    return f"{rounded:,}".replace("-", "\u2212")


def test_the_cards_of_the_page(made, no_charts):
    """Each shows one number of the frames, and one comparison, computed here by hand."""
    frames = made.report.frames
    row = frames["summary"].row(0, named=True)
    compared = frames["comparison"].row(0, named=True)
    difference = compared["difference_wei"]
    share = f"{100 * abs(difference / compared['average_wei']):.2f} %"
    word = "more" if difference > 0 else "less"
    others = "average validators, without payments of builders"
    network = [f"{row[name]:%Y-%m-%d}" for name in ("network_since", "network_until")]
    online = frames["validators"]["status"].to_list().count("active_online")
    expected = {
        "Net income": (
            f"{show(row['net_income_wei'], 10**18)} ETH",
            f"{show(abs(difference), 10**18)} ETH ({share}) {word} than {others}",
        ),
        # No day is whole, so there is no rate to compare with the index.
        "Yearly rate": (
            f"{100 * row['apr_on_effective']:.2f} % on effective balance",
            "yield index unknown",
        ),
        "Effectiveness": (
            f"{100 * row['effectiveness']:.2f} % of vote rewards",
            f"network {100 * row['network_effectiveness']:.2f} %, {' to '.join(network)}",
        ),
        "Lost": (
            f"{show(row['lost_gwei'], 10**9)} ETH",
            f"average validators {show(compared['average_missed_wei'], 10**18)} ETH",
        ),
        "Online now": (str(online), f"{6 - online} offline"),
    }

    page = made.report.to_html()

    found = Cards(page).found
    assert expected == {title: (card["big"], card["note"]) for title, card in found.items()}
    assert "unknown" == found["Yearly rate"]["summary"]
    written = json.loads(made.report.to_json())["cards"]
    assert [card["rule"] for card in found.values()] == [card["rule"] for card in written]
    lines = "\n".join(made.report.summarize())
    for title, (number, comparison) in expected.items():
        word = found[title]["summary"]
        assert f"  {title.lower():17} {number}; {comparison}: {word}\n" in lines


def test_all_numbers_of_the_page(made, no_charts):
    """The table of all numbers shows the row of the frame, each with its method."""
    row = made.report.frames["summary"].row(0, named=True)
    assert 1 == row["days_without_price"]
    assert (None, None, None) == (row["apr_as_index"], row["index_apr"], row["difference_bp"])
    shares = {
        "Yearly rate": "apr_on_effective",
        "Rate on 32 ETH": "apr_on_32_eth",
        "Effectiveness": "effectiveness",
        "Network": "network_effectiveness",
        "Votes included": "included_rate",
    }
    gwei = {
        "Consensus layer": "consensus_income_gwei",
        "Lost": "lost_gwei",
        "Avoidable": "avoidable_gwei",
        "Unavoidable": "unavoidable_gwei",
        "Unknown cause": "unknown_gwei",
    }
    wei = {
        "Net income": "net_income_wei",
        "Execution layer": "execution_income_wei",
        "From builders": "relay_payments_wei",
    }
    expected = {
        **dict.fromkeys(("Index method", "Yield index", "Index difference"), "unknown"),
        **{title: f"{100 * row[name]:.2f} %" for title, name in shares.items()},
        **{title: f"{show(row[name], 10**9)} ETH" for title, name in gwei.items()},
        **{title: f"{show(row[name], 10**18)} ETH" for title, name in wei.items()},
        "Value at receipt": f"{show(row['income_value'], 1, '0.01')} EUR",
    }

    cells = read_cells(made.report.to_html(), "figures")

    assert expected == {title: value for title, value, _ in cells}
    methods = {title: method for title, _, method in cells}
    assert len(methods) == len({*methods.values()})
    assert methods["Value at receipt"].endswith(". 1 day without a price.")


def test_json_has_every_number(made):
    """Whole numbers and floats are numbers, wei and currency are texts with all digits."""
    written = json.loads(made.report.to_json())
    assert {"cards", "frames", "left_out", "verdict"} == set(written)
    assert made.report.summarize()[: len(written["verdict"])] == written["verdict"]
    frames = made.report.frames
    assert set(frames) == set(written["frames"])
    for name, frame in frames.items():
        rows = [{key: convert(cell) for key, cell in row.items()} for row in frame.rows(named=True)]
        assert rows == written["frames"][name]


def convert(cell):
    return str(cell) if isinstance(cell, Decimal) else cell.isoformat() if is_time(cell) else cell


def is_time(cell):
    return isinstance(cell, date | datetime)


@pytest.mark.more
@pytest.mark.parametrize("count", [3, pytest.param(200, marks=pytest.mark.long)])
def test_every_number_of_the_sample(count):
    """Three groups of 200 validators, among them some that had not yet deposited."""
    mine = range(1000 - count, 1000) if count > 100 else range(count)
    groups = {"A": [*mine][:90], "B": [*mine][90:150], "C": [*mine][150:]} if count > 100 else {}
    report, source = load("data/sample", mine, since="2d", groups=groups or None)
    compare(report.frames, source)


@pytest.mark.more
@pytest.mark.parametrize("count", [3, 73])
def test_every_number_of_an_index(tmp_path_factory, count):
    """All validators of an indexed chain: new ones, exits and a slashing among them."""
    folder = open_index(tmp_path_factory, "electra", 11)
    report, source = load(folder, range(count), since=2, until=9)
    source.offset = 1
    compare(report.frames, source)
