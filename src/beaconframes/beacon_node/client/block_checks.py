"""Checks of a signed block: its fork, its sizes and its time."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from beaconframes.beacon_node.client.signed_block import LARGEST_WEI, SignedBlock
from beaconframes.errors import ResponseError

if TYPE_CHECKING:
    from beaconframes.consensus.spec import Spec

_ADDED_BY_FORK: Final = (
    ("altair", "message.body.sync_aggregate"),
    ("bellatrix", "message.body.execution_payload"),
    ("capella", "message.body.execution_payload.withdrawals"),
    ("capella", "message.body.bls_to_execution_changes"),
    ("deneb", "message.body.blob_kzg_commitments"),
    ("electra", "message.body.execution_requests"),
)


def parse_block(spec: Spec, slot: int, data: Any) -> SignedBlock:
    """Return the block of *slot*, checked against the fork of the slot.

    *data* is the parsed JSON of ``/eth/v2/beacon/blocks/{slot}``.

    Raises
    ------
    ResponseError
        A field is missing, has another type, or contradicts the slot; names slot and field.
    """
    try:
        block = msgspec.convert(data, SignedBlock, strict=False)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise build_error(slot, str(error).replace("`$.", "`")) from None
    if block.message.slot != slot:
        raise build_error(slot, f"message.slot is {block.message.slot}")
    _check_fork(spec, slot, block)
    _check_sizes(spec, slot, block)
    _check_time(spec, slot, block)
    return block


def build_error(slot: int, detail: str) -> ResponseError:
    """Return the error for an invalid block of *slot*."""
    return ResponseError(
        f"the node's block of slot {slot} is invalid: {detail}",
        hint="Check that the node is synchronized and follows the right chain",
    )


def _check_fork(spec: Spec, slot: int, block: SignedBlock) -> None:
    """Raise ResponseError unless the block has all fields of its fork."""
    epoch = spec.epoch_of(slot)
    for fork, field in _ADDED_BY_FORK:
        is_active = epoch >= spec.fork_epochs.get(fork, epoch + 1)
        if is_active and attrgetter(field)(block) is None:
            raise build_error(slot, f"{field} is missing; {fork} added it")
    if epoch >= spec.fork_epochs.get("electra", epoch + 1):
        for n, attestation in enumerate(block.message.body.attestations):
            if attestation.committee_bits is None:
                field = f"message.body.attestations[{n}].committee_bits"
                raise build_error(slot, f"{field} is missing; electra added it")


def _check_sizes(spec: Spec, slot: int, block: SignedBlock) -> None:
    """Raise ResponseError for bits of another committee size, or a fee that no column holds."""
    body = block.message.body
    if body.sync_aggregate is not None:
        bytes_count = len(body.sync_aggregate.sync_committee_bits) // 2 - 1
        if bytes_count != -(-spec.sync_committee_size // 8):
            raise build_error(
                slot,
                f"message.body.sync_aggregate.sync_committee_bits has {bytes_count} bytes, "
                f"but the sync committee has {spec.sync_committee_size} seats",
            )
    payload = body.execution_payload
    if payload is not None and payload.base_fee_per_gas > LARGEST_WEI:
        field = "message.body.execution_payload.base_fee_per_gas"
        raise build_error(slot, f"{field} is {payload.base_fee_per_gas}")


def _check_time(spec: Spec, slot: int, block: SignedBlock) -> None:
    """Raise ResponseError for a payload of another time than the slot: the genesis is wrong."""
    payload, start = block.message.body.execution_payload, spec.chain.time_of("slot", slot)
    # Before the Merge, payloads are empty.
    if payload is not None and payload.timestamp not in (0, int(start.timestamp())):
        raise build_error(
            slot,
            f"message.body.execution_payload.timestamp is {payload.timestamp}, but the slot begins "
            f"at {int(start.timestamp())} by the node's genesis time, {spec.genesis_time}",
        )
