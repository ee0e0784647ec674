"""The part of a table that a dataset does not cover: some validators, epochs or slots."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from beaconframes.answers.selectors import find_numbers, find_slots
from beaconframes.answers.selectors.set_members import resolve_members
from beaconframes.dataset.coverage import WHOLE_CHAIN
from beaconframes.dataset.dataset import PublishedDataset
from beaconframes.endpoint.absent_table import AbsentTable, TableAbsent
from beaconframes.endpoint.cache_policy import CachePolicy
from beaconframes.endpoint.identifiers import parse_number
from beaconframes.intervals import merge_intervals, subtract_intervals
from beaconframes.v1.graffiti_wall import GRAFFITI_WALL

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from beaconframes.answers.view import DatasetView
    from beaconframes.calendar import Chain
    from beaconframes.endpoint import Endpoint, Fields
    from beaconframes.endpoint.uncovered import Uncovered
    from beaconframes.intervals import Interval, Intervals


_TIMED = ("epoch", "slot", "day")
_INTERVALS = re.compile(r"[0-9]{1,18}-[0-9]{1,18}(,[0-9]{1,18}-[0-9]{1,18})*")


def find_uncovered(endpoint: Endpoint, fields: Fields, view: DatasetView) -> Uncovered:
    """Return the units that *view* does not cover, by requested validator.

    The units are those of the request; without a range, they are epochs. There are none in a table
    without coverage: all of its rows are there. A simulated chain covers what is after its first
    simulated epoch.
    """
    if isinstance(view.dataset, PublishedDataset):
        return find_export_gaps(endpoint, fields, view.dataset, view)
    policy = CachePolicy.of(endpoint)
    if view.is_simulated:
        first, unit = view.first_epoch, "" if policy is None else policy.unit_name
        # Days have a longer history, and nothing was painted before.
        if not first or unit not in ("epoch", "slot") or endpoint is GRAFFITI_WALL:
            return {}
        return {WHOLE_CHAIN: convert(((0, first - 1),), "epoch", unit, view.chain)}
    grid = view.grids.get(endpoint.table.table_name)
    if grid is None:
        return {}
    if policy is None and grid.subject is not None:
        return {}
    stored = unit_of(grid.unit)
    requested = "epoch" if policy is None else unit_of(policy.unit_column)
    if stored != requested and {stored, requested} != {"epoch", "slot"}:
        return {}
    subjects = [WHOLE_CHAIN]
    if grid.subject is not None:
        if policy is None or policy.subject is None or not policy.subject.resolves_pubkeys:
            return {}
        indices = find_numbers(policy.subject, fields, view) or ()
        subjects = [str(index) for index in sorted(indices)]
    # A request without a range is for all rows, which are complete up to the finalized epoch.
    last = view.head.latest(stored, view.chain, finalized=policy is None)
    covered = view.dataset.coverage(endpoint.table.table_name, subjects, last=last)
    return {
        subject: convert(units, stored, requested, view.chain)
        for subject in subjects
        if (units := subtract_intervals([(0, last)], covered.get(subject, ())))
    }


def is_uncovered(endpoint: Endpoint, fields: Fields, uncovered: Uncovered) -> bool:
    """Return whether a request for one epoch, slot or period is for an *uncovered* one.

    An empty list would say that it has no rows. A request for a range has a list of the others.
    """
    policy = CachePolicy.of(endpoint)
    numbers = [
        parse_number(text) for name, text in fields.items() if f"{{{name}}}" in endpoint.path
    ]
    if policy is None or policy.subject is not None or len(numbers) != 1 or numbers[0] is None:
        return False
    return any(first <= numbers[0] <= last for units in uncovered.values() for first, last in units)


def find_export_gaps(
    endpoint: Endpoint, fields: Fields, export: PublishedDataset, view: DatasetView
) -> dict[str, Intervals]:
    """Return what an *export* does not have of the requested validators.

    It is the gaps in its manifest, and what was not requested.
    """
    table = export.manifest["tables"].get(endpoint.table.table_name)
    policy = CachePolicy.of(endpoint) if table else None
    if table is None or policy is None:
        return {}
    unit, subject = policy.unit_column, policy.subject_column
    requested = None
    if policy.subject is not None and policy.subject.resolves_pubkeys:
        requested = find_numbers(policy.subject, fields, view) or ()
    found = _list_outside(table, policy, requested, view)
    for gap in table["gaps"]:
        bounds = [gap.get(f"{end}_{unit}", gap.get(unit)) for end in ("first", "last")]
        index = None if subject is None else gap.get(subject)
        is_requested = index is None or requested is None or index in requested
        # A manifest from elsewhere may have any values.
        if is_requested and all(type(number) is int for number in (*bounds, index or 0)):
            name = WHOLE_CHAIN if index is None else str(index)
            found.setdefault(name, []).append((bounds[0], bounds[1]))
    return {name: merge_intervals(intervals) for name, intervals in found.items()}


def lists_gaps(endpoint: Endpoint, export: PublishedDataset) -> bool:
    """Return whether an *export* states what was requested of a table.

    Then it has all of these rows but its gaps: before an activation or after an exit are none.
    """
    table = export.manifest["tables"].get(endpoint.table.table_name)
    policy = CachePolicy.of(endpoint) if table else None
    if table is None or policy is None or not _find_range(table, policy):
        return False
    unit, subject = policy.unit_column, policy.subject
    if any(gap.keys().isdisjoint((unit, f"first_{unit}")) for gap in table["gaps"]):
        return False
    return subject is None or bool(_parse_intervals(table["request"].get(subject.arguments()[0])))


def _find_range(table: Mapping[str, Any], policy: CachePolicy) -> Intervals:
    """Return the units that were requested of an exported *table*; () if it does not state them."""
    request = table.get("request")
    unit = policy.unit_name
    if not isinstance(request, dict) or request.get("unit") != unit or unit not in _TIMED:
        return ()
    since, until = request.get("since"), request.get("until")
    if type(since) is not int or type(until) is not int or since > until:
        return ()
    return _parse_intervals(request.get("only")) or ((since, until),)


def _list_outside(
    table: Mapping[str, Any],
    policy: CachePolicy,
    requested: Collection[int] | None,
    view: DatasetView,
) -> dict[str, list[Interval]]:
    """Return what the request of an exported *table* leaves out, by requested validator."""
    unit: Any = policy.unit_name
    if not (own := _find_range(table, policy)):
        return {}
    last = view.head.latest(unit, view.chain, finalized=False)
    found = {WHOLE_CHAIN: [*subtract_intervals([(0, last)], own)]}
    # Many validators are abbreviated, and the index of a public key is not known.
    subject = policy.subject and table["request"].get(policy.subject.arguments()[0])
    if requested is not None and (validators := _parse_intervals(subject)):
        others = [n for n in requested if not any(a <= n <= b for a, b in validators)]
        found |= {str(number): [(0, last)] for number in others}
    return {name: intervals for name, intervals in found.items() if intervals}


def _parse_intervals(text: object) -> Intervals:
    """Return intervals such as ``0-4,7-7``; none for another text."""
    if not isinstance(text, str) or not _INTERVALS.fullmatch(text):
        return ()
    parts = (part.split("-") for part in text.split(","))
    numbers = [(int(low), int(high)) for low, high in parts]
    return merge_intervals((low, high) for low, high in numbers if low <= high)


def require_covered(
    endpoint: Endpoint, fields: Fields, view: DatasetView, tables: Collection[str]
) -> None:
    """Raise TableAbsent if a V2 answer needs rows of *tables* that *view* does not cover.

    The answer is computed from the rows of all validators, unless *fields* select some, in the
    finalized part of the slots that *fields* select.
    """
    partial = [table for table in sorted(tables) if table in view.grids]
    slots = find_slots(endpoint.all_parameters, fields, view)
    if not partial or slots is None:
        return
    first = max(slots[0], 0)
    last = min(slots[1], view.head.latest("slot", view.chain, finalized=True))
    if first > last:
        return
    members = None
    if fields.get("validator") is not None:
        members = [str(index) for index in resolve_members(fields["validator"], view)]
    for table in partial:
        grid = view.grids[table]
        unit = unit_of(grid.unit)
        low, high = (view.chain.at(unit, view.chain.time_of("slot", n)) for n in (first, last))
        subjects = [WHOLE_CHAIN] if grid.subject is None else members
        covered = view.dataset.coverage(table, subjects, first=low, last=high)
        whole = ((low, high),)
        if subjects is None or any(covered.get(subject) != whole for subject in subjects):
            raise TableAbsent(AbsentTable(table, "partial"))


def unit_of(column: str) -> Any:
    """Return the unit of a column: ``slot`` for ``block_slot``."""
    return column.rpartition("_")[2]


def convert(units: Intervals, stored: str, requested: str, chain: Chain) -> Intervals:
    """Return *units* of one kind in another; an epoch with an uncovered slot is uncovered."""
    if stored == requested:
        return units
    parts: list[Interval]
    if requested == "slot":
        parts = [(chain.first_slot_of(first), chain.last_slot_of(last)) for first, last in units]
    else:
        size = chain.slots_per_epoch
        parts = [(first // size, last // size) for first, last in units]
    return merge_intervals(parts)
