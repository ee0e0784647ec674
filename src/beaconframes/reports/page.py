"""The page of a report: its frames in a template, with everything in one file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint.identifiers import list_validators
from beaconframes.exports.formats.cells import CellOptions, to_cells
from beaconframes.reports.completeness import (
    describe_marks,
    list_failures,
    read_answer,
    read_marks,
    show_marked,
)
from beaconframes.reports.figures import list_cards, list_figures
from beaconframes.reports.formats import (
    FILTERS,
    show_count,
    show_eth,
    show_eth_wei,
    show_label,
    show_moment,
    show_percent,
    show_quantity,
    show_text,
    show_verdict,
)
from beaconframes.reports.luck import list_luck
from beaconframes.reports.pictures import build_pictures
from beaconframes.reports.renderers import render_plotly, render_svg
from beaconframes.reports.tables import list_tables, rank_groups, select_problems
from beaconframes.reports.verdict import list_verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jinja2 import Environment

    from beaconframes.reports.input_frames import Frames


_SCRIPTS = ("table_sort.js", "table_files.js")
_MOST_NAMES, _SHOWN = 3, 14
"""Unknown validators that are named, and the characters of each name."""


def render_page(frames: Frames, left_out: dict[str, str], *, interactive: bool) -> str:
    """Return the page: all text is escaped, and a policy forbids other scripts and requests."""
    library = "plotly" if interactive else "matplotlib"
    has_library = find_spec(library) is not None
    pictures = build_pictures(frames, interactive=interactive) if has_library else {}
    draw = render_plotly if interactive else render_svg
    scripts = [_read(name) for name in _SCRIPTS]
    answer = read_answer(frames)
    facts = dict(frames["facts"].iter_rows())
    context: dict[str, Any] = {
        "title": f"Report on {show_quantity(answer['validators'], 'validator')}",
        "verdict": list_verdict(frames),
        "cards": list_cards(frames),
        "figures": [vars(figure) for figure in list_figures(frames)],
        "answer": answer,
        "link": lambda name: _write_link(frames[name]),
        "doubts": partial(describe_marks, frames),
        "failures": list_failures(frames),
        "facts": facts,
        "facts_listed": [
            (show_text(name).capitalize(), show_text(value))
            for name, value in facts.items()
            if not _is_stated_above(name, value, facts)
        ],
        "pictures": pictures,
        "missing_library": "" if has_library else library,
        "drawn": {name: draw(picture) for name, picture in pictures.items()},
        "library": import_module("plotly.offline").get_plotlyjs() if interactive else "",
        "css": _read("report.css"),
        "scripts": scripts,
        "resize": _read("resize_charts.js") if interactive else "",
        "policy": _build_policy(scripts, interactive=interactive),
        "left_out": {name: show_text(reason) for name, reason in left_out.items()},
        "is_daily": facts.get("detail") == "daily statistics",
        "luck": list_luck(frames),
        "queue": _get_row(frames, "queue"),
        "reconciliation": _get_row(frames, "reconciliation"),
        "gap_count": frames["missing"].height,
        "unknown_validators": _describe_unknown(frames),
        "overview": json.dumps(_build_overview(frames)),
        **list_tables(frames),
    }
    return _load_environment().get_template("report.html.j2").render(context)


def render_index(rows: list[dict[str, Any]]) -> str:
    """Return the page that links the reports of a folder."""
    css, script = _read("report.css"), _read("table_sort.js")
    policy = _build_policy([script], interactive=False)
    context = {"rows": rows, "css": css, "script": script, "policy": policy}
    return _load_environment().get_template("index.html.j2").render(context)


def _build_overview(frames: Frames) -> dict[str, Any]:
    """Return the texts of a report in the list of a folder; its page has them."""
    answer, marks = read_answer(frames), read_marks(frames, "summary")

    def show(name: str, form: Callable[[Any], str]) -> str:
        return show_marked(form(answer.get(name)), marks.get(name))

    income = show("net_income_wei", show_eth_wei)
    if income == "unknown" and answer.get("consensus_income_gwei") is not None:
        income = f"{show('consensus_income_gwei', show_eth)} (consensus layer only)"
    return {
        "income": income,
        "rate": show("apr_on_effective", show_percent),
        "effectiveness": show("effectiveness", show_percent),
        "lost": show("lost_gwei", show_eth),
        "result": _describe_result(frames, is_known=answer.get("lost_gwei") is not None),
        "is_simulated": dict(frames["facts"].iter_rows()).get("simulated") == "yes",
    }


def _describe_result(frames: Frames, *, is_known: bool) -> str:
    """Return the number of problems, and whether the report can be trusted."""
    problems = frames.get("problems")
    count = 0 if problems is None else select_problems(problems).height
    parts = [show_quantity(count, "problem")] if count else []
    marks = read_marks(frames, "problems")
    if not count:
        parts = ["no problem" if is_known and not marks else "problems unknown"]
    if list_failures(frames):
        parts.append("incomplete")
    checked = _get_row(frames, "reconciliation")
    if checked is not None and checked["unexplained"]:
        parts.append("balances do not reconcile")
    return ", ".join(parts)


def describe_left_out(answer: Mapping[str, Any]) -> str:
    """Return which days are not counted, with their execution income."""
    days = show_quantity(answer["left_out_days"], "validator-day")
    wei = answer["left_out_execution_wei"]
    amount = "unknown" if wei is None else f"{show_eth_wei(wei)} ETH of"
    return f"{days} not counted, with {amount} execution income"


def list_answer(frames: Frames) -> list[str]:
    """Return the answer as lines of text; a number that is not complete has a mark."""
    answer = read_answer(frames)
    since, until = (show_moment(answer[name]) for name in ("since", "until"))
    count = show_quantity(answer["validators"], "validator")
    lines = [f"{show_count(answer['active'])} of {count} active, {since} to {until} UTC"]
    if unknown := _describe_unknown(frames):
        lines.append(f"  {unknown}")
    if "requested_since" in answer:
        requested = show_moment(answer["requested_since"])
        lines.append(f"  requested from {requested}; there is no income before {since}")
    epochs = answer["last_epoch"] - answer["first_epoch"] + 1
    covered = answer.get("income_epochs", epochs)
    if covered is None or covered < epochs:
        known = "unknown" if covered is None else show_count(covered)
        lines.append(f"  epochs with income: {known} of {show_count(epochs)}")
    if "left_out_days" in answer:
        lines.append(f"  {describe_left_out(answer)}")
    lines += [f"  incomplete: {failure}" for failure in list_failures(frames)]
    for card in list_cards(frames):
        number = " ".join(filter(None, (card.number, card.unit)))
        lines.append(f"  {card.title.lower():17} {number}; {card.comparison}: {card.word}")
    for figure in list_figures(frames):
        if figure.is_in_text:
            note = f", {figure.note}" if figure.note else ""
            lines.append(f"  {figure.title.lower():17} {figure.text}{note}")
    return lines + _list_groups(frames)


def _list_groups(frames: Frames) -> list[str]:
    """Return a line for each group, those that are worse first."""
    rows = rank_groups(frames).rows(named=True)
    mark = read_marks(frames, "group_verdict").get(None)
    lines = []
    for row in rows:
        text = f"{show_percent(row['effectiveness'])} effectiveness, "
        text += f"lost per validator (ETH) {show_eth(row['lost_per_validator_gwei'])}"
        text = show_marked(f"{text}: {show_verdict(row['verdict'])}", mark)
        name = f"group {show_label(row['group'])}"
        lines.append(f"  {name:17} {text}")
    if rows and (others := frames["group_verdict"].height - len(rows)):
        lines.append(f"  and {show_quantity(others, 'other group')}")
    return lines


def _write_link(frame: pl.DataFrame) -> str:
    """Return the address of a CSV file with all rows of a frame, which needs no request."""
    cells = to_cells(frame, CellOptions())
    data = gzip.compress(cells.write_csv(quote_style="non_numeric").encode(), mtime=0)
    return f"data:application/gzip;base64,{base64.b64encode(data).decode()}"


def _is_stated_above(name: str, value: str, facts: dict[str, str]) -> bool:
    """Return whether a fact repeats the note, or the mark of simulated data beside the title."""
    is_simulated = facts.get("simulated") == "yes"
    return name == "note" or (is_simulated and (name == "simulated" or value == "simulated"))


def _describe_unknown(frames: Frames) -> str:
    """Return which of the requested validators the source does not have; the first by name."""
    rows = frames["missing"].filter(pl.col("input") == "validators")
    if rows.is_empty():
        return ""
    names = [str(name)[:_SHOWN] for name in list_validators(rows.head(_MOST_NAMES))]
    more = ", ..." if rows.height > _MOST_NAMES else ""
    verb = "is" if rows.height == 1 else "are"
    count = show_quantity(rows.height, "requested validator")
    return f"{count} {verb} unknown to the source: {', '.join(names)}{more}"


def _get_row(frames: Frames, name: str) -> dict[str, Any] | None:
    frame = frames.get(name)
    return frame.row(0, named=True) if frame is not None and frame.height else None


def _build_policy(scripts: Sequence[str], *, interactive: bool) -> str:
    """Return the content security policy: no request, and no script but our own."""
    digests = [
        base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts
    ]
    allowed = "'unsafe-inline'" if interactive else " ".join(f"'sha256-{each}'" for each in digests)
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}"


@cache
def _load_environment() -> Environment:
    """Return the environment of the templates; every value is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("beaconframes.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters.update(FILTERS)
    return environment


@cache
def _read(name: str) -> str:
    from importlib.resources import files

    return (files("beaconframes.reports") / "templates" / name).read_text(encoding="utf-8").strip()
