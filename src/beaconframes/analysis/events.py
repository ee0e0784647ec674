"""Deposits, withdrawals and consolidations by validator and by the epoch of the balance change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.analysis.engines import open_frame
from beaconframes.errors import UsageError
from beaconframes.frames import collect, drop_missing, list_column_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.calendar import Chain

_SLOTS = ("slot", "block_slot")
_AMOUNTS = ("amount_gwei", "amount_wei", "total_wei")
_KEYS = ["pubkey", "validator_index"]
_WEI_PER_GWEI = 10**9


def has_processing_time(deposits: IntoFrame) -> bool:
    """Return whether a frame has the slot or epoch in which its amounts moved balances."""
    return not {"epoch", *_SLOTS}.isdisjoint(list_column_names(deposits))


def select_event_amounts(
    frame: IntoFrame,
    chain: Chain,
    *,
    loader: str,
    subject: str = "validator_index",
    validators: IntoFrame | None = None,
) -> pl.DataFrame:
    """Select ``validator_index``, ``epoch`` and ``amount_gwei`` of events. One row per event.

    *frame* has the validator in the column *subject*, or a ``pubkey`` whose index *validators* has.
    ``epoch`` is that of the balance change. An event in slot s counts for epoch
    (s - 1) // slots_per_epoch, because balances are read after the block of the first slot. An
    event with an epoch but no slot moved balances at the end of that epoch.
    """
    names = list_column_names(frame)
    # Withdrawals with an index are paid in blocks. Their epoch is not always that of the change.
    times = _SLOTS if "withdrawal_index" in names else (*_SLOTS, "epoch")
    when = next((name for name in times if name in names), "slot")
    rows = read_amounts(frame, [when], loader=loader, subject=subject, validators=validators)
    epoch = pl.col(when) if when == "epoch" else (pl.col(when) - 1) // chain.slots_per_epoch
    return rows.select("validator_index", epoch.cast(pl.Int64).alias("epoch"), "amount_gwei")


def read_amounts(
    frame: IntoFrame,
    columns: Sequence[str],
    *,
    loader: str,
    subject: str = "validator_index",
    validators: IntoFrame | None = None,
) -> pl.DataFrame:
    """Read ``validator_index``, ``amount_gwei`` and *columns* of events; wei become gwei.

    Events that a reorganization removed, rejected withdrawals, and those of the type system, which
    pay nothing, are left out.
    """
    names = list_column_names(frame)
    amount = next((name for name in _AMOUNTS if name in names), "amount_gwei")
    by_pubkey = subject not in names and "pubkey" in names
    key = "pubkey" if by_pubkey else subject
    flags = [name for name in ("removed", "reject_reason", "type") if name in names]
    required = [key, amount, *columns]
    lazy = drop_missing(open_frame(frame, [*required, *flags], loader=loader), required)
    rows = collect(lazy)
    if "removed" in flags:
        rows = rows.filter(~pl.col("removed").fill_null(value=False))
    if "reject_reason" in flags:
        rows = rows.filter(pl.col("reject_reason").is_null())
    if "type" in flags:
        rows = rows.filter(pl.col("type").ne_missing("system"))
    if by_pubkey:
        rows = rows.join(_read_indices(validators, loader), on="pubkey", how="inner")
        subject = "validator_index"
    gwei = pl.col(amount)
    if amount.endswith("_wei"):
        gwei = pl.col(amount).cast(pl.Int128)
        if rows.select((gwei % _WEI_PER_GWEI != 0).any()).item():
            raise UsageError(
                f"{amount} of bf.{loader}(...) has fractions of a gwei",
                hint="Balances move by whole gwei: pass the frame as the loader returns it.",
            )
        gwei //= _WEI_PER_GWEI
    return rows.select(
        pl.col(subject).cast(pl.Int64).alias("validator_index"),
        *columns,
        gwei.cast(pl.Int64).alias("amount_gwei"),
    )


def _read_indices(validators: IntoFrame | None, loader: str) -> pl.DataFrame:
    if validators is None:
        raise UsageError(
            f"the frame of bf.{loader}(...) has public keys but no validator indices",
            hint="Pass validators=bf.load_validators(...) as well, which has the indices.",
        )
    return collect(open_frame(validators, _KEYS, loader="load_validators"))
