"""Active periods of validators: rows before activation or after exit are not gaps."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes import v2
from beaconframes.errors import BeaconframesError, MissingRows
from beaconframes.frames import to_polars
from beaconframes.v1.validators import load_validators

if TYPE_CHECKING:
    from collections.abc import Collection

    from beaconframes.client import Explorer

SUBJECT = "validator_index"
COLUMNS = (SUBJECT, "activation_epoch", "exit_epoch", "withdrawable_epoch", "slashed")
UNITS = ("epoch", "slot", "day")
NEVER_ACTIVE = (0, 0)


class ActivePeriods:
    """The epochs in which validators were active, requested once per validator."""

    def __init__(self, explorer: Explorer, *, uses_v2: bool) -> None:
        """Request from *explorer*, a hundred validators per request."""
        self.explorer, self.uses_v2 = explorer, uses_v2
        self._periods: dict[int, tuple[int, int | None] | None] = {}

    def clip_gaps(self, gaps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the parts of *gaps* in epochs, slots or days in which each validator was active.

        Gaps of validators whose active period is unknown do not change.
        """
        unit = next((u for u in UNITS if any(f"first_{u}" in gap for gap in gaps)), "")
        first, last = f"first_{unit}", f"last_{unit}"
        self._load_periods({gap[SUBJECT] for gap in gaps if gap.keys() >= {SUBJECT, first, last}})
        clipped = []
        for gap in gaps:
            period = self._periods.get(gap.get(SUBJECT, -1))
            if period is None or not gap.keys() >= {first, last}:
                clipped.append(gap)
                continue
            if period == NEVER_ACTIVE:
                continue
            start, end = self._convert_period(period, unit)
            since, until = max(gap[first], start), gap[last]
            if end is not None:
                until = min(until, end)
            if since <= until:
                clipped.append({**gap, first: since, last: until})
        return clipped

    def _convert_period(self, period: tuple[int, int | None], unit: Any) -> tuple[int, int | None]:
        """Return the first and the last unit of a period of epochs, partial days included."""
        chain = self.explorer.chain
        start, end = period
        if unit == "epoch":
            return start, None if end is None else end - 1
        if unit == "slot":
            size = chain.slots_per_epoch
            return start * size, None if end is None else end * size - 1
        first = chain.at("day", chain.time_of("epoch", start))
        if end is None:
            return first, None
        return first, chain.at("day", chain.time_of("epoch", max(end - 1, 0)))

    def _load_periods(self, indices: Collection[int]) -> None:
        """Request the active periods of those *indices* that are not known yet."""
        new = sorted(set(indices) - self._periods.keys())
        if not new:
            return
        self._periods |= dict.fromkeys(new)
        for index, activation, exit_, withdrawable, slashed in self._load_rows(new).iter_rows():
            if activation is None:
                self._periods[index] = NEVER_ACTIVE
            else:
                # A slashed validator pays penalties until its balance can be withdrawn.
                self._periods[index] = (activation, withdrawable if slashed else exit_)

    def _load_rows(self, indices: list[int]) -> pl.DataFrame:
        """Return the validators; no rows if the request fails."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MissingRows)
                if self.uses_v2:
                    subject = v2.validators(indices)
                    loaded: Any = v2.load_validators(subject, explorer=self.explorer)
                else:
                    loaded = load_validators(indices, explorer=self.explorer)
        except BeaconframesError:
            return pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.Int64))
        rows: pl.DataFrame = loaded if isinstance(loaded, pl.DataFrame) else to_polars(loaded)
        return rows.select(COLUMNS)
