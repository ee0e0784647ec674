"""The tables that the engine writes, and frames with their schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.derive.balance_moves import AMOUNTS
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


def _ints(*names: str) -> pl.Schema:
    return pl.Schema(dict.fromkeys(names, pl.Int64))


EVENTS = {
    "deposit_events": AMOUNTS,
    "withdrawal_events": _ints("withdrawal_index", *AMOUNTS),
    "fee_events": pl.Schema({"slot": pl.Int64(), "amount_wei": pl.Decimal(28, 0)}),
    "bls_change_events": _ints("slot", "validator_index"),
    "missed_attestation_events": _ints("epoch", "slot", "validator_index"),
    "late_attestation_events": _ints("epoch", "slot", "validator_index", "inclusion_slot"),
    "switch_events": AMOUNTS,
    "withdrawal_request_events": AMOUNTS,
    "rejected_request_events": AMOUNTS,
    "manual_withdrawal_events": _ints("slot", "validator_index", "request_slot"),
    "missed_reward_events": _ints("epoch", "validator_index", *MISSED),
    "exit_events": _ints("slot", "validator_index"),
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
