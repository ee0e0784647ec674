"""Tables of the operations in blocks: withdrawals, deposits, exits, slashings, BLS changes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from beaconframes.beacon_node.client.slot_blocks import ORPHANED
from beaconframes.beacon_node.tables.frames import build_frame
from beaconframes.beacon_node.tables.income_tables import BlobCommitments, ExecutionRequests
from beaconframes.v1._execution_requests import DepositRequests
from beaconframes.v1.attester_slashings import AttesterSlashings
from beaconframes.v1.bls_changes import BlsChanges
from beaconframes.v1.proposer_slashings import ProposerSlashings
from beaconframes.v1.slot_deposits import SlotDeposits
from beaconframes.v1.slot_withdrawals import SlotWithdrawals
from beaconframes.v1.validator_withdrawals import ValidatorWithdrawals
from beaconframes.v1.voluntary_exits import VoluntaryExits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import polars as pl

    from beaconframes.beacon_node.client.signed_block import (
        Body,
        DepositData,
        IndexedAttestation,
        SignedHeader,
    )
    from beaconframes.beacon_node.client.slot_blocks import SlotBlock
    from beaconframes.consensus.spec import Spec
    from beaconframes.schema import Table

    Row = dict[str, Any]

_LARGEST: Final = 2**63 - 1


def build_operation_tables(spec: Spec, slots: Sequence[SlotBlock]) -> dict[str, pl.DataFrame]:
    """Return the tables of the operations in *slots*, by name."""
    return {
        table.table_name: _build_table(spec, table, list_rows, slots)
        for table, list_rows in _LISTS.items()
    }


def _build_table(
    spec: Spec,
    table: type[Table],
    list_rows: Callable[[Body], Iterator[Row]],
    slots: Sequence[SlotBlock],
) -> pl.DataFrame:
    """Return the rows of a *table*: those of each body, with slot, epoch and root of the block.

    What orphaned blocks include is in the tables whose rows are identified by the block root.
    """
    names = table.schema().names()
    with_orphans = "block_root" in table.key()
    rows = []
    for slot in slots:
        if slot.block is None or (slot.status == ORPHANED and not with_orphans):
            continue
        place = {
            "slot": slot.slot,
            "block_slot": slot.slot,
            "epoch": spec.epoch_of(slot.slot),
            "block_root": slot.root,
        }
        rows += [place | row for row in list_rows(slot.block.message.body)]
    columns = {name: [row[name] for row in rows] for name in names if name != "time"}
    return build_frame(table, columns, spec.chain)


def list_withdrawals(body: Body) -> Iterator[Row]:
    """Yield the withdrawals of a block."""
    payload = body.execution_payload
    for withdrawal in (payload.withdrawals if payload else None) or ():
        yield {
            "withdrawal_index": withdrawal.index,
            "validator_index": withdrawal.validator_index,
            "address": withdrawal.address,
            "amount_gwei": withdrawal.amount,
        }


def list_deposits(body: Body) -> Iterator[Row]:
    """Yield the deposits of a block; since Electra, blocks have requests instead."""
    for n, deposit in enumerate(body.deposits):
        # The proof is JSON on the node, and text of a database in the service.
        yield {"block_index": n, "proof": None, **_describe_deposit(deposit.data)}


def list_deposit_requests(body: Body) -> Iterator[Row]:
    """Yield the deposit requests of a block, which exist since Electra."""
    requests = body.execution_requests
    for n, deposit in enumerate(requests.deposits if requests else ()):
        yield {"request_index": n, **_describe_deposit(deposit)}


def list_blob_commitments(body: Body) -> Iterator[Row]:
    """Yield the number of blob commitments of a block, which exist since Deneb."""
    yield {"commitments_count": len(body.blob_kzg_commitments or ())}


def list_execution_requests(body: Body) -> Iterator[Row]:
    """Yield the requests for withdrawals and consolidations of a block, since Electra."""
    requests = body.execution_requests
    for n, withdrawal in enumerate(requests.withdrawals if requests else ()):
        yield {
            "kind": "withdrawal",
            "request_index": n,
            "source_address": withdrawal.source_address,
            "pubkey": withdrawal.validator_pubkey,
            "target_pubkey": None,
            "amount_gwei": withdrawal.amount,
        }
    for n, consolidation in enumerate(requests.consolidations if requests else ()):
        yield {
            "kind": "consolidation",
            "request_index": n,
            "source_address": consolidation.source_address,
            "pubkey": consolidation.source_pubkey,
            "target_pubkey": consolidation.target_pubkey,
            "amount_gwei": None,
        }


def _describe_deposit(deposit: DepositData) -> Row:
    return {
        "pubkey": deposit.pubkey,
        "withdrawal_credentials": deposit.withdrawal_credentials,
        "amount_gwei": deposit.amount,
        "signature": deposit.signature,
    }


def list_voluntary_exits(body: Body) -> Iterator[Row]:
    """Yield the voluntary exits of a block."""
    for n, voluntary_exit in enumerate(body.voluntary_exits):
        yield {
            "block_index": n,
            "epoch": _limit(voluntary_exit.message.epoch),
            "validator_index": voluntary_exit.message.validator_index,
            "signature": voluntary_exit.signature,
        }


def list_bls_changes(body: Body) -> Iterator[Row]:
    """Yield the changes of withdrawal credentials of a block, which exist since Capella."""
    for change in body.bls_to_execution_changes or ():
        pubkey, address = change.message.from_bls_pubkey, change.message.to_execution_address
        # The specification requires that the old credentials are this hash of the key.
        digest = hashlib.sha256(bytes.fromhex(pubkey[2:])).hexdigest()
        yield {
            "validator_index": change.message.validator_index,
            "bls_pubkey": pubkey,
            "bls_signature": change.signature,
            "address": address,
            "withdrawal_credentials_0x00": f"0x00{digest[2:]}",
            "withdrawal_credentials_0x01": f"0x01{'00' * 11}{address[2:]}",
        }


def list_proposer_slashings(body: Body) -> Iterator[Row]:
    """Yield the proposer slashings of a block."""
    for n, slashing in enumerate(body.proposer_slashings):
        yield {
            "block_index": n,
            "proposer_index": slashing.signed_header_1.message.proposer_index,
            **_describe_header("header1", slashing.signed_header_1),
            **_describe_header("header2", slashing.signed_header_2),
        }


def _describe_header(prefix: str, header: SignedHeader) -> Row:
    message = header.message
    return {
        f"{prefix}_slot": _limit(message.slot),
        f"{prefix}_parent_root": message.parent_root,
        f"{prefix}_state_root": message.state_root,
        f"{prefix}_body_root": message.body_root,
        f"{prefix}_signature": header.signature,
    }


def list_attester_slashings(body: Body) -> Iterator[Row]:
    """Yield the attester slashings of a block."""
    for n, slashing in enumerate(body.attester_slashings):
        yield {
            "block_index": n,
            **_describe_vote("attestation1", slashing.attestation_1),
            **_describe_vote("attestation2", slashing.attestation_2),
        }


def _describe_vote(prefix: str, attestation: IndexedAttestation) -> Row:
    data = attestation.data
    return {
        f"{prefix}_slot": _limit(data.slot),
        f"{prefix}_index": _limit(data.index),
        f"{prefix}_indices": attestation.attesting_indices,
        f"{prefix}_beacon_block_root": data.beacon_block_root,
        f"{prefix}_source_epoch": _limit(data.source.epoch),
        f"{prefix}_source_root": data.source.root,
        f"{prefix}_target_epoch": _limit(data.target.epoch),
        f"{prefix}_target_root": data.target.root,
        f"{prefix}_signature": attestation.signature,
    }


def _limit(number: int) -> int | None:
    """Return a number that any validator can sign; None if no column of 64 bits holds it."""
    return number if number <= _LARGEST else None


_LISTS: Final[Mapping[type[Table], Callable[[Body], Iterator[Row]]]] = {
    ValidatorWithdrawals: list_withdrawals,
    SlotWithdrawals: list_withdrawals,
    SlotDeposits: list_deposits,
    DepositRequests: list_deposit_requests,
    BlobCommitments: list_blob_commitments,
    ExecutionRequests: list_execution_requests,
    VoluntaryExits: list_voluntary_exits,
    BlsChanges: list_bls_changes,
    ProposerSlashings: list_proposer_slashings,
    AttesterSlashings: list_attester_slashings,
}
