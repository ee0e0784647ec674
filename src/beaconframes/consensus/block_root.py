"""The root of a beacon block: the SSZ hash tree root of its JSON, field by field.

A block that a node altered, or a field that it lost, has another root than the chain states.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from beaconframes.consensus.registry import decode_hex
from beaconframes.consensus.spec import is_since
from beaconframes.errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beaconframes.consensus.spec import Spec

    Hasher: TypeAlias = Callable[[Any], bytes]

CHUNK: Final = 32
DEPTH_LIMIT: Final = 64
ZERO_ROOTS: Final = [bytes(CHUNK)]
"""The root of an empty tree, by depth."""
for _ in range(DEPTH_LIMIT):
    ZERO_ROOTS.append(sha256(2 * ZERO_ROOTS[-1]).digest())

MAX_PROPOSER_SLASHINGS: Final = 16
MAX_ATTESTER_SLASHINGS: Final = 2
MAX_ATTESTER_SLASHINGS_ELECTRA: Final = 1
MAX_ATTESTATIONS: Final = 128
MAX_ATTESTATIONS_ELECTRA: Final = 8
MAX_DEPOSITS: Final = 16
MAX_VOLUNTARY_EXITS: Final = 16
MAX_BLS_TO_EXECUTION_CHANGES: Final = 16
MAX_CONSOLIDATION_REQUESTS_PER_PAYLOAD: Final = 2
MAX_VALIDATORS_PER_COMMITTEE: Final = 2048
MAX_EXTRA_DATA_BYTES: Final = 32
MAX_BYTES_PER_TRANSACTION: Final = 2**30
MAX_TRANSACTIONS_PER_PAYLOAD: Final = 2**20
DEPOSIT_PROOF_LENGTH: Final = 33
"""Limits that the presets mainnet and minimal share."""


def compute_block_root(spec: Spec, message: Mapping[str, Any]) -> str:
    """Return the root of a block, as text that starts with 0x.

    *message* is that of a signed block, as ``/eth/v2/beacon/blocks/{block_id}`` states it.

    Raises
    ------
    ResponseError
        A field is missing, or has no value of its type.
    """
    slot = int(message["slot"])
    hash_block = _build_block(spec, spec.fork_at(spec.epoch_of(slot)))
    try:
        return "0x" + hash_block(message).hex()
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ResponseError(
            f"the block of slot {slot} has no root: {type(error).__name__} {error}",
            hint="A field of the block is missing or invalid. Update the client",
        ) from None


def merkleize(data: bytes, limit: int) -> bytes:
    """Return the root of a tree over the chunks of *data*, with room for *limit* chunks."""
    depth, level = (limit - 1).bit_length(), 0
    if not data:
        return ZERO_ROOTS[depth]
    layer = data + bytes(-len(data) % CHUNK)
    while len(layer) > CHUNK:
        if len(layer) % (2 * CHUNK):
            layer += ZERO_ROOTS[level]
        layer = b"".join(
            [sha256(layer[n : n + 2 * CHUNK]).digest() for n in range(0, len(layer), 2 * CHUNK)]
        )
        level += 1
    for zero in ZERO_ROOTS[level:depth]:
        layer = sha256(layer + zero).digest()
    return layer


def _hash_uint(value: Any) -> bytes:
    """Return the root of an integer of 64 or 256 bits."""
    return int(value).to_bytes(CHUNK, "little")


def _count_chunks(size: int) -> int:
    return -(-size // CHUNK)


def _mix_in_length(root: bytes, length: int) -> bytes:
    return sha256(root + length.to_bytes(CHUNK, "little")).digest()


def _hash_bytes(text: str) -> bytes:
    """Return the root of bytes of a fixed size, also of a vector of bits."""
    data = decode_hex(text)
    return merkleize(data, _count_chunks(len(data)))


def _build_byte_list(limit: int) -> Hasher:
    def hash_list(text: str) -> bytes:
        data = decode_hex(text)
        return _mix_in_length(merkleize(data, _count_chunks(limit)), len(data))

    return hash_list


def _build_bit_list(limit: int) -> Hasher:
    def hash_list(text: str) -> bytes:
        bits = int.from_bytes(decode_hex(text), "little")
        length = bits.bit_length() - 1  # The highest bit marks the end.
        data = (bits ^ 1 << length).to_bytes(-(-length // 8), "little")
        return _mix_in_length(merkleize(data, _count_chunks(-(-limit // 8))), length)

    return hash_list


def _build_uint_list(limit: int) -> Hasher:
    def hash_list(values: list[Any]) -> bytes:
        data = b"".join([int(value).to_bytes(8, "little") for value in values])
        return _mix_in_length(merkleize(data, _count_chunks(8 * limit)), len(values))

    return hash_list


def _build_list(element: Hasher, limit: int) -> Hasher:
    def hash_list(values: list[Any]) -> bytes:
        return _mix_in_length(merkleize(b"".join(map(element, values)), limit), len(values))

    return hash_list


def _build_vector(element: Hasher, length: int) -> Hasher:
    return lambda values: merkleize(b"".join(map(element, values)), length)


def _build_container(fields: Mapping[str, Hasher]) -> Hasher:
    items = list(fields.items())

    def hash_container(value: Mapping[str, Any]) -> bytes:
        roots = b"".join([hash_field(value[name]) for name, hash_field in items])
        return merkleize(roots, len(items))

    return hash_container


def _build_signed(message: Hasher) -> Hasher:
    return _build_container({"message": message, "signature": _hash_bytes})


_CHECKPOINT: Final = _build_container({"epoch": _hash_uint, "root": _hash_bytes})
_ATTESTATION_DATA: Final = _build_container({
    "slot": _hash_uint,
    "index": _hash_uint,
    "beacon_block_root": _hash_bytes,
    "source": _CHECKPOINT,
    "target": _CHECKPOINT,
})  # fmt: skip
_HEADER: Final = _build_container({
    "slot": _hash_uint,
    "proposer_index": _hash_uint,
    "parent_root": _hash_bytes,
    "state_root": _hash_bytes,
    "body_root": _hash_bytes,
})  # fmt: skip
_PROPOSER_SLASHING: Final = _build_container(
    dict.fromkeys(("signed_header_1", "signed_header_2"), _build_signed(_HEADER))
)
_DEPOSIT_FIELDS: Final = {
    "pubkey": _hash_bytes,
    "withdrawal_credentials": _hash_bytes,
    "amount": _hash_uint,
    "signature": _hash_bytes,
}
_DEPOSIT: Final = _build_container({
    "proof": _build_vector(_hash_bytes, DEPOSIT_PROOF_LENGTH),
    "data": _build_container(_DEPOSIT_FIELDS),
})  # fmt: skip
_VOLUNTARY_EXIT: Final = _build_container({"epoch": _hash_uint, "validator_index": _hash_uint})
_CREDENTIAL_CHANGE: Final = _build_container({
    "validator_index": _hash_uint,
    "from_bls_pubkey": _hash_bytes,
    "to_execution_address": _hash_bytes,
})  # fmt: skip
_WITHDRAWAL: Final = _build_container({
    "index": _hash_uint,
    "validator_index": _hash_uint,
    "address": _hash_bytes,
    "amount": _hash_uint,
})  # fmt: skip


@cache
def _build_block(spec: Spec, fork: str) -> Hasher:
    body = _build_container(_list_body(spec, fork))
    names = ("slot", "proposer_index", "parent_root", "state_root")
    hashers = (_hash_uint, _hash_uint, _hash_bytes, _hash_bytes)
    return _build_container(dict(zip(names, hashers, strict=True)) | {"body": body})


def _list_body(spec: Spec, fork: str) -> dict[str, Hasher]:
    """Return the fields of a block's body in *fork*, in order."""
    is_electra = is_since(fork, "electra")
    signers, slashings, attestations = (
        MAX_VALIDATORS_PER_COMMITTEE, MAX_ATTESTER_SLASHINGS, MAX_ATTESTATIONS
    )  # fmt: skip
    if is_electra:
        signers *= spec.max_committees_per_slot
        slashings, attestations = MAX_ATTESTER_SLASHINGS_ELECTRA, MAX_ATTESTATIONS_ELECTRA
    vote = {"data": _ATTESTATION_DATA, "signature": _hash_bytes}
    indexed = _build_container({"attesting_indices": _build_uint_list(signers)} | vote)
    attester_slashing = dict.fromkeys(("attestation_1", "attestation_2"), indexed)
    attestation = {"aggregation_bits": _build_bit_list(signers)} | vote
    if is_electra:
        attestation["committee_bits"] = _hash_bytes
    fields: dict[str, Hasher] = {
        "randao_reveal": _hash_bytes,
        "eth1_data": _build_container(
            {"deposit_root": _hash_bytes, "deposit_count": _hash_uint, "block_hash": _hash_bytes}
        ),
        "graffiti": _hash_bytes,
        "proposer_slashings": _build_list(_PROPOSER_SLASHING, MAX_PROPOSER_SLASHINGS),
        "attester_slashings": _build_list(_build_container(attester_slashing), slashings),
        "attestations": _build_list(_build_container(attestation), attestations),
        "deposits": _build_list(_DEPOSIT, MAX_DEPOSITS),
        "voluntary_exits": _build_list(_build_signed(_VOLUNTARY_EXIT), MAX_VOLUNTARY_EXITS),
    }
    if is_since(fork, "altair"):
        fields["sync_aggregate"] = _build_container(
            dict.fromkeys(("sync_committee_bits", "sync_committee_signature"), _hash_bytes)
        )
    if is_since(fork, "bellatrix"):
        fields["execution_payload"] = _build_container(_list_payload(spec, fork))
    if is_since(fork, "capella"):
        changes = _build_list(_build_signed(_CREDENTIAL_CHANGE), MAX_BLS_TO_EXECUTION_CHANGES)
        fields["bls_to_execution_changes"] = changes
    if is_since(fork, "deneb"):
        fields["blob_kzg_commitments"] = _build_list(
            _hash_bytes, spec.max_blob_commitments_per_block
        )
    if is_electra:
        fields["execution_requests"] = _build_requests(spec)
    return fields


