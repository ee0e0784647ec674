"""A folder of reports, one file for each period, that can be resumed."""

from __future__ import annotations

import hashlib
import html
import json
import re
import warnings
from datetime import datetime, time, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint.identifiers import list_validators
from beaconframes.errors import DatasetError, UsageError, UsageWarning, find_caller_level
from beaconframes.exports.atomic_files import translate_errors
from beaconframes.frames import check_choice
from beaconframes.reports.formats import show_quantity
from beaconframes.reports.inputs import find_range
from beaconframes.reports.page import render_index
from beaconframes.reports.report import HEAD, report, write_text
from beaconframes.time_range import find_time_zone

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from datetime import date

    from beaconframes.client import Explorer

PERIODS = ("1d", "1w", "1mo")
"""Periods of a report: longer ones would begin where the range begins, which moves."""

INDEX = "index.html"
"""The page of a folder that links its reports."""
ARGUMENTS = "arguments.json"
"""The file of a folder with the arguments of its reports."""
DIGEST = ", sha256 "
"""What separates the number of items from their digest."""
_NAME = re.compile(r"report-(\d{4}-\d\d-\d\d)(?:_(\d{4}-\d\d-\d\d))?\.html")
_STATED = re.compile(r'<meta name="beaconframes-report" content="([^"]*)">')
_GENERATOR = re.compile(r'<meta name="generator" content="beaconframes report">')
_OVERVIEW = ("income", "rate", "effectiveness", "lost", "result", "is_simulated")


def save_every(
    every: str,
    folder: str | os.PathLike[str],
    arguments: Mapping[str, Any],
    explorer: Explorer,
    on_file: Callable[[Path], Any],
) -> list[Path]:
    """Save a report of each whole period of a range that has none yet; return the paths of all.

    *arguments* are those of `report`. A file is complete once it has its name, so that an
    interrupted run can be resumed. At the end, `INDEX` links all reports of the folder.
    """
    stated = describe_arguments(arguments) | {"the chain": explorer.chain.name}
    target = Path(folder)
    check_folder(target, stated)
    tz = arguments.get("tz", "UTC")
    first, last = find_final_range(explorer, arguments.get("since"), arguments.get("until"), tz)
    periods = list_periods(every, first, last, tz)
    if not periods:
        warning = UsageWarning(
            f"there is no whole period of {every} from {first:%Y-%m-%d} to {last:%Y-%m-%d}",
            hint="Give an earlier since=, or a shorter every=",
        )
        warnings.warn(warning, stacklevel=find_caller_level())

    target.mkdir(parents=True, exist_ok=True)
    if periods:
        write_text(target / ARGUMENTS, json.dumps(stated, indent=1))
    paths = []
    for since, until in periods:
        name = f"{since}" if since == until else f"{since}_{until}"
        path = target / f"report-{name}.html"
        if not path.exists():
            whole = {**arguments, "since": since, "until": until}
            report(**whole, explorer=explorer).save(path)
            on_file(path)
        paths.append(path)
    if rows := _list_reports(target):
        write_text(target / INDEX, render_index(rows))
    return paths


