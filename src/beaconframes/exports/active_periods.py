"""Lives: what could not come, because a validator was not active yet or no more, is no gap."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.errors import BeaconframesError, MissingRows
from beaconframes.frames import to_polars

if TYPE_CHECKING:
    from collections.abc import Collection

    from beaconframes.client import Explorer

SUBJECT = "validator_index"
COLUMNS = (SUBJECT, "activation_epoch", "exit_epoch", "withdrawable_epoch", "slashed")
UNITS = ("epoch", "slot", "day")
NEVER = (0, 0)


class ActivePeriods:
    """From when to when validators were active, as the service tells; asked for once."""

    def __init__(self, explorer: Explorer, *, second: bool) -> None:
        """Ask *explorer*, by generation 2 if *second*: a request for a hundred validators."""
        self.explorer, self.second = explorer, second
        self._known: dict[int, tuple[int, int | None] | None] = {}

    def within(self, gaps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return *gaps* of epochs, slots or days as far as they are within the life of each.

        Of whom nobody knows when that was, the gaps stay.
        """
        unit = next((u for u in UNITS if any(f"first_{u}" in gap for gap in gaps)), "")
        first, last = f"first_{unit}", f"last_{unit}"
        self._ask({gap[SUBJECT] for gap in gaps if gap.keys() >= {SUBJECT, first, last}})
        found = []
        for gap in gaps:
            life = self._known.get(gap.get(SUBJECT, -1))
            if life is None or not gap.keys() >= {first, last}:
                found.append(gap)
                continue
            if life == NEVER:
                continue
            begins, ends = self._units(life, unit)
            since, until = max(gap[first], begins), gap[last]
            if ends is not None:
                until = min(until, ends)
            if since <= until:
                found.append({**gap, first: since, last: until})
        return found

    def _units(self, life: tuple[int, int | None], unit: Any) -> tuple[int, int | None]:
        """Return the first and the last unit of a life; a day that is partly in it is in it."""
        chain = self.explorer.chain
        begins, ends = life
        if unit == "epoch":
            return begins, None if ends is None else ends - 1
        if unit == "slot":
            size = chain.slots_per_epoch
            return begins * size, None if ends is None else ends * size - 1
        first = chain.at("day", chain.time_of("epoch", begins))
        if ends is None:
            return first, None
        return first, chain.at("day", chain.time_of("epoch", max(ends - 1, 0)))

    def _ask(self, indices: Collection[int]) -> None:
        new = sorted(set(indices) - self._known.keys())
        if not new:
            return
        self._known |= dict.fromkeys(new)
        for index, activation, exits, withdrawable, slashed in self._rows(new).iter_rows():
            if activation is None:
                self._known[index] = NEVER
            else:
                # Who was slashed pays penalties until the balance can be withdrawn.
                self._known[index] = (activation, withdrawable if slashed else exits)

    def _rows(self, indices: list[int]) -> pl.DataFrame:
        """Return what the service tells; nothing if it does not."""
        from beaconframes import v2
        from beaconframes.v1.validators import load_validators

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MissingRows)
                if self.second:
                    asked: Any = v2.load_validators(v2.validators(indices), explorer=self.explorer)
                else:
                    asked = load_validators(indices, explorer=self.explorer)
        except BeaconframesError:
            return pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.Int64))
        rows: pl.DataFrame = asked if isinstance(asked, pl.DataFrame) else to_polars(asked)
        return rows.select(COLUMNS)
