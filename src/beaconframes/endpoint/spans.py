"""Spans of time in a JSON body: the ends of a range in Unix seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.calendar import resolve_span
from beaconframes.endpoint.parameter import Batch, Fields, Parameter, Refused, View, Wanted
from beaconframes.endpoint.resolving import whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column

LAST_SECOND = 2**31 - 1
"""What the service takes for the end where none is given."""


@dataclass(frozen=True)
class TimestampsIn(Parameter):
    """The slots of a span of time, all of it at once; of these, the service tells what is final.

    The end is always sent, though it need not be: an open one would move from page to page.
    ``column`` is where the rows say their slot, if they do.
    """

    column: Column | None = None

    args = ("since", "until")

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the one span; left out, it is everything until now."""
        for bound in (values["since"], values["until"]):
            if isinstance(bound, int) and not isinstance(bound, bool) and bound >= 0:
                chain_head.refuse_future("slot", bound)
        span = resolve_span(
            values["since"],
            values["until"],
            unit="slot",
            chain=chain_head.chain,
            latest=lambda: chain_head.latest("slot"),
            now=chain_head.now,
            default_until=lambda: running(chain_head),
        )
        start, after = (chain_head.chain.time_of("slot", n) for n in (span.first, span.last + 1))
        seconds = {"start": int(start.timestamp()), "end": int(after.timestamp()) - 1}
        slots = range(span.first, span.last + 1)
        wanted = () if self.column is None else (Wanted({self.column.name: slots}, every=False),)
        return [Batch({"range": {"timestamp": seconds}}, wanted)]

    def slots(self, fields: Fields, view: View) -> tuple[int, int]:
        """Return the first and the last slot that a request selects, or refuse it."""
        asked = fields.get("range") or {}
        bounds = asked.get("timestamp", {}) if isinstance(asked, dict) else None
        if not isinstance(bounds, dict) or set(asked) - {"timestamp"}:
            raise Refused("range must have a timestamp, and nothing else")
        start, end = bounds.get("start", 0), bounds.get("end", LAST_SECOND)
        if not (whole(start) and whole(end) and start <= end <= LAST_SECOND):
            raise Refused("range.timestamp must have a start, and an end that is not before it")
        genesis, length = int(view.chain.genesis.timestamp()), view.chain.seconds_per_slot
        last = view.head.latest("slot", view.chain, finalized=True)
        first = max(-((genesis - start) // length), 0)
        return first, max(min((end - genesis) // length, last), first - 1)

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the span's slots."""
        return rows.filter(pl.col("slot").is_between(*self.slots(fields, view)))


def running(chain_head: ChainHead) -> int:
    """Return the slot that is running, by the clock if that tells."""
    if chain_head.is_live or chain_head.known is not None:
        return chain_head.chain.at("slot", chain_head.now())
    return chain_head.latest("slot")
