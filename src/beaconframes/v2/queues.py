"""The queues of the network: deposits, exits and withdrawals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.client import Values, loader
from beaconframes.endpoint import ChainName, Endpoint, Envelope, Shape
from beaconframes.errors import SchemaError
from beaconframes.schema import Count, Epoch, Json, Table, Text, UnixTime, Wei
from beaconframes.schema.decode_checked import parse_records
from beaconframes.v2._columns import FINALITY, split_fields

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import polars as pl

    from beaconframes.calendar import Chain
    from beaconframes.schema import EnvelopeContext


class Queues(Table):
    """The queues of the network. One row per response."""

    deposit_count = Count(
        "Waiting deposits for new validators; in the old shape, top-ups too.",
        wire="deposit_queue.deposit_count",
    )
    deposit_balance_wei = Wei(
        "Sum of these deposits; in the old shape, with top-ups.",
        wire="deposit_queue.deposit_balance",
        text=True,
        nullable=True,  # A node does not state it before Electra.
        minimum=0,
    )
    topup_count = Count(
        "Waiting deposits for existing validators; null in the old shape.",
        wire="deposit_queue.topup_count",
        optional=True,
    )
    topup_balance_wei = Wei(
        "Sum of these top-ups; null in the old shape.",
        wire="deposit_queue.topup_balance",
        text=True,
        optional=True,
        minimum=0,
    )
    deposit_processed_epoch = Epoch(
        "Estimated epoch of the last credit of both; null in the old shape.",
        wire="deposit_queue.estimated_processed_at.epoch",
        optional=True,
    )
    deposit_processed_time = UnixTime(
        "That estimate as time, UTC.",
        wire="deposit_queue.estimated_processed_at.timestamp",
        optional=True,
    )
    deposit_churn_wei = Wei(
        "Amount that the deposit queue credits per interval.",
        wire="deposit_queue.churn.amount",
        text=True,
        optional=True,
        minimum=0,
    )
    deposit_churn_seconds = Count(
        "Length of that interval.", wire="deposit_queue.churn.interval_seconds", optional=True
    )
    exit_count = Count("Validators waiting to exit.", wire="exit_queue.count")
    exit_balance_wei = Wei(
        "Sum of their balances.", wire="exit_queue.balance", text=True, nullable=True, minimum=0
    )
    exit_processed_epoch = Epoch(
        "Estimated epoch of the last exit; null in the old shape.",
        wire="exit_queue.estimated_processed_at.epoch",
        optional=True,
    )
    exit_processed_time = UnixTime(
        "That estimate as time, UTC.",
        wire="exit_queue.estimated_processed_at.timestamp",
        optional=True,
    )
    exit_churn_wei = Wei(
        "Amount that the exit queue releases per interval.",
        wire="exit_queue.churn.amount",
        text=True,
        optional=True,
        minimum=0,
    )
    exit_churn_seconds = Count(
        "Length of that interval.", wire="exit_queue.churn.interval_seconds", optional=True
    )
    manual_withdrawal_count = Count(
        "Waiting requested withdrawals; null in the old shape.",
        wire="manual_withdrawal_queue.count",
        optional=True,
    )
    manual_withdrawal_balance_wei = Wei(
        "Sum of these withdrawals; null in the old shape.",
        wire="manual_withdrawal_queue.balance",
        text=True,
        optional=True,
        minimum=0,
    )
    manual_withdrawal_processed_epoch = Epoch(
        "Estimated epoch of the last payment.",
        wire="manual_withdrawal_queue.estimated_processed_at.epoch",
        optional=True,
    )
    manual_withdrawal_processed_time = UnixTime(
        "That estimate as time, UTC.",
        wire="manual_withdrawal_queue.estimated_processed_at.timestamp",
        optional=True,
    )
    sweep_last_index = Count(
        "Last validator of the sweep; in the old shape only.",
        wire="withdrawal_sweep.last_swept_validator_index",
        optional=True,
    )
    sweep_delay_seconds = Count(
        "Estimated seconds of a full sweep; in the old shape only.",
        wire="withdrawal_sweep.estimated_sweep_delay",
        optional=True,
    )
    finality = Text(FINALITY, final_when=("finalized",), optional=True)
    more = Json("All other fields of the service, as JSON, such as further queues.", optional=True)

    @classmethod
    def decode(
        cls, pages: Iterable[bytes], chain: Chain, contexts: Sequence[EnvelopeContext] = ()
    ) -> pl.DataFrame:
        """Return the rows; the old shape is mapped to the columns of the new one."""
        epoch_seconds = chain.slots_per_epoch * chain.seconds_per_slot
        converted = (convert_to_new_shape(page, epoch_seconds) for page in pages)
        return super().decode(converted, chain, contexts)

    @classmethod
    def encode(
        cls,
        frame: pl.DataFrame,
        chain: Chain,
        *,
        without: Collection[str] = (),
        public: bool = False,
    ) -> bytes:
        """Return the rows in the new shape, whose documentation has no sweep."""
        old = {path for path in WIRE_PATHS if path.startswith("withdrawal_sweep.")}
        return super().encode(frame, chain, without={*without, *old, "more"}, public=public)


WIRE_PATHS = {path for column in Queues.columns for path in column.wire_paths} - {"more"}


def convert_to_new_shape(page: bytes, epoch_seconds: int) -> bytes:
    """Return a response in the new shape, with unknown fields under ``more``."""
    records = parse_records(Queues.spec, page)
    if not records:
        return b"[]"
    record = records[0]
    if len(records) > 1 or not isinstance(record, dict):
        raise SchemaError("queues is not an object")
    for name in ("deposit_queue", "exit_queue"):
        queue = record.get(name)
        if isinstance(queue, dict):
            convert_queue(queue, epoch_seconds)
    fields, rest = split_fields(record, WIRE_PATHS)
    return msgspec.json.encode({**fields, "more": rest or None})


def convert_queue(queue: dict[str, Any], epoch_seconds: int) -> None:
    """Convert one queue from the old shape, which omits the interval of the churn: an epoch."""
    if isinstance(queue.get("estimated_processed_at"), int):
        queue["estimated_processed_at"] = {"timestamp": queue["estimated_processed_at"]}
    if isinstance(queue.get("churn"), str):
        queue["churn"] = {"amount": queue["churn"], "interval_seconds": epoch_seconds}
    if "deposit_count" in queue and "balance" in queue:
        queue["deposit_balance"] = queue.pop("balance")


QUEUES = Endpoint(
    "queues",
    route="POST /api/v2/ethereum/queues",
    table=Queues,
    parameters=(ChainName(),),
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
    accept="application/vnd.beaconcha.in.v2.1+json",
)


@loader(QUEUES)
def load_queues() -> Values:
    """Load the queues of the network (deposits, exits, withdrawals), one row, in wei.

    Returns
    -------
    polars.DataFrame
        One row. Times are estimates of the service from the current churn, for the last entry of
        each queue. ``deposit_balance_wei`` and ``topup_balance_wei`` enter; ``exit_balance_wei``
        and ``manual_withdrawal_balance_wei`` leave.

    Notes
    -----
    ``POST /api/v2/ethereum/queues``, version 2.1; the earlier shape is decoded too. Queues without
    documentation, such as consolidations, are in ``more``. Never final.
    """
    return {}
