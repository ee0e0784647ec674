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
from beaconframes.reports.parts.answer import OFFLINE, ONLINE
from beaconframes.reports.parts.groups import LOSSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.reports.input_frames import Frames


_PARTS = {
    "missed_avoidable_wei": "missed, avoidable",
    "missed_unavoidable_wei": "missed, unavoidable",
    "missed_unknown_wei": "missed, unknown cause",
    "average_missed_wei": "average validators missed, too",
    "proposal_luck_wei": "luck of proposals",
    "sync_luck_wei": "luck of sync seats",
    "execution_wei": "priority fees beside the mean block",
    "unexplained_wei": "unexplained",
}
_MOST_NAMED = 5
_SHOWN_TIMES = 2
"""A ratio below this is no multiple."""


def list_verdict(frames: Frames) -> list[str]:
    """Return the verdict as sentences, the most important first."""
    worse = [*_describe_worse_groups(frames)]
    others = [] if worse else [*_describe_other_groups(frames)]
    return [*worse, *_describe_income(frames), *_describe_states(frames), *others]


def _describe_worse_groups(frames: Frames) -> Iterator[str]:
    """Yield a sentence for each group that is worse than the others by more than chance."""
    if not {"groups", "group_verdict"} <= frames.keys():
        return
    verdicts, mark = frames["group_verdict"], read_marks(frames, "group_verdict").get(None)
    worse = verdicts.filter(pl.col("verdict") == "worse")["group"].to_list()
    losses = frames["groups"].filter(
        pl.col("differs"), pl.col("difference") > 0, pl.col("measure").is_in(LOSSES)
    )
    for group in worse:
        own = losses.filter(pl.col("group") == group)
        facts = {row["measure"]: row for row in own.iter_rows(named=True)}
        texts = []
        if votes := facts.get("votes_missed"):
            texts.append(f"{_show_times(votes['value'], votes['others'])} missed votes")
        if lost := facts.get("lost_gwei"):
            more = show_eth(round(lost["difference"]))
            texts.append(f"{more} ETH more lost per validator of 32 ETH")
        text = f"{', '.join(texts)}, compared with the others; this is more than chance"
        yield f"Group {show_label(group)}: {show_marked(text, mark)}."


def _describe_other_groups(frames: Frames) -> Iterator[str]:
    """Yield that no group is worse; groups that cannot be compared are named."""
    if "group" not in frames["validators"].columns:
        return
    verdicts = frames.get("group_verdict", pl.DataFrame(schema=["group", "verdict"]))
    names = verdicts.filter(pl.col("verdict").is_null())["group"].to_list()
    if len(names) == verdicts.height:
        yield f"Comparison of groups: unknown; {_explain_unknown(frames)}."
        return
    text = "none is worse than the others by more than chance"
    text = show_marked(text, read_marks(frames, "group_verdict").get(None))
    if names:
        shown = ", ".join(map(show_label, names[:_MOST_NAMED]))
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        text += f"; unknown of {shown}{more}: {_explain_unknown(frames)}"
    yield f"Comparison of groups: {text}."


def _explain_unknown(frames: Frames) -> str:
    """Return why groups cannot be compared."""
    measures = frames.get("groups", pl.DataFrame(schema=["measure", "value"]))
    if measures.filter(pl.col("measure").is_in(LOSSES))["value"].count() == 0:
        return "missed votes and losses are unknown"
    if measures["group"].n_unique() == 1:
        return "there is only one group"
    return "too few validators with votes"


def _show_times(value: float, others: float) -> str:
    if others > 0 and value / others >= _SHOWN_TIMES:
        return f"{value / others:.0f} times the"
    return "more"


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
    if covered := answer.get("income_epochs"):
        days *= covered / (answer["last_epoch"] - answer["first_epoch"] + 1)
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
    difference, own = show_marked(describe_difference(row), mark), show_eth_wei(row["earned_wei"])
    yield f"Difference to average: {difference}, {describe_basis(row)} ({own} ETH)."
    parts = [(text, row[part]) for part, text in _PARTS.items() if row[part]]
    listed = "; ".join(f"{text} {_show_sign(wei)}" for text, wei in parts)
    compared = [part for part in _PARTS if part != "execution_wei"]
    unknown = [_PARTS[part] for part in compared if row[part] is None]
    rest = f"; unknown, and in the rest: {', '.join(unknown)}" if unknown else ""
    yield f"Parts of the difference: {show_marked(listed, mark)} ETH{rest}."


def describe_difference(row: dict[str, Any]) -> str:
    """Return how much more or less was earned than by average validators."""
    share = show_percent(abs(float(row["difference_wei"] / row["average_wei"])))
    word = "more" if row["difference_wei"] >= 0 else "less"
    return f"{show_eth_wei(abs(row['difference_wei']))} ETH ({share}) {word}"


def describe_basis(row: dict[str, Any]) -> str:
    """Return what is compared with average validators."""
    return "on the consensus layer" if row["consensus_only"] else "without payments of builders"


def _show_sign(wei: Any) -> str:
    text = show_eth_wei(wei)
    return f"+{text}" if text[0].isdigit() else text


def _describe_states(frames: Frames) -> Iterator[str]:
    """Yield how many validators are active, and which of them need action today."""
    answer, rows = read_answer(frames), frames["validators"]
    who = show_quantity(answer["validators"], "validator")
    yield f"Active: {answer['active']:,} of {who}."
    offline = rows.filter(pl.col("status").str.ends_with(OFFLINE))
    if offline.is_empty():
        if rows["status"].str.ends_with(ONLINE).any():
            yield "Act first: nothing, no validator is offline now."
        return
    if "lost_gwei" in offline.columns:
        offline = offline.sort("lost_gwei", descending=True, nulls_last=True)
    names = [str(index) for index in offline["validator_index"].head(_MOST_NAMED)]
    more = f" and {offline.height - _MOST_NAMED:,} more" if offline.height > _MOST_NAMED else ""
    count = show_quantity(offline.height, "validator")
    yield f"Act first: {count} offline now: {', '.join(names)}{more}."
