"""The verdict of a report: in words, what was earned, compared with what, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.reports.completeness import read_answer, read_marks, show_marked
from beaconframes.reports.formats import (
    show_eth,
    show_eth_wei,
    show_label,
    show_percent,
    show_quantity,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Frames = dict[str, pl.DataFrame]

_PARTS = {
    "missed_avoidable_wei": "missed, avoidable",
    "missed_unavoidable_wei": "missed, unavoidable",
    "missed_unknown_wei": "missed, unknown cause",
    "average_missed_wei": "average validators missed, too",
    "proposal_luck_wei": "luck of proposals",
    "sync_luck_wei": "luck of sync seats",
    "execution_wei": "priority fees above the mean block",
    "unexplained_wei": "unexplained",
}
_WORSE = {"votes_missed": "missed votes", "lost_gwei": "losses"}
"""Measures of groups in which more is worse."""
_MOST_NAMED = 5
_SHOWN_TIMES = 2
"""A ratio below this is no multiple."""
_OFFLINE = "active_offline"


def list_verdict(frames: Frames) -> list[str]:
    """Return the verdict as sentences, the most important first."""
    return [
        *_describe_groups(frames),
        *_describe_income(frames),
        *_describe_states(frames),
    ]


def _describe_groups(frames: Frames) -> Iterator[str]:
    """Yield a sentence for each group that is worse than the others by more than chance."""
    if "groups" not in frames:
        return
    rows = frames["groups"].filter(
        pl.col("differs").fill_null(value=False),
        pl.col("difference") > 0,
        pl.col("measure").is_in([*_WORSE]),
    )
    for (group,), part in rows.group_by("group", maintain_order=True):
        facts = {row["measure"]: row for row in part.iter_rows(named=True)}
        texts = []
        if votes := facts.get("votes_missed"):
            texts.append(f"{_show_times(votes['value'], votes['others'])} the missed votes")
        if lost := facts.get("lost_gwei"):
            texts.append(f"{show_eth(round(lost['difference']))} ETH per validator lost more")
        yield (
            f"Group {show_label(group)}: {', '.join(texts)} than the others, which is more than "
            "chance."
        )


def _show_times(value: float, others: float) -> str:
    if others > 0 and value / others >= _SHOWN_TIMES:
        return f"{value / others:.0f} times"
    return "more of"


def _describe_income(frames: Frames) -> Iterator[str]:
    """Yield what was earned, what average validators earned, and the parts of the difference."""
    answer, marks = read_answer(frames), read_marks(frames, "summary")
    net, consensus = show_eth_wei(answer.get("net_income_wei")), answer.get("consensus_income_gwei")
    if net != "unknown":
        earned = show_marked(f"{net} ETH", marks.get("net_income_wei"))
    elif consensus is not None:
        earned = show_marked(f"{show_eth(consensus)} ETH", marks.get("consensus_income_gwei"))
        earned += " on the consensus layer, unknown on the execution layer"
    else:
        earned = "unknown"
    days = (answer["until"] - answer["since"]).total_seconds() / 86_400
    who = show_quantity(answer["validators"], "validator")
    yield f"Earned in this time: {earned}, by {who} in {days:.1f} days."
    found = frames.get("comparison", pl.DataFrame()).rows(named=True)
    if found and found[0]["average_wei"]:
        yield from _compare(found[0], read_marks(frames, "comparison").get(None))
    else:
        yield "Average validators with the same balances: unknown."
        yield "Difference to average: unknown."
        yield "Parts of the difference: unknown."


def _compare(row: dict[str, Any], mark: str | None) -> Iterator[str]:
    """Yield what average validators earned, the difference, and its parts.

    A part that is unknown is in the rest, which is unexplained; without execution income, fees are
    in no amount.
    """
    average = show_marked(f"{show_eth_wei(row['average_wei'])} ETH", mark)
    note = ""
    if row["days_estimated"]:
        days = show_quantity(row["days_estimated"], "day")
        note = f"; the yield index does not have {days} yet, for which the nearest day counts"
    yield f"Average validators with the same balances: {average}{note}."
    share = show_percent(abs(float(row["difference_wei"] / row["average_wei"])))
    word = "more" if row["difference_wei"] >= 0 else "less"
    difference = f"{show_eth_wei(abs(row['difference_wei']))} ETH ({share}) {word}"
    basis = "on the consensus layer" if row["consensus_only"] else "without payments of builders"
    own = show_eth_wei(row["earned_wei"])
    yield f"Difference to average: {show_marked(difference, mark)}, {basis} ({own} ETH)."
    parts = [(text, row[part]) for part, text in _PARTS.items() if row[part]]
    listed = "; ".join(f"{text} {_show_sign(wei)}" for text, wei in parts)
    compared = [part for part in _PARTS if part != "execution_wei"]
    unknown = [_PARTS[part] for part in compared if row[part] is None]
    rest = f"; unknown, and in the rest: {', '.join(unknown)}" if unknown else ""
    yield f"Parts of the difference: {show_marked(listed, mark)} ETH{rest}."


def _show_sign(wei: Any) -> str:
    text = show_eth_wei(wei)
    return f"+{text}" if text[0].isdigit() else text


def _describe_states(frames: Frames) -> Iterator[str]:
    """Yield how many validators are active, and which of them need action today."""
    answer, rows = read_answer(frames), frames["validators"]
    who = show_quantity(answer["validators"], "validator")
    yield f"Active: {answer['active']:,} of {who}."
    offline = rows.filter(pl.col("status") == _OFFLINE)
    if offline.is_empty():
        if rows["status"].is_in(["active_online"]).any():
            yield "Act first: nothing, no validator is offline now."
        return
    if "lost_gwei" in offline.columns:
        offline = offline.sort("lost_gwei", descending=True, nulls_last=True)
    names = [str(index) for index in offline["validator_index"].head(_MOST_NAMED)]
    more = f" and {offline.height - _MOST_NAMED:,} more" if offline.height > _MOST_NAMED else ""
    count = show_quantity(offline.height, "validator")
    yield f"Act first: {count} offline now: {', '.join(names)}{more}."
