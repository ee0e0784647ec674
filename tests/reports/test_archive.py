"""A folder of reports: whole periods, one file each, resumable; and the notebook of a report."""

import ast
import dataclasses
import json
import re
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.calendar import MAINNET
from beaconframes.client import Explorer, set_explorer
from beaconframes.endpoint import ChainHead, Head
from beaconframes.errors import UsageError
from beaconframes.reports import archive
from beaconframes.reports.archive import find_final_range, list_periods, save_every
from beaconframes.reports.formats import show_eth, show_eth_wei
from beaconframes.reports.notebook import build_notebook
from beaconframes.reports.report import Report
from beaconframes.reports.tables import select_problems

FIRST = datetime(2026, 1, 30, 6, tzinfo=UTC)


@pytest.fixture
def save(monkeypatch):
    """Save the report that *make* returns for each period of the first *days* of January 2026."""

    def run(make, folder, every, days):
        start = datetime(2026, 1, 1, tzinfo=UTC)
        monkeypatch.setattr(archive, "report", lambda since, until, **_: make(since, until))
        monkeypatch.setattr(
            archive, "find_final_range", lambda *_: (start, start + timedelta(days=days))
        )
        return save_every(every, folder, {}, SimpleNamespace(chain=MAINNET), print)

    return run


@pytest.mark.parametrize(
    ("every", "last", "periods"),
    [
        ("1d", datetime(2026, 2, 2, 3, tzinfo=UTC), [("01-31", "01-31"), ("02-01", "02-01")]),
        ("1w", datetime(2026, 2, 17, tzinfo=UTC), [("02-02", "02-08"), ("02-09", "02-15")]),
        ("1mo", datetime(2026, 4, 1, tzinfo=UTC), [("02-01", "02-28"), ("03-01", "03-31")]),
        ("1mo", datetime(2026, 2, 28, 23, tzinfo=UTC), []),
    ],
)
def test_periods_are_whole(every, last, periods):
    """Days, weeks from Monday, and months, that begin and end in the range."""
    found = list_periods(every, FIRST, last)

    assert periods == [tuple(f"{day:%m-%d}" for day in period) for period in found]


@pytest.mark.parametrize("since", ["2026-10", "2026-10-01", date(2026, 10, 1)])
def test_a_range_that_starts_with_a_day_has_its_report(since):
    """The first epoch of a day starts after midnight; the day and its month are whole."""
    epoch = MAINNET.at("epoch", datetime(2026, 11, 3, tzinfo=UTC))
    head = Head(epoch=epoch, finalized_epoch=epoch, slot=32 * epoch)
    chain_head = ChainHead(MAINNET, lambda: head, lambda: MAINNET.time_of("epoch", epoch), head)
    explorer = SimpleNamespace(chain=MAINNET, chain_head=chain_head)

    periods = list_periods("1mo", *find_final_range(explorer, since, None))

    assert [(date(2026, 10, 1), date(2026, 10, 31))] == periods
    local = find_final_range(explorer, since, None, "Europe/Berlin")
    assert datetime(2026, 9, 30, 22, tzinfo=UTC) == local[0]
    assert periods == list_periods("1mo", *local, "Europe/Berlin")
    later = find_final_range(explorer, "2026-10-01T00:05", None)
    assert date(2026, 10, 2) == list_periods("1d", *later)[0][0]


def test_periods_are_days_of_the_time_zone():
    """A week in Berlin begins on Monday, at 22:00 UTC of Sunday in summer."""
    monday = datetime(2026, 6, 7, 22, tzinfo=UTC)
    week = [(date(2026, 6, 8), date(2026, 6, 14))]
    end = monday + timedelta(days=7)

    assert week == list_periods("1w", monday, end, "Europe/Berlin")
    assert [] == list_periods("1w", monday, end - timedelta(seconds=1), "Europe/Berlin")
    assert [] == list_periods("1w", monday + timedelta(seconds=1), end, "Europe/Berlin")
    assert [] == list_periods("1w", monday, end)


def test_a_long_range_has_all_of_its_periods():
    """Days after the thousandth had no page, without a word."""
    assert 1500 == len(list_periods("1d", FIRST, FIRST + timedelta(days=1501)))


@pytest.mark.parametrize("every", ["1y", "2d", "2w", "3mo", "0d", "day", 1, None])
def test_other_periods_are_an_error(every):
    with pytest.raises(UsageError, match=r'is not valid\. Choose one of "1d", "1w", "1mo"'):
        list_periods(every, FIRST, FIRST)


@pytest.mark.more
def test_an_interrupted_run_is_resumed(made, no_charts, save, tmp_path):
    """Files that exist are not made again; an interrupted one leaves no file."""
    folder, calls = tmp_path / "reports", []

    def make(first, last):
        calls.append(first.day)
        if calls == [1, 2]:
            raise KeyboardInterrupt
        return made.report

    with pytest.raises(KeyboardInterrupt):
        save(make, folder, "1d", 3)
    paths = save(make, folder, "1d", 3)

    assert [1, 2, 2, 3] == calls
    assert [f"report-2026-01-0{day}.html" for day in (1, 2, 3)] == [path.name for path in paths]
    texts = [folder / "arguments.json", folder / "index.html"]
    assert [*texts, *paths] == sorted(folder.iterdir())