def _list_payload(spec: Spec, fork: str) -> dict[str, Hasher]:
    """Return the fields of an execution payload in *fork*, in order."""
    transaction = _build_byte_list(MAX_BYTES_PER_TRANSACTION)
    fields: dict[str, Hasher] = {
        "parent_hash": _hash_bytes,
        "fee_recipient": _hash_bytes,
        "state_root": _hash_bytes,
        "receipts_root": _hash_bytes,
        "logs_bloom": _hash_bytes,
        "prev_randao": _hash_bytes,
        "block_number": _hash_uint,
        "gas_limit": _hash_uint,
        "gas_used": _hash_uint,
        "timestamp": _hash_uint,
        "extra_data": _build_byte_list(MAX_EXTRA_DATA_BYTES),
        "base_fee_per_gas": _hash_uint,
        "block_hash": _hash_bytes,
        "transactions": _build_list(transaction, MAX_TRANSACTIONS_PER_PAYLOAD),
    }
    if is_since(fork, "capella"):
        fields["withdrawals"] = _build_list(_WITHDRAWAL, spec.max_withdrawals_per_payload)
    if is_since(fork, "deneb"):
        fields |= {"blob_gas_used": _hash_uint, "excess_blob_gas": _hash_uint}
    return fields


def _build_requests(spec: Spec) -> Hasher:
    """Return the hasher of the requests of the execution layer, since Electra."""
    withdrawal = {
        "source_address": _hash_bytes, "validator_pubkey": _hash_bytes, "amount": _hash_uint
    }  # fmt: skip
    keys = dict.fromkeys(("source_address", "source_pubkey", "target_pubkey"), _hash_bytes)
    deposit = _build_container(_DEPOSIT_FIELDS | {"index": _hash_uint})
    return _build_container({
        "deposits": _build_list(deposit, spec.max_deposit_requests_per_payload),
        "withdrawals": _build_list(
            _build_container(withdrawal), spec.max_withdrawal_requests_per_payload
        ),
        "consolidations": _build_list(
            _build_container(keys), MAX_CONSOLIDATION_REQUESTS_PER_PAYLOAD
        ),
    })  # fmt: skip
