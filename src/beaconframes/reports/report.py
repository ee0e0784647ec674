"""`bf.report`: how validators did, as a page, as frames, and as a notebook."""

from __future__ import annotations

import html
import json
import os
import warnings
from copy import copy
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from polars import selectors

from beaconframes.client.connection import get_explorer
from beaconframes.errors import (
    DatasetError,
    DetailReduced,
    QuotaSpent,
    UsageError,
    find_caller_level,
)
from beaconframes.exports.atomic_files import translate_errors
from beaconframes.pandas_frames import to_pandas
from beaconframes.reports.completeness import list_failures, warn_if_incomplete
from beaconframes.reports.figures import list_cards
from beaconframes.reports.formats import show_quantity
from beaconframes.reports.input_frames import Detail  # noqa: TC001 - for get_type_hints
from beaconframes.reports.inputs import load_inputs
from beaconframes.reports.notebook import build_notebook
from beaconframes.reports.page import list_answer, render_page
from beaconframes.reports.parts import build_frames
from beaconframes.reports.prices import find_year, read_prices
from beaconframes.reports.verdict import list_verdict
from beaconframes.text import visible

if TYPE_CHECKING:
    from beaconframes.client import Explorer
    from beaconframes.reports.input_frames import Inputs
    from beaconframes.time_range import Moment


HEAD = 4096
"""Characters of a file that show whether it is a report."""
_PAGE = '<meta name="beaconframes-report" '
_JSON = '{"verdict": ["'
_NOTEBOOK = '"beaconframes": "report"'
"""What the beginning of a report has. Jupyter moves that of a notebook which a user has saved."""