@pytest.mark.more
def test_the_folder_has_a_page_that_links_the_reports(made, no_charts, save, tmp_path):
    """Newest first: period, income and what to look at; earlier reports of the folder as well."""
    frames = made.report.frames
    flawless = frames | {
        "problems": frames["problems"].clear(),
        "missing": frames["missing"].clear(),
        "reconciliation": frames["reconciliation"].with_columns(unexplained=0),
    }
    gap = pl.DataFrame({"input": ["income"], "reason": ["not in the dataset"]})
    incomplete = frames | {"missing": pl.concat([frames["missing"], gap], how="diagonal")}
    made_reports = iter([Report(flawless, {}), Report(incomplete, {})])
    (tmp_path / "report-2025-12-31.html").write_text("<title>of another version</title>")

    save(lambda *_: next(made_reports), tmp_path, "1w", 18)
    first = (tmp_path / "index.html").read_bytes()
    save(lambda *_: 1 / 0, tmp_path, "1w", 18)

    page = first.decode()
    assert first == (tmp_path / "index.html").read_bytes()
    rows = re.findall("<tr>(.*?)</tr>", page.partition("<tbody>")[2], re.DOTALL)
    assert [
        ("report-2026-01-12_2026-01-18.html", "2026-01-12 to 2026-01-18"),
        ("report-2026-01-05_2026-01-11.html", "2026-01-05 to 2026-01-11"),
        ("report-2025-12-31.html", "2025-12-31"),
    ] == [re.search('<a href="([^"]*)">([^<]*)</a>', row).groups() for row in rows]
    cells = [re.findall("<td[^>]*>([^<]*)</td>", row) for row in rows]
    answer = frames["summary"].row(0, named=True)
    income, lost = show_eth_wei(answer["net_income_wei"]), show_eth(answer["lost_gwei"])
    problems = select_problems(frames["problems"]).height
    assert [income] * 2 == [row[0] for row in cells[:2]]
    assert [lost] * 2 == [row[3] for row in cells[:2]]
    assert f"{problems} problems, incomplete" == cells[0][4]
    assert "no problem" == cells[1][4]
    assert {""} == set(cells[2])
    assert "Simulated data" in page
    assert "://" not in page


def test_another_index_page_is_not_replaced(save, tmp_path):
    """The error comes before the first report, which takes its requests."""
    (tmp_path / "index.html").write_text("<title>My site</title>")

    with pytest.raises(UsageError, match=r"index\.html is not a list of reports"):
        save(lambda *_: 1 / 0, tmp_path, "1d", 1)

    assert "<title>My site</title>" == (tmp_path / "index.html").read_text()


def run_notebook(report, running, path):
    """Run the cells of a report's notebook in order; return the frames that they show."""
    document = json.loads(report.to_notebook(path).read_text(encoding="utf-8"))
    assert (4, 5) == (document["nbformat"], document["nbformat_minor"])
    space, shown = {}, []
    with Explorer(
        running.url, chain=running.service.chain, head=running.service.head, frame="polars"
    ) as explorer:
        set_explorer(explorer)
        for cell in document["cells"]:
            if cell["cell_type"] == "code" and "plot" not in "".join(cell["source"]):
                code = ast.parse("".join(cell["source"]))
                last = code.body.pop() if isinstance(code.body[-1], ast.Expr) else None
                exec(compile(code, "cell", "exec"), space)
                if last is not None:
                    shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), space))
    assert bf.analysis is space["bf"].analysis
    return shown


def test_the_notebook_has_a_section_for_each_part(made, tmp_path):
    """This report has every part."""
    document = json.loads(made.report.to_notebook(tmp_path / "report.ipynb").read_text())

    code = "".join(text for cell in document["cells"] for text in cell["source"])
    analyses = ("ledger", "apr", "attestation_rates", "problems", "sync_income")
    for name in (*analyses, "compare_groups", "reconcile"):
        assert f"bf.analysis.{name}(" in code
    assert "bf.plot.proposals(" in code
    first, last = made.inputs.get("attestations")["epoch"].min(), made.inputs.last
    assert first < last
    assert f"bf.load_attestations(validators, since={first}, until={last})" in code


@pytest.mark.parametrize("indices", [[4], [2, 3], [5, 6, 7, 8], [1, 2, 4]])
def test_the_notebook_has_the_validators_of_the_report(made, indices):
    """Consecutive ones are a range."""
    inputs = dataclasses.replace(made.inputs, indices=indices)
    document = json.loads(build_notebook(inputs, made.report.frames))

    cells = ("".join(cell["source"]) for cell in document["cells"])
    (written,) = re.findall("^validators = (.*)$", "\n".join(cells), re.MULTILINE)
    assert indices == list(eval(written))
    assert written.startswith("range") == (indices == [5, 6, 7, 8])


@pytest.mark.more
def test_the_notebook_makes_the_same_frames(made, running, tmp_path):
    """Its cells, run in order, load and compute what the report has."""
    shown = run_notebook(made.report, running, tmp_path / "report.ipynb")

    frames = made.report.frames
    income, ledger = shown[0], shown[1]
    assert frames["income"]["net_income_wei"].to_list() == income["net_income_wei"].to_list()
    assert ledger.select(pl.sum("net_income_wei")).row(0) == (
        frames["days"].select(pl.sum("net_income_wei")).row(0)
    )
    problems = next(frame for frame in shown if "avoidable" in frame.columns)
    assert frames["problems"].equals(problems)


def test_the_notebook_of_daily_statistics_makes_the_same_frames(running, tmp_path):
    """Also its yearly rates, beside the yield index that it loads."""
    with Explorer(running.url, chain=running.service.chain, head=running.service.head) as explorer:
        report = bf.report([7, 11, 22], since=225, until=449, detail="days", explorer=explorer)

    daily, rates, *_, problems = run_notebook(report, running, tmp_path / "report.ipynb")

    assert report.frames["income"]["net_income_wei"].sum() == daily["net_income_wei"].sum()
    assert report.frames["rates"].drop("date").equals(rates)
    assert report.frames["problems"].equals(problems)
    assert not problems.filter(table="proposals").is_empty()
