"""The part of a table that a dataset does not cover, as a local explorer states it in a header."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from beaconframes.endpoint.intervals import Intervals, intervals_of, merge_intervals

if TYPE_CHECKING:
    from collections.abc import Mapping

DATASET_HEADER = "x-beaconframes-dataset"
"""The header of each response from a dataset that is not a simulation, but may be its export.

It may have some validators only, so a validator without an answer is not one that does not exist.
"""

UNCOVERED_HEADER = "x-beaconframes-uncovered"
"""The header with the units that the dataset does not cover, of the requested subjects."""

MAX_HEADER = 8_000
"""Characters; a server states the uncovered units of all subjects together rather than more."""

Part: TypeAlias = tuple[list[tuple[int, int]], list[tuple[int, int]]]
"""Intervals of subjects, none for rows of the whole chain, and their uncovered units."""

_PARTS = msgspec.json.Decoder(list[Part])


def encode_uncovered(uncovered: Mapping[str, Intervals]) -> str:
    """Return the value of the header for the *uncovered* units of each subject.

    Subjects are validators, or ``""`` for the whole chain. The text is empty if all is covered.
    """
    subjects: dict[Intervals, list[str]] = defaultdict(list)
    for subject, units in uncovered.items():
        if units:
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


def parse_uncovered(header: str) -> list[Part]:
    """Return the parts that a header states; none for an invalid one."""
    try:
        return _PARTS.decode(header)
    except msgspec.MsgspecError:
        return []
