"""Gaps of a served dataset: rows that it does not have, although they may exist on the chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.active_periods import FAR, NOT_IN_DATASET, REASON, UNKNOWN
from beaconframes.endpoint.cache_policy import CHAIN_SUBJECTS, CachePolicy
from beaconframes.fetch.completeness import IMPOSSIBLE
from beaconframes.fetch.gap_reasons import build_interval_gaps
from beaconframes.intervals import (
    clip_intervals,
    intervals_of,
    merge_intervals,
    subtract_intervals,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beaconframes.endpoint import Call, Endpoint
    from beaconframes.endpoint.uncovered import Uncovered
    from beaconframes.fetch.gap_reasons import Gaps
    from beaconframes.fetch.source import FetchedRows
    from beaconframes.intervals import Interval, Intervals


class DatasetGaps:
    """The requested rows that a dataset does not cover, as its responses state."""

    def __init__(self, endpoint: Endpoint, partial: Sequence[FetchedRows]) -> None:
        """Read what the responses to *partial* loads of *endpoint* state."""
        self._policy = CachePolicy.of(endpoint)
        stated = [part for fetched in partial for part in fetched.uncovered]
        self._units = find_uncovered_units(self._policy, stated)
        self._has_all_validators = all(fetched.has_all_validators for fetched in partial)
        self._has_all_rows = bool(partial) and all(fetched.has_all_rows for fetched in partial)
        expected = (rows for call, _ in stated for rows in call.expected)
        self._is_required = all(rows.required for rows in expected)

    def mark(self, missing: pl.DataFrame) -> pl.DataFrame:
        """Return the gaps in *missing*; those that the dataset does not cover are named so.

        They are no contradiction. A dataset that may have some validators only cannot say that a
        validator is unknown. Of one that has all rows, no other unit is missing.
        """
        if self._policy is None or not (self._units or self._has_all_rows):
            return self._relabel(missing)
        unit, subject = self._policy.unit_column, self._policy.subject_column
        gaps: list[dict[str, Any]] = []
        for gap in missing.iter_rows(named=True):
            is_single = gap.get(f"first_{unit}") is None
            names = (unit, unit) if is_single else (f"first_{unit}", f"last_{unit}")
            if gap.get(names[0]) is None:
                gaps.append(gap)
                continue
            first, last = gap[names[0]], gap[names[1]]
            own = () if subject is None else self._units.get(str(gap.get(subject)), ())
            known = merge_intervals((*own, *self._units.get(CHAIN_SUBJECTS[0], ())))
            uncovered = clip_intervals(known, first, last)
            covered = subtract_intervals([(first, last)], uncovered)
            parts = [(part, True) for part in uncovered]
            if not self._has_all_rows:
                parts += [(part, False) for part in covered]
            for part, is_uncovered in sorted(parts):
                facts = {REASON: NOT_IN_DATASET, IMPOSSIBLE: False} if is_uncovered else {}
                gaps.append({**gap, names[0]: part[0], names[1]: part[1], **facts})
        return self._relabel(pl.DataFrame(gaps, schema=missing.schema))

    def add_unrequired(self, gaps: Gaps) -> Gaps:
        """Return *gaps* with those of an endpoint of events, of which no row is required."""
        if self._is_required or not self._units:
            return gaps
        unit, subject = "epoch", None
        if self._policy is not None:
            unit, subject = self._policy.unit_column, self._policy.subject_column
        frame = build_interval_gaps(subject, unit, self._units, NOT_IN_DATASET)
        return gaps._replace(missing=pl.concat([gaps.missing, frame], how="diagonal"))

    def _relabel(self, missing: pl.DataFrame) -> pl.DataFrame:
        if self._has_all_validators:
            return missing
        return missing.with_columns(pl.col(REASON).replace(UNKNOWN, NOT_IN_DATASET))


def find_uncovered_units(
    policy: CachePolicy | None, stated: Iterable[tuple[Call, Uncovered]]
) -> dict[str, Intervals]:
    """Return the requested units that are *stated* as uncovered, by subject.

    The subject of rows of the whole chain is ``""``. Without a *policy*, requests have no range:
    they are for the rows of all epochs.
    """
    found: dict[str, list[Interval]] = {}
    for call, uncovered in stated:
        requested: list[Interval] = [(0, FAR)]
        if policy is not None:
            requested = [
                interval
                for expected in call.expected
                for interval in intervals_of(expected.values.get(policy.unit_column, ()))
            ]
        for subject, units in uncovered.items():
            clipped = [part for unit in requested for part in clip_intervals(units, *unit)]
            if clipped:
                found.setdefault(subject, []).extend(clipped)
    return {subject: merge_intervals(units) for subject, units in found.items()}
