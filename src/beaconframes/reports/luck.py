"""Luck in words: proposals and sync seats beside the expected numbers, and how rare that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.reports.formats import (
    show_count,
    show_decimal,
    show_label,
    show_quantity,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.reports.input_frames import Frames


_DUTIES = {"luck": "Proposals", "sync_luck": "Sync committee seats"}
_RARE = 0.05
"""Corrected p-values below this are rare."""
_MOST_SETS = 1_000_000


def list_luck(frames: Frames) -> list[str]:
    """Return sentences about luck: of all validators, of groups, and how rarity is corrected."""
    names = [f"{prefix}{name}" for prefix in ("", "group_") for name in _DUTIES]
    count = sum(frames[name]["p_corrected"].count() for name in names if name in frames)
    found = [*_describe_all(frames), *_describe_groups(frames)]
    if count:
        compared = show_quantity(count, "comparison")
        found.append(
            "Rarity counts too few and too many alike, and is corrected for the "
            f"{compared} with chance in this report (Holm). What 1 set in {1 / _RARE:.0f} has is "
            "within chance."
        )
    return found


def _describe_all(frames: Frames) -> Iterator[str]:
    """Yield the numbers of all validators together, and how rare they are."""
    for name in _DUTIES:
        if name not in frames or frames[name].is_empty():
            continue
        row = frames[name].row(0, named=True)
        if name == "luck":
            counted = f"in {show_count(row['slots'])} slots"
        else:
            count, selected = row["periods"], row["selected"]
            which = show_quantity(count, "committee")
            if count < selected:
                which = f"the latest {count} of {show_quantity(selected, 'committee')}"
            counted = f"in {which} selected in this time"
        yield f"{_describe_numbers(name, row)}, {counted}.{_describe_rarity(row)}"


def _describe_groups(frames: Frames) -> Iterator[str]:
    """Yield a sentence for each group whose numbers are rare; one if there is none."""
    tables = {name: frames[f"group_{name}"] for name in _DUTIES if f"group_{name}" in frames}
    rare = [
        (name, row)
        for name, table in tables.items()
        for row in table.filter(pl.col("p_corrected") < _RARE).iter_rows(named=True)
    ]
    for name, row in rare:
        numbers = _describe_numbers(name, row)
        yield f"Group {show_label(row['group'])}: {numbers}.{_describe_rarity(row)}"
    if not rare and any(table["p_corrected"].count() for table in tables.values()):
        yield "Groups: their proposals and sync committee seats are within chance."


def _describe_numbers(name: str, row: dict[str, Any]) -> str:
    drawn, expected = show_count(row["drawn"]), show_decimal(row["expected"])
    return f"{_DUTIES[name]}: {drawn} assigned, {expected} expected"


def _describe_rarity(row: dict[str, Any]) -> str:
    """Return how many sets of this size have so few, or so many, by chance."""
    if not row["expected"]:
        return ""
    if row["p_corrected"] is None:
        return " These are nearly all validators of the chain, so this is not luck."
    if row["p_corrected"] >= _RARE:
        return " This is within chance."
    word = "few" if row["drawn"] < row["expected"] else "many"
    if row["p_corrected"] * _MOST_SETS < 1:
        return f" Fewer than 1 set of this size in {_MOST_SETS:,} has so {word}."
    return f" 1 set of this size in {int(1 / row['p_corrected']):,} has so {word}."
