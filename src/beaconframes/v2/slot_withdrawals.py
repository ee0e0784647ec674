"""Withdrawals of slots."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from beaconframes.client import Subjects, SubjectsOrSet, Values, loader
from beaconframes.endpoint import (
    ChainName,
    Cursor,
    Endpoint,
    Envelope,
    Finality,
    SlotSelector,
    ValidatorSelector,
    ValueFilter,
)
from beaconframes.schema import Count, Hex, Json, Slot, SlotTime, Table, Text, Wei
from beaconframes.v2._columns import Ordinal, Undocumented

TYPES = ("manual", "partial_sweep", "full_exit_sweep", "system")
SWEEPS = ("partial_sweep", "full_exit_sweep")


class SlotWithdrawals(Table):
    """Withdrawals of slots. One row per withdrawal."""

    slot = Slot(
        "Slot; null if it was requested by root and the response does not state it.",
        key=True,
        nullable=True,
        context=("request.slot.number", "range.slot.start"),
    )
    validator_index = Count("Validator.", key=True, nullable=True, wire="validator.index")
    type = Text(
        "manual, partial_sweep, full_exit_sweep or system; the service may add values.",
        key=True,
        optional=True,
    )
    nth = Ordinal(
        "Number among equal withdrawals (validator, type, slot), from 0; always 0 for a sweep.",
        key=True,
    )
    time = SlotTime("Start of the slot, UTC.")
    pubkey = Hex("BLS public key, 48 bytes.", wire="validator.public_key", size=48)
    amount_wei = Wei("Withdrawn amount.", wire="amount", text=True, minimum=0)
    status = Undocumented("Status of the withdrawal; its shape is not published.", optional=True)
    reject_reason = Undocumented(
        "Why a request was rejected; its shape is not published.", optional=True
    )
    stage_history = Json(
        "Stages in the queue, as JSON; their shape is not published.", optional=True
    )
    withdrawal_type = Text(
        "Kind of the withdrawal credentials: bls or execution_address.",
        wire="withdrawal_credentials.type",
        optional=True,
    )
    withdrawal_prefix = Hex(
        "First byte of the credentials.", wire="withdrawal_credentials.prefix", optional=True
    )
    withdrawal_credentials = Hex(
        "Withdrawal credentials, 32 bytes.", wire="withdrawal_credentials.credential", optional=True
    )
    withdrawal_address = Hex(
        "Withdrawal address.", wire="withdrawal_credentials.address", optional=True
    )
    block_root = Hex("Requested block root, if any.", context="request.slot.root")

    @classmethod
    def arrange(cls, frame: pl.DataFrame, first: str = "") -> pl.DataFrame:
        """Return *frame* sorted by key, every row once.

        ``nth`` is not on the wire. A sweep withdraws from a validator at most once per slot.
        Requests may do so several times, and are numbered in the order of the response.
        """
        unique = frame.unique(maintain_order=True)
        is_sweep = pl.col("type").is_in(SWEEPS).fill_null(value=False)
        number = pl.int_range(pl.len()).over("slot", "block_root", "validator_index", "type")
        nth = pl.when(is_sweep).then(0).otherwise(number)
        return super().arrange(unique.with_columns(nth=nth), first)


SLOT_WITHDRAWALS = Endpoint(
    "slot_withdrawals",
    route="POST /api/v2/ethereum/slot/withdrawals",
    table=SlotWithdrawals,
    parameters=(
        ChainName(),
        SlotSelector(SlotWithdrawals.slot),
        ValidatorSelector(
            SlotWithdrawals.validator_index,
            pubkey=SlotWithdrawals.pubkey,
            required=False,
            optional=True,
        ),
        ValueFilter("type_filter", SlotWithdrawals.type, TYPES),
    ),
    pagination=Cursor(),
    finality=Finality.AT_FINALITY,
    envelope=Envelope.V2,
)


@loader(SLOT_WITHDRAWALS)
def load_slot_withdrawals(
    slots: Subjects,
    validators: SubjectsOrSet | None = None,
    *,
    type_filter: str | Iterable[str] | None = None,
) -> Values:
    """Load the withdrawals of slots, one row per withdrawal, in wei.

    One slot per call and ten rows per request; a block pays at most 16. A slot without withdrawals
    has no rows. `beaconframes.load_slot_withdrawals` loads paid withdrawals in one request per
    slot, without their types.

    Parameters
    ----------
    slots
        Slots: one, or a list, range or Series of them; or block roots. ``"latest"`` and
        ``"finalized"`` are resolved to a number first.
    validators
        Only rows of these validators: indices, public keys, or a set; see `load_validators`.
        Default: all.
    type_filter
        Only these types: ``"manual"``, ``"partial_sweep"``, ``"full_exit_sweep"``, ``"system"``.
        Default: all.

    Returns
    -------
    polars.DataFrame
        Sorted by ``slot``, ``validator_index``, ``type``, ``nth``. Two identical records cannot be
        distinguished from a repeated one, and become one row.

    Notes
    -----
    ``POST /api/v2/ethereum/slot/withdrawals``. Final once the epoch of the slot is finalized.
    """
    return {"slots": slots, "validators": validators, "type_filter": type_filter}
