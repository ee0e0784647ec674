"""The part of a table that a dataset does not cover, as a local explorer states it in a header."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from beaconframes.intervals import intervals_of, merge_intervals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.intervals import Interval, Intervals

DATASET_HEADER = "x-beaconframes-dataset"
"""The header of each response from a dataset that is not a simulation, but may be its export.

It may have some validators only, so a validator without an answer is not one that does not exist.
"""

LISTS_GAPS = "lists its gaps"
"""The value of `DATASET_HEADER` for a table that has all rows but those stated as uncovered."""

UNCOVERED_HEADER = "x-beaconframes-uncovered"
"""The header with the units that the dataset does not cover, of the requested subjects."""

MAX_HEADER = 8_000
"""Characters; a server states the uncovered units of all subjects together rather than more."""

MAX_SUBJECTS = 1_000
"""Subjects that a header may name; a request is for at most a hundred."""

Uncovered: TypeAlias = "Mapping[str, Intervals]"
"""Units that a dataset does not cover, by subject: a validator, or ``""`` for the whole chain."""

_Part: TypeAlias = tuple[list[tuple[int, int]], list[tuple[int, int]]]
"""Intervals of subjects, none for rows of the whole chain, and their uncovered units."""

_PARTS = msgspec.json.Decoder(list[_Part])


def encode_uncovered(uncovered: Uncovered) -> str:
    """Return the value of the header for *uncovered* units; empty if there are none."""
    subjects: dict[Intervals, list[str]] = defaultdict(list)
    for subject, units in uncovered.items():
        subjects[units].append(subject)
    text = _encode(subjects)
    if len(text) > MAX_HEADER:
        all_subjects = [subject for names in subjects.values() for subject in names]
        text = _encode({merge_intervals(u for units in subjects for u in units): all_subjects})
    if len(text) > MAX_HEADER:
        bounds = [bound for units in subjects for unit in units for bound in unit]
        text = _encode({((min(bounds), max(bounds)),): all_subjects})
    return text


def _encode(subjects: Mapping[Intervals, list[str]]) -> str:
    parts = [
        (intervals_of([int(name) for name in names if name]), units)
        for units, names in subjects.items()
    ]
    return msgspec.json.encode(parts).decode() if parts else ""


def parse_uncovered(header: str) -> Uncovered:
    """Return the units that a header states; none for an invalid one."""
    try:
        parts = _PARTS.decode(header)
    except msgspec.MsgspecError:
        return {}
    sizes = [last - first + 1 for subjects, _ in parts for first, last in subjects]
    if sum(sizes) > MAX_SUBJECTS or min(sizes, default=1) < 1:
        return {}
    found: dict[str, list[Interval]] = defaultdict(list)
    for subjects, units in parts:
        names = [str(n) for first, last in subjects for n in range(first, last + 1)]
        for name in names or [""]:
            found[name] += units
    return {name: merge_intervals(units) for name, units in found.items()}
