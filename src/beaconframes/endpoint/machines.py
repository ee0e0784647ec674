"""Selectors of what machines push: which machines, and when. They know no chain."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.calendar import instants
from beaconframes.endpoint.identifiers import cut, each
from beaconframes.endpoint.parameter import Batch, Fields, Parameter, Refused, View
from beaconframes.endpoint.resolving import whole
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column

LAST_SECOND = 2**31 - 1
"""The end that the service takes when none is given."""


@dataclass(frozen=True)
class MachinesIn(Parameter):
    """Some machines by name; all of them when none is named."""

    column: Column

    args = ("machines",)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the names, each once."""
        asked = values["machines"]
        names = [] if asked is None else list(dict.fromkeys(each(asked)))
        for name in names:
            if not isinstance(name, str) or not name:
                raise UsageError(f"machines={cut(name)} is no name of a machine")
        return [Batch({"machines": names} if names else {})]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the machines."""
        names = fields.get("machines") or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise Refused("machines must be a list of names")
        return rows.filter(pl.col(self.column.name).is_in(names)) if names else rows


@dataclass(frozen=True)
class Between(Parameter):
    """Instants from one to another, both included; left out, all there are."""

    column: Column

    args = ("since", "until")

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the seconds that are asked for; no range for all of them."""
        since, until = values["since"], values["until"]
        if since is None and until is None:
            return [Batch()]
        start = 0 if since is None else second("since", since, last=False)
        end = LAST_SECOND if until is None else second("until", until, last=True)
        if start > end:
            raise UsageError(f"since={cut(since)} is after until={cut(until)}")
        return [Batch({"range": {"timestamp": {"start": start, "end": end}}})]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows between the instants."""
        asked = fields.get("range", {"timestamp": {}})
        bounds = asked.get("timestamp") if isinstance(asked, dict) else None
        if not isinstance(bounds, dict):
            raise Refused("range must have a timestamp")
        start, end = bounds.get("start", 0), bounds.get("end", LAST_SECOND)
        if not whole(start) or not whole(end) or start > end:
            raise Refused("range.timestamp must have a start and an end")
        return rows.filter(pl.col(self.column.name).dt.epoch("s").is_between(start, end))


def second(argument: str, moment: Any, *, last: bool) -> int:
    """Return the first or the *last* second that a moment means."""

    def now() -> datetime:
        # A machine's clock is that of its user, whatever the chain's says.
        return datetime.now(UTC)

    return int(instants(argument, moment, now)[last].timestamp())
