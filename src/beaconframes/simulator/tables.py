"""The tables that the engine writes, and frames with their schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.simulator.drawn_hex import fit_stored_schema
from beaconframes.simulator.income import MISSED
from beaconframes.v1._blocks import Blocks
from beaconframes.v1.balance_history import BalanceHistory
from beaconframes.v1.epochs import Epochs
from beaconframes.v1.graffiti_wall import GraffitiWall
from beaconframes.v1.income_history import IncomeHistory
from beaconframes.v1.latest_state import LatestState
from beaconframes.v1.sync_committees import SyncCommittees
from beaconframes.v1.validators import Validators

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.calendar import Chain

SERVED = {
    table.table_name: fit_stored_schema(table.table_name, table.schema())
    for table in (
        Validators,
        IncomeHistory,
        BalanceHistory,
        LatestState,
        Epochs,
        Blocks,
        SyncCommittees,
        GraffitiWall,
    )
}
"""Schemas of tables that endpoints serve: the columns of the loaders, as they are stored."""

EVENTS = {
    "deposit_events": pl.Schema(
        {"slot": pl.Int64, "validator_index": pl.Int64, "amount_gwei": pl.Int64}
    ),
    "withdrawal_events": pl.Schema(
        {
            "withdrawal_index": pl.Int64,
            "slot": pl.Int64,
            "validator_index": pl.Int64,
            "amount_gwei": pl.Int64,
        }
    ),
    "fee_events": pl.Schema({"slot": pl.Int64(), "amount_wei": pl.Decimal(28, 0)}),
    "bls_change_events": pl.Schema({"slot": pl.Int64, "validator_index": pl.Int64}),
    "missed_attestation_events": pl.Schema(
        {"epoch": pl.Int64, "slot": pl.Int64, "validator_index": pl.Int64}
    ),
    "late_attestation_events": pl.Schema(
        {
            "epoch": pl.Int64,
            "slot": pl.Int64,
            "validator_index": pl.Int64,
            "inclusion_slot": pl.Int64,
        }
    ),
    "switch_events": pl.Schema(
        {"slot": pl.Int64, "validator_index": pl.Int64, "amount_gwei": pl.Int64}
    ),
    "withdrawal_request_events": pl.Schema(
        {"slot": pl.Int64, "validator_index": pl.Int64, "amount_gwei": pl.Int64}
    ),
    "rejected_request_events": pl.Schema(
        {"slot": pl.Int64, "validator_index": pl.Int64, "amount_gwei": pl.Int64}
    ),
    "manual_withdrawal_events": pl.Schema(
        {"slot": pl.Int64, "validator_index": pl.Int64, "request_slot": pl.Int64}
    ),
    "missed_reward_events": pl.Schema(
        {"epoch": pl.Int64, "validator_index": pl.Int64} | dict.fromkeys(MISSED, pl.Int64)
    ),
    "exit_events": pl.Schema({"slot": pl.Int64, "validator_index": pl.Int64}),
    "slashing_events": pl.Schema(
        {
            "slot": pl.Int64,
            "validator_index": pl.Int64,
            "kind": pl.String,
            "offence_slot": pl.Int64,
        }
    ),
}
"""Schemas of event tables, which explain balances and statuses. No endpoint serves them."""

SCHEMAS = {**SERVED, **EVENTS}


def build_frame(
    table: str, columns: Mapping[str, Any], *, chain: Chain | None = None
) -> pl.DataFrame:
    """Return rows of a table; *columns* may have any order and narrower types.

    With a *chain*, the ``time`` column is added: the start of the row's slot or epoch.
    """
    schema = SCHEMAS[table]
    rows = pl.DataFrame(columns)
    if chain is not None:
        unit = "slot" if "slot" in columns else "epoch"
        rows = rows.with_columns(time=chain.time_expr(unit, pl.col(unit)))  # type: ignore[arg-type]
    return rows.select(pl.col(name).cast(dtype) for name, dtype in schema.items())