class Report:
    """A report about validators; `report` makes one.

    In a notebook it shows itself. Every number in it is in one of its frames.
    """

    def __init__(
        self,
        frames: dict[str, pl.DataFrame],
        left_out: dict[str, str],
        *,
        interactive: bool = False,
        notebook: str = "",
        frame: Literal["polars", "pandas"] = "polars",
    ) -> None:
        self._frames = frames
        self.frames: dict[str, Any] = frames
        """The frames by name; ``summary`` has the answer in one row."""
        if frame == "pandas":
            self.frames = {name: to_pandas(rows) for name, rows in frames.items()}
        self.left_out = left_out
        """The parts that could not be made, each with the reason."""
        self.interactive = interactive
        self._notebook = notebook

    def __repr__(self) -> str:
        """Return what the report is about, and whether it is incomplete."""
        row = self._frames["summary"].row(0, named=True)
        since, until = (f"{row[name]:%Y-%m-%d}" for name in ("since", "until"))
        note = ", incomplete" if list_failures(self._frames) else ""
        return f"Report({show_quantity(row['validators'], 'validator')}, {since} to {until}{note})"

    def __str__(self) -> str:
        """Return the result of `summarize`."""
        return "\n".join(self.summarize())

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, for a notebook."""
        page = html.escape(self.to_html(), quote=True)
        return (
            '<iframe sandbox="allow-scripts allow-downloads" style="width:100%;height:85vh;'
            'border:1px solid #8888;border-radius:6px" '
            f'title="Validator report" srcdoc="{page}"></iframe>'
        )

    def to_html(self) -> str:
        """Return the report as one page that needs no network."""
        return render_page(self._frames, self.left_out, interactive=self.interactive)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the report to a file; return its path.

        One HTML file with everything in it: it can be mailed, printed and read without a network.
        It replaces an earlier report, and another file only with *overwrite*. A file name with
        another ending is a `UsageError`.
        """
        if (ending := Path(path).suffix.lower()) not in {"", ".html", ".htm"}:
            raise UsageError(
                f"the report is an HTML page, and {os.fspath(path)!r} ends in {ending}",
                hint="Name it report.html, and print it in a browser for a PDF. "
                "save_json and to_notebook write the other forms.",
            )
        return _replace_report(path, self.to_html(), _PAGE, overwrite=overwrite)

    def save_json(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the result of `to_json` to a file, as `save` does; return its path."""
        return _replace_report(path, self.to_json(), _JSON, overwrite=overwrite)

    def summarize(self) -> list[str]:
        """Return the verdict, and the answer below it, as lines of text for a terminal.

        Before them, what daily statistics do not have, unless *detail* was ``"days"``.
        """
        facts = self._frames["facts"].filter(pl.col("fact") == "note")
        return [*facts["value"], *list_verdict(self._frames), *list_answer(self._frames)]

    def to_notebook(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write a notebook with the calls that make each part, as `save` does; return its path.

        It is a starting point for your own analysis.
        """
        return _replace_report(path, self._notebook, _NOTEBOOK, overwrite=overwrite)

    def to_json(self) -> str:
        """Return verdict, cards and frames as JSON.

        Rows have exact amounts; times are in UTC, ISO 8601.
        """
        content = {
            "verdict": list_verdict(self._frames),
            "cards": [asdict(card) for card in list_cards(self._frames)],
            "frames": {name: _list_rows(frame) for name, frame in self._frames.items()},
            "left_out": self.left_out,
        }
        return json.dumps(content, allow_nan=False, default=_to_json)


def report(
    validators: Any = None,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    groups: Any = None,
    prices: Any = None,
    price: str = "price",
    tz: str = "UTC",
    year: int | str | None = None,
    detail: Detail = "auto",
    interactive: bool = False,
    explorer: Explorer | None = None,
) -> Report:
    """Report how validators did: income, rates, effectiveness, problems, and what comes next.

    ::

        report = bf.report([1, 2, 3], since="30d")
        report.save("report.html")
        report.frames["problems"]

    It loads what it needs from the connected explorer, node or local dataset, and computes with
    `beaconframes.analysis`. A part whose data the source does not have is left out, and the report
    states the reason.

    Parameters
    ----------
    validators
        Indices or public keys, as for `load_validators`. Names and groups of `bf.validators` are
        shown. Default: those of *groups*.
    since, until
        First and last epoch, as for `load_income_history`. Default: the last 30 days. Only final
        epochs count.
    groups
        Groups to compare, such as operators or machines: ``{"A": range(10), "B": [10, 12]}``, or a
        frame with ``validator_index`` and ``group``.
    prices
        Prices of 1 ETH: a frame with the columns ``time`` and *price*, or a CSV file. The report
        then has the value at receipt, by day and by year.
    price
        The price column, named like the currency, such as ``"eur"``.
    tz
        Time zone of the days, such as ``"Europe/Berlin"``, also of dates in *since* and *until*.
        Daily statistics have days of the chain.
    year
        A calendar year in this time zone, such as ``"2026"``, instead of *since* and *until*.
    detail
        ``"epochs"`` loads every epoch: income by component, late votes, times offline, sync duties,
        and a check of the balances. ``"days"`` loads daily statistics, one request per validator.
        Default: by price. A service with a quota is requested for epochs if they cost at most 40
        requests, or 1 % of those left of the month (at most 1,000), or no more than daily
        statistics. Other sources: epochs, up to six million rows of a validator and an epoch.
    interactive
        Whether charts can be zoomed. They are then in plotly, and the file is 5 MB larger.
    explorer
        The explorer to load from. Default: that of ``bf.connect``, ``bf.local`` or ``bf.node``.

    Returns
    -------
    Report
        It shows itself in a notebook. ``frames`` has every number; ``save`` writes one HTML file.

    Raises
    ------
    RequestLimitExceeded
        The report needs more requests than the quota has left. It is raised before they are sent,
        with arguments that need fewer.
    QuotaSpent
        The quota ended nevertheless. ``report`` of the error is the incomplete report.
    """
    source = get_explorer(explorer)
    if year is not None:
        chain = source.chain
        since, until = find_year(year, tz, since, until, genesis=chain.genesis, now=source.now())
    # One head: each load would request it again after 12 seconds.
    with source.pin_head():
        inputs = load_inputs(
            validators,
            since=since,
            until=until,
            groups=groups,
            detail=detail,
            explorer=source,
            tz=tz,
            prices=read_prices(prices, price),
            price=price,
        )
        made = make_report(inputs, interactive=interactive)
    if inputs.note:
        warnings.warn(DetailReduced(inputs.note), stacklevel=find_caller_level())
    if inputs.spent is not None:
        raise _explain_spent_quota(inputs.spent, made)
    warn_if_incomplete(made._frames)  # noqa: SLF001 - frames may be those of pandas
    return made


def _explain_spent_quota(error: QuotaSpent, made: Report) -> QuotaSpent:
    """Return the error of a quota that ended before all was loaded, with the incomplete report."""
    explained = copy(error)
    explained.message += "; the report is incomplete"
    explained.hint = f"The attribute report of this error has it, with marks. {error.hint or ''}"
    explained.report = made
    return explained


def make_report(inputs: Inputs, *, interactive: bool = False) -> Report:
    """Compute a report from its inputs."""
    frames, left_out = build_frames(inputs)
    notebook = build_notebook(inputs, frames)
    frame = inputs.explorer.settings.frame
    return Report(frames, left_out, interactive=interactive, notebook=notebook, frame=frame)


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a file under another name first: an interrupted call leaves no incomplete file."""
    from beaconframes.wall.png_file import write_atomically

    target = Path(path)
    with write_atomically(target) as part:
        part.write_text(text, encoding="utf-8")
    return target


def _replace_report(path: str | os.PathLike[str], text: str, mark: str, *, overwrite: bool) -> Path:
    """Write a file; one whose beginning does not have *mark* is replaced only with *overwrite*."""
    target = Path(path)
    if not overwrite and target.exists():
        with translate_errors(target), target.open(encoding="utf-8", errors="replace") as file:
            head = file.read(HEAD)
        if mark not in head:
            raise DatasetError(
                f"{visible(os.fspath(path))} already exists, and is no report",
                hint="Give overwrite=True to replace it",
            )
    return write_text(path, text)


def _list_rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Return rows for JSON, which has no infinite numbers."""
    floats = selectors.float()
    return frame.with_columns(pl.when(floats.is_finite()).then(floats)).rows(named=True)


def _to_json(value: Any) -> str:
    """Return a time as ISO 8601, and wei as text: its digits do not fit into a number."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
