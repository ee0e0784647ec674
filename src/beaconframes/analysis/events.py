"""Amounts of deposits, withdrawals and consolidations by validator and epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import narwhals.stable.v2 as nw

from beaconframes.analysis.engines import open_frame_like
from beaconframes.errors import UsageError
from beaconframes.frames import map_rows

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.analysis.engines import Lazy
    from beaconframes.calendar import Chain

_WHEN = ("epoch", "slot", "block_slot")
_KEYS = ["pubkey", "validator_index"]


def select_event_amounts(
    frame: IntoFrame,
    like: Lazy,
    chain: Chain,
    *,
    loader: str,
    subject: str = "validator_index",
    validators: IntoFrame | None = None,
) -> Lazy:
    """Select ``validator_index``, ``epoch`` and ``amount_gwei`` of events. One row per event.

    *frame* has an epoch or a slot, and the validator in the column *subject*, or a ``pubkey`` whose
    index *validators* has.
    """
    names = nw.from_native(cast("Any", frame)).collect_schema().names()
    when = next((name for name in _WHEN if name in names), "slot")
    by_pubkey = subject not in names and "pubkey" in names
    rows = open_frame_like(
        frame, ["pubkey" if by_pubkey else subject, when, "amount_gwei"], loader=loader, like=like
    )
    if by_pubkey:
        if validators is None:
            raise UsageError(
                f"the frame of bf.{loader}(...) has public keys but no validator indices",
                hint="Pass validators=bf.load_validators(...) as well, which has the indices.",
            )
        pubkeys = open_frame_like(validators, _KEYS, loader="load_validators", like=like)
        rows = rows.join(pubkeys, on="pubkey", how="inner").rename({"validator_index": subject})
    epoch = nw.col(when) if when == "epoch" else nw.col(when) // chain.slots_per_epoch
    return map_rows(
        rows,
        lambda part: part.select(
            nw.col(subject).cast(nw.Int64).alias("validator_index"),
            epoch.cast(nw.Int64).alias("epoch"),
            nw.col("amount_gwei").cast(nw.Int64),
        ),
    )
