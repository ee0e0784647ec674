"""The page of a report: its frames in a template, with everything in one file."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.analysis.execution_income import RECEIVED
from beaconframes.reports.completeness import (
    describe_marks,
    list_failures,
    read_answer,
    read_marks,
    show_marked,
)
from beaconframes.reports.formats import (
    FILTERS,
    show_count,
    show_eth,
    show_eth_wei,
    show_moment,
    show_percent,
    show_quantity,
    show_text,
    show_value,
)
from beaconframes.reports.luck import list_luck
from beaconframes.reports.pictures import build_pictures
from beaconframes.reports.renderers import render_plotly, render_svg
from beaconframes.reports.tables import list_tables, select_problems
from beaconframes.reports.verdict import list_verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jinja2 import Environment

Frames = dict[str, pl.DataFrame]


def render_page(frames: Frames, left_out: dict[str, str], *, interactive: bool) -> str:
    """Return the page: all text is escaped, and a policy forbids other scripts and requests."""
    pictures = build_pictures(frames, interactive=interactive)
    draw = render_plotly if interactive else render_svg
    script = _read("table_sort.js")
    answer, marks = read_answer(frames), read_marks(frames, "summary")
    facts = dict(frames["facts"].iter_rows())
    context: dict[str, Any] = {
        "title": f"Report on {show_quantity(answer['validators'], 'validator')}",
        "verdict": list_verdict(frames),
        "answer": answer,
        "mark": lambda name: marks.get(name, ""),
        "doubts": partial(describe_marks, frames),
        "failures": list_failures(frames),
        "facts": facts,
        "facts_listed": [
            (show_text(name).capitalize(), show_text(value))
            for name, value in facts.items()
            if not _is_stated_above(name, value, facts)
        ],
        "pictures": pictures,
        "drawn": {name: draw(picture) for name, picture in pictures.items()},
        "library": _read_plotly() if interactive else "",
        "css": _read("report.css"),
        "script": script,
        "resize": _read("resize_charts.js") if interactive else "",
        "policy": _build_policy(script, interactive=interactive),
        "left_out": {name: show_text(reason) for name, reason in left_out.items()},
        "is_daily": facts.get("detail") == "daily statistics",
        "luck": list_luck(frames),
        "queue": _get_row(frames, "queue"),
        "reconciliation": _get_row(frames, "reconciliation"),
        "gap_count": frames["missing"].height,
        "unknown_count": _count_unknown(frames),
        "overview": json.dumps(_build_overview(frames)),
        **list_tables(frames),
    }
    return _load_environment().get_template("report.html.j2").render(context)


def render_index(rows: list[dict[str, Any]]) -> str:
    """Return the page that links the reports of a folder."""
    css, script = _read("report.css"), _read("table_sort.js")
    policy = _build_policy(script, interactive=False)
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
    answer, marks = read_answer(frames), read_marks(frames, "summary")
    since, until = (show_moment(answer[name]) for name in ("since", "until"))
    count = show_quantity(answer["validators"], "validator")
    lines = [f"{show_count(answer['active'])} of {count} active, {since} to {until} UTC"]
    unknown = _count_unknown(frames)
    if unknown:
        verb = "is" if unknown == 1 else "are"
        lines.append(f"  {show_quantity(unknown, 'requested validator')} {verb} unknown")
    if "requested_since" in answer:
        requested = show_moment(answer["requested_since"])
        lines.append(f"  requested from {requested}; there is no income before {since}")
    epochs = answer["last_epoch"] - answer["first_epoch"] + 1
    if answer.get("income_epochs", epochs) < epochs:
        known = show_count(answer["income_epochs"])
        lines.append(f"  income covers {known} of {show_count(epochs)} epochs")
    if "left_out_days" in answer:
        lines.append(f"  {describe_left_out(answer)}")
    lines += [f"  incomplete: {failure}" for failure in list_failures(frames)]
    for name, title, form, unit in (
        ("net_income_wei", "net income", show_eth_wei, " ETH"),
        ("consensus_income_gwei", "consensus layer", show_eth, " ETH"),
        ("execution_income_wei", "execution layer", show_eth_wei, " ETH"),
        ("income_value", "value at receipt", show_value, f" {answer.get('currency', '')}".upper()),
        ("apr_on_effective", "yearly rate", show_percent, ""),
        ("index_apr", "yield index", show_percent, ""),
        ("effectiveness", "effectiveness", show_percent, ""),
        ("network_effectiveness", "network", show_percent, ""),
        ("lost_gwei", "lost", show_eth, " ETH"),
        ("avoidable_gwei", "avoidable", show_eth, " ETH"),
    ):
        if name in answer:
            text = form(answer[name])
            note = _describe_basis(answer) if name == "execution_income_wei" else ""
            if name == "income_value" and answer.get("days_without_price"):
                note = f", {show_quantity(answer['days_without_price'], 'day')} without a price"
            if name == "network_effectiveness" and answer.get("network_since") is not None:
                ends = (f"{answer[name]:%Y-%m-%d}" for name in ("network_since", "network_until"))
                note = f", {' to '.join(dict.fromkeys(ends))}"
            if name == "lost_gwei" and answer.get("cost_unknown"):
                note = (
                    f", the cost of {show_quantity(answer['cost_unknown'], 'problem')} is unknown"
                )
            text += "" if text == "unknown" else unit
            lines.append(f"  {title:17} {show_marked(text, marks.get(name))}{note}")
    return lines


def _describe_basis(answer: Mapping[str, Any]) -> str:
    """Return what execution income is, unless it is what the proposers received."""
    basis = answer.get("execution_income_basis")
    is_usual = basis in (None, RECEIVED) or answer["execution_income_wei"] is None
    return "" if is_usual else f", {basis}"


def _is_stated_above(name: str, value: str, facts: dict[str, str]) -> bool:
    """Return whether a fact repeats the mark of simulated data beside the title."""
    is_simulated = facts.get("simulated") == "yes"
    return is_simulated and (name == "simulated" or value == "simulated")


def _count_unknown(frames: Frames) -> int:
    """Return how many of the requested validators the source does not have."""
    return frames["missing"].filter(pl.col("input") == "validators").height


def _get_row(frames: Frames, name: str) -> dict[str, Any] | None:
    frame = frames.get(name)
    return frame.row(0, named=True) if frame is not None and frame.height else None


def _build_policy(script: str, *, interactive: bool) -> str:
    """Return the content security policy: no request, and no script but our own."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = "'unsafe-inline'" if interactive else f"'sha256-{digest}'"
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {scripts}"


def _read_plotly() -> str:
    from plotly.offline import get_plotlyjs

    library: str = get_plotlyjs()
    return library


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
