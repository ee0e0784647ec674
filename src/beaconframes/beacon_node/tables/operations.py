"""Tables of the operations in blocks: withdrawals, deposits, exits, slashings, requests."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from beaconframes.beacon_node.client.slot_blocks import ORPHANED
from beaconframes.beacon_node.tables.declaration import BLOCKS, NodeTable
from beaconframes.beacon_node.tables.frames import build_rows
from beaconframes.schema import Count, Gwei, Hex, Slot, Table, Text
from beaconframes.v1._execution_requests import DepositRequests
from beaconframes.v1.attester_slashings import AttesterSlashings
from beaconframes.v1.bls_changes import BlsChanges
from beaconframes.v1.proposer_slashings import ProposerSlashings
from beaconframes.v1.slot_deposits import SlotDeposits
from beaconframes.v1.slot_withdrawals import SlotWithdrawals
from beaconframes.v1.validator_withdrawals import ValidatorWithdrawals
from beaconframes.v1.voluntary_exits import VoluntaryExits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

    from beaconframes.beacon_node.client.signed_block import (
        Body,
        Header,
        IndexedAttestation,
        Signed,
    )
    from beaconframes.beacon_node.tables.epoch_data import EpochData

    Row = dict[str, Any]

_LARGEST: Final = 2**63 - 1


class BlobCommitments(Table):
    """Blob commitments of blocks. One row per block."""

    block_slot = Slot("Slot of the block.", key=True)
    block_root = Hex("Root of the block.", key=True, nullable=True)
    commitments_count = Count("Blob commitments included; 0 before Deneb.")


class ExecutionRequests(Table):
    """Requests for withdrawals and consolidations in blocks, valid or not. One row per request."""

    block_slot = Slot("Slot of the block.", key=True)
    kind = Text("withdrawal or consolidation.", key=True)
    request_index = Count("Position among the requests of the kind in the block.", key=True)
    source_address = Hex("Sender of the request.")
    pubkey = Hex("BLS public key of the validator.")
    target_pubkey = Hex("Public key of the target of a consolidation.", nullable=True)
    amount_gwei = Gwei("Requested amount; 0 is an exit. Null for a consolidation.", nullable=True)


def of_bodies(
    table: type[Table], unit: str, list_rows: Callable[[Body], Iterator[Row]]
) -> NodeTable:
    """Return the declaration of a *table* with rows of each block body.

    A row may leave out slot, epoch and root of its block. What orphaned blocks include is in the
    tables whose rows are identified by the block root.
    """
    with_orphans = "block_root" in table.key()

    def build(data: EpochData) -> pl.DataFrame:
        rows = []
        for slot in data.slots:
            if slot.block is None or (slot.status == ORPHANED and not with_orphans):
                continue
            place = {
                "slot": slot.slot,
                "block_slot": slot.slot,
                "epoch": data.spec.epoch_of(slot.slot),
                "block_root": slot.root,
            }
            rows += [place | row for row in list_rows(slot.block.message.body)]
        return build_rows(table, rows, data.spec.chain)

    return NodeTable(table, unit, BLOCKS, build)


def list_withdrawals(body: Body) -> Iterator[Row]:
    """Yield the withdrawals of a block."""
    payload = body.execution_payload
    yield from map(asdict, (payload.withdrawals if payload else None) or ())


def list_deposits(body: Body) -> Iterator[Row]:
    """Yield the deposits of a block; since Electra, blocks have requests instead."""
    for n, deposit in enumerate(body.deposits):
        # Its proof is JSON on the node, and text of a database in the service.
        yield {"block_index": n, **asdict(deposit.data)}


def list_deposit_requests(body: Body) -> Iterator[Row]:
    """Yield the deposit requests of a block, which exist since Electra."""
    requests = body.execution_requests
    for n, deposit in enumerate(requests.deposits if requests else ()):
        yield {"request_index": n, **asdict(deposit)}


def list_blob_commitments(body: Body) -> Iterator[Row]:
    """Yield the number of blob commitments of a block, which exist since Deneb."""
    yield {"commitments_count": len(body.blob_kzg_commitments or ())}


def list_execution_requests(body: Body) -> Iterator[Row]:
    """Yield the requests for withdrawals and consolidations of a block, since Electra."""
    if (requests := body.execution_requests) is not None:
        for n, withdrawal in enumerate(requests.withdrawals):
            yield {"kind": "withdrawal", "request_index": n, **asdict(withdrawal)}
        for n, consolidation in enumerate(requests.consolidations):
            yield {"kind": "consolidation", "request_index": n, **asdict(consolidation)}


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
        message = change.message
        # The specification requires that the old credentials are this hash of the key.
        digest = hashlib.sha256(bytes.fromhex(message.bls_pubkey[2:])).hexdigest()
        yield asdict(message) | {
            "bls_signature": change.signature,
            "withdrawal_credentials_0x00": f"0x00{digest[2:]}",
            "withdrawal_credentials_0x01": f"0x01{'00' * 11}{message.address[2:]}",
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


def _describe_header(prefix: str, header: Signed[Header]) -> Row:
    fields = asdict(header.message) | {"signature": header.signature}
    fields["slot"] = _limit(header.message.slot)
    return {f"{prefix}_{name}": value for name, value in fields.items()}


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


TABLES: Final = (
    of_bodies(AttesterSlashings, "block_slot", list_attester_slashings),
    of_bodies(ProposerSlashings, "block_slot", list_proposer_slashings),
    of_bodies(VoluntaryExits, "block_slot", list_voluntary_exits),
    of_bodies(SlotDeposits, "block_slot", list_deposits),
    of_bodies(DepositRequests, "block_slot", list_deposit_requests),
    of_bodies(BlobCommitments, "block_slot", list_blob_commitments),
    of_bodies(ExecutionRequests, "block_slot", list_execution_requests),
    of_bodies(SlotWithdrawals, "block_slot", list_withdrawals),
    of_bodies(ValidatorWithdrawals, "epoch", list_withdrawals),
    of_bodies(BlsChanges, "epoch", list_bls_changes),
)
