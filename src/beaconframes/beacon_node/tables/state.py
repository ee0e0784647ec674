"""Tables of a state: validators, their queue, sync committees, and the head of the chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import polars as pl
from msgspec import Struct

from beaconframes.beacon_node.client.signed_block import Amount, Pubkey
from beaconframes.beacon_node.client.validator_rows import EPOCHS
from beaconframes.beacon_node.tables.declaration import HEAD, NOTHING, NodeTable
from beaconframes.beacon_node.tables.frames import build_frame, build_rows
from beaconframes.consensus.spec import FAR_FUTURE_EPOCH
from beaconframes.derive.validator_tables import find_statuses
from beaconframes.errors import ResponseError
from beaconframes.v1.latest_state import LatestState
from beaconframes.v1.sync_committees import SyncCommittees
from beaconframes.v1.validator_queue import ValidatorQueue
from beaconframes.v1.validators import Validators

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from beaconframes.beacon_node.tables.epoch_data import EpochData
    from beaconframes.consensus.spec import Spec
    from beaconframes.consensus.state import BeaconState


class _PendingDeposit(Struct, gc=False):
    pubkey: Pubkey
    amount: Amount


def read_state_validators(state: BeaconState) -> pl.DataFrame:
    """Return all validators of a decoded state, in the columns of `read_validators`."""
    return pl.DataFrame(
        {
            "validator_index": np.arange(len(state.balances)),
            "pubkey": encode_hex(state.pubkeys),
            "slashed": state.slashed,
            "balance_gwei": state.balances,
            "effective_balance_gwei": state.effective_balances,
            "withdrawal_credentials": encode_hex(state.withdrawal_credentials),
            "activation_eligibility_epoch": state.activation_eligibility_epochs,
            "activation_epoch": state.activation_epochs,
            "exit_epoch": state.exit_epochs,
            "withdrawable_epoch": state.withdrawable_epochs,
        }
    )


def encode_hex(rows: NDArray[np.uint8]) -> list[str]:
    """Return each row of bytes as text that starts with 0x."""
    text, width = rows.tobytes().hex(), 2 * rows.shape[1]
    return ["0x" + text[start : start + width] for start in range(0, len(text), width)]


def build_validators(
    spec: Spec,
    epoch: int,
    validators: pl.DataFrame,
    *,
    last_attestations: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the table of *validators* in *epoch*, one row per validator.

    Parameters
    ----------
    spec, epoch
        The chain, and the epoch of the state.
    validators
        The result of `read_validators` or `read_state_validators`.
    last_attestations
        Columns ``validator_index`` and ``last_attestation_slot``, null for validators without an
        attestation. Without this, statuses are ``active`` instead of ``active_online``.
    """
    frame = validators.sort("validator_index")
    attested = None
    if last_attestations is not None:
        frame = frame.join(last_attestations, "validator_index", how="left", maintain_order="left")
        attested = frame["last_attestation_slot"].fill_null(0).to_numpy()
    statuses = find_statuses(
        epoch,
        slashed=frame["slashed"].to_numpy(),
        eligibility=frame["activation_eligibility_epoch"].to_numpy(),
        activation=frame["activation_epoch"].to_numpy(),
        exit_epoch=frame["exit_epoch"].to_numpy(),
        attested=attested,
    )
    frame = frame.with_columns(
        pl.col(name).replace(FAR_FUTURE_EPOCH, None) for name in EPOCHS
    ).with_columns(status=pl.Series(statuses, dtype=pl.String))
    return build_frame(Validators, frame.to_dict(), spec.chain)


def build_validator_queue(
    spec: Spec, epoch: int, validators: pl.DataFrame, pending_deposits: Any = None
) -> pl.DataFrame:
    """Return the entry and the exit queue, one row.

    *validators* are all of them; *pending_deposits* is the JSON of the route of that name, or the
    array of a decoded state. Before Electra it is ignored: validators wait, not deposits, and the
    amounts are null. Since Electra it is required for the entry queue.
    """
    exits = pl.col("exit_epoch")
    exiting = (exits > epoch) & (exits < FAR_FUTURE_EPOCH)
    active = (pl.col("activation_epoch") <= epoch) & (exits > epoch)
    is_waiting = (pl.col("activation_epoch") > epoch) & (
        pl.col("activation_eligibility_epoch") < FAR_FUTURE_EPOCH
    )
    row = validators.select(
        validators_count=active.sum(),
        entering_count=is_waiting.sum(),
        exiting_count=exiting.sum(),
        exiting_balance_gwei=pl.col("effective_balance_gwei").filter(exiting).sum(),
    ).row(0, named=True)
    if epoch < spec.fork_epochs.get("electra", FAR_FUTURE_EPOCH):
        row["exiting_balance_gwei"] = None
    else:
        deposits = _read_deposits(pending_deposits)
        is_new = ~deposits["pubkey"].is_in(validators["pubkey"].implode())
        row["entering_count"] = deposits.filter(is_new)["pubkey"].n_unique()
        row["entering_balance_gwei"] = deposits["amount_gwei"].sum()
    return build_rows(ValidatorQueue, [row], spec.chain)


def _read_deposits(pending: Any) -> pl.DataFrame:
    """Return key and amount of pending deposits, from JSON or from the array of a state."""
    if isinstance(pending, np.ndarray):
        pubkeys, amounts = encode_hex(pending["pubkey"]), pending["amount"]
    else:
        try:
            deposits = msgspec.convert(pending, list[_PendingDeposit], strict=False)
        except msgspec.ValidationError as error:
            raise ResponseError(f"the pending deposits of the node are invalid: {error}") from None
        pubkeys = [each.pubkey.lower() for each in deposits]
        amounts = np.array([each.amount for each in deposits], np.int64)
    return pl.DataFrame({"pubkey": pl.Series(pubkeys, dtype=pl.String), "amount_gwei": amounts})


def build_latest_state(
    spec: Spec,
    *,
    current_slot: int,
    last_proposed_slot: int,
    finalized_epoch: int,
    is_syncing: bool,
) -> pl.DataFrame:
    """Return the head of the chain, one row. A node has no exchange rates: they are null."""
    epoch = spec.epoch_of(current_slot)
    row = {
        "current_slot": current_slot,
        "last_proposed_slot": last_proposed_slot,
        "current_epoch": epoch,
        "current_finalized_epoch": finalized_epoch,
        "finality_delay": epoch - finalized_epoch,
        "syncing": is_syncing,
    }
    return build_rows(LatestState, [row], spec.chain)


def build_members(data: EpochData) -> pl.DataFrame:
    """Return the seats of the sync committee in an epoch, one row per seat."""
    spec, members = data.spec, data.reader.sync_committee(data.epoch)
    length = spec.epochs_per_sync_committee_period
    period = data.epoch // length
    # The first committee began with the fork, which may be later than its period.
    first = max(period * length, spec.fork_epochs["altair"])
    return build_frame(
        SyncCommittees,
        {
            "period": np.full(len(members), period),
            "seat": np.arange(len(members)),
            "validator_index": members,
            "start_epoch": np.full(len(members), first),
            "end_epoch": np.full(len(members), (period + 1) * length - 1),
        },
        spec.chain,
    )


TABLES: Final = (
    NodeTable(SyncCommittees, "period", (("ssz",), ("duties",)), build_members),
    NodeTable(Validators, HEAD, NOTHING),
    NodeTable(LatestState, HEAD, NOTHING),
    NodeTable(ValidatorQueue, HEAD, (("pending",),)),
)