def describe_arguments(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the arguments that all reports of a folder have in common, as texts by option."""
    validators, groups = arguments.get("validators"), arguments.get("groups")
    if validators is not None:
        validators = describe_items(list_validators(validators) or validators, "validator")
    if groups is not None:
        pairs = zip(list_validators(groups), groups["group"], strict=True)
        groups = describe_items(pairs, "row")
    prices = None if arguments.get("prices") is None else f"in {arguments.get('price', 'price')}"
    stated = {"VALIDATORS": validators, "--groups": groups, "--prices": prices}
    return {
        **{option: text or "not given" for option, text in stated.items()},
        "--tz": arguments.get("tz", "UTC"),
        "--detail": arguments.get("detail", "auto"),
    }


def list_periods(
    every: str, first: datetime, last: datetime, tz: str = "UTC"
) -> list[tuple[date, date]]:
    """Return the first and the last day of each whole period from *first* to *last*.

    Days are those of the time zone *tz*. Weeks begin on Monday, months on the first.
    """
    check_choice("every", every, PERIODS)
    zone = find_time_zone(tz)
    begin, end = first.astimezone(zone), last.astimezone(zone)
    start = pl.lit(begin.date()).dt.truncate(every)
    starts = pl.select(pl.date_range(start, end.date(), every)).to_series().to_list()
    whole = [day for day in starts if datetime.combine(day, time(), zone) >= begin]
    return [(day, following - timedelta(days=1)) for day, following in pairwise(whole)]


def check_folder(folder: Path, arguments: Mapping[str, str]) -> None:
    """Raise a `UsageError` if a folder has another index, or reports with other arguments.

    *arguments* are texts by name, such as ``{"--tz": "UTC"}``: two values that differ are shown up
    to `DIGEST`. A folder of an earlier version states none.
    """
    index, file = folder / INDEX, folder / ARGUMENTS
    if index.exists() and not _GENERATOR.search(_read_head(index)):
        raise UsageError(
            f"{index} is not a list of reports, and would be replaced",
            hint="Choose another folder, or rename the file",
        )
    if not file.exists():
        return
    try:
        known = dict(json.loads(file.read_text(encoding="utf-8")))
    except (TypeError, ValueError):
        raise DatasetError(
            f"{file} is not a list of arguments of reports", hint="Choose another folder"
        ) from None
    if changes := [
        _describe_change(name, str(known[name]), value)
        for name, value in arguments.items()
        if known.get(name, value) != value
    ]:
        raise UsageError(
            f"{folder} has reports with other arguments: {'; '.join(changes)}",
            hint="Give the same arguments, or another folder with --out",
        )


def _describe_change(name: str, old: str, new: str) -> str:
    """Return how an argument has changed; equal texts have another digest."""
    before, now = (text.partition(DIGEST)[0] for text in (old, new))
    return f"{name} {before} before, {'others' if before == now else now} now"


def describe_items(items: Iterable[object], noun: str) -> str:
    """Return the number of *items* and a digest of them, in any order."""
    texts = sorted({str(item) for item in items})
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    return f"{show_quantity(len(texts), noun)}{DIGEST}{digest}"


def _list_reports(folder: Path) -> list[dict[str, Any]]:
    """Return the reports of a folder, newest first: their period, and what their pages state."""
    found: list[dict[str, Any]] = []
    for path in sorted(folder.glob("report-*.html"), reverse=True):
        if (name := _NAME.fullmatch(path.name)) is None:
            continue
        row = dict.fromkeys(_OVERVIEW) | {"file": path.name}
        row |= {"first": name[1], "last": name[2] or name[1]}
        # A page of an earlier version states nothing.
        if stated := _STATED.search(_read_head(path)):
            known = json.loads(html.unescape(stated[1]))
            row |= {column: known.get(column) for column in _OVERVIEW}
        found.append(row)
    return found


def _read_head(path: Path) -> str:
    """Return the beginning of a page, before its style sheet."""
    with translate_errors(path), path.open(encoding="utf-8", errors="replace") as file:
        return file.read(HEAD)


def find_final_range(
    explorer: Explorer, since: Any, until: Any, tz: str = "UTC"
) -> tuple[datetime, datetime]:
    """Return the times of a range: its start, and the end of its last final epoch."""
    first, last = find_range(explorer.chain_head, since, until, tz)
    chain = explorer.chain
    start = chain.time_of("epoch", first).astimezone(find_time_zone(tz))
    midnight = datetime.combine(start, time(), start.tzinfo)
    # The first epoch of a day starts minutes after midnight; the day is whole nevertheless.
    if first > 0 and chain.time_of("epoch", first - 1) < midnight:
        start = midnight
    return start, chain.time_of("epoch", last + 1)
