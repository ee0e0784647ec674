"""A folder of reports: whole periods, one file each, resumable; and the notebook of a report."""

import ast
import json
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.calendar import MAINNET
from beaconframes.client import Explorer, set_explorer
from beaconframes.endpoint import ChainHead, Head
from beaconframes.errors import UsageError
from beaconframes.reports.archive import find_final_range, list_periods, save_reports

FIRST = datetime(2026, 1, 30, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("every", "last", "periods"),
    [
        ("1d", datetime(2026, 2, 2, 3, tzinfo=UTC), [("01-31", "01-31"), ("02-01", "02-01")]),
        ("2d", datetime(2026, 2, 3, tzinfo=UTC), [("01-31", "02-01")]),
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
    later = find_final_range(explorer, "2026-10-01T00:05", None)
    assert date(2026, 10, 2) == list_periods("1d", *later)[0][0]


def test_a_long_range_has_all_of_its_periods():
    """Days after the thousandth had no page, without a word."""
    assert 1500 == len(list_periods("1d", FIRST, FIRST + timedelta(days=1501)))


@pytest.mark.parametrize("every", ["1y", "0d", "day", 1, None])
def test_other_periods_are_an_error(every):
    with pytest.raises(UsageError, match="is not a period"):
        list_periods(every, FIRST, FIRST)


@pytest.mark.more
def test_an_interrupted_run_is_resumed(made, no_charts, tmp_path):
    """Files that exist are not made again; an interrupted one leaves no file."""
    days = [(date(2026, 1, day), date(2026, 1, day)) for day in (1, 2, 3)]
    calls = []

    def make(first, last):
        calls.append(first.day)
        if calls == [1, 2]:
            raise KeyboardInterrupt
        return made.report

    with pytest.raises(KeyboardInterrupt):
        save_reports(make, tmp_path / "reports", days)
    paths = save_reports(make, tmp_path / "reports", days)

    assert [1, 2, 2, 3] == calls
    assert [f"report-2026-01-0{day}.html" for day in (1, 2, 3)] == [path.name for path in paths]
    assert paths == sorted((tmp_path / "reports").iterdir())


@pytest.mark.more
def test_the_notebook_makes_the_same_frames(made, running, tmp_path):
    """Its cells, run in order, load and compute what the report has."""
    path = made.report.to_notebook(tmp_path / "report.ipynb")
    document = json.loads(path.read_text(encoding="utf-8"))
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

    frames = made.report.frames
    income, ledger = shown[0], shown[1]
    assert frames["income"]["net_income_wei"].to_list() == income["net_income_wei"].to_list()
    assert ledger.select(pl.sum("net_income_wei")).row(0) == (
        frames["days"].select(pl.sum("net_income_wei")).row(0)
    )
    problems = next(frame for frame in shown if "avoidable" in frame.columns)
    assert frames["problems"].equals(problems)
    assert bf.analysis is space["bf"].analysis
