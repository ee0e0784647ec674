"""The JSON of a signed beacon block: its fields, their types, and the fork that added them."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from beaconframes.errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.consensus.spec import Spec

# The Beacon API writes integers as texts, which the lax mode of msgspec parses exactly.
Uint: TypeAlias = Annotated[int, Meta(ge=0)]
Index: TypeAlias = Annotated[int, Meta(ge=0, lt=2**40)]  # VALIDATOR_REGISTRY_LIMIT
Amount: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Data: TypeAlias = Annotated[str, Meta(pattern=r"^0x(?:[0-9a-fA-F]{2})*\Z")]
Address: TypeAlias = Annotated[str, Meta(pattern=r"^0x[0-9a-fA-F]{40}\Z")]
Root: TypeAlias = Annotated[str, Meta(pattern=r"^0x[0-9a-fA-F]{64}\Z")]
Pubkey: TypeAlias = Annotated[str, Meta(pattern=r"^0x[0-9a-fA-F]{96}\Z")]
Signature: TypeAlias = Annotated[str, Meta(pattern=r"^0x[0-9a-fA-F]{192}\Z")]

LARGEST_WEI: Final = 10**28 - 1
"""The largest amount of a column of wei."""


class _Object(Struct, gc=False):
    """A JSON object; fields without a column are ignored."""


class Eth1Data(_Object):
    """The vote for the deposit contract."""

    deposit_root: Root
    deposit_count: Amount
    block_hash: Root


class Checkpoint(_Object):
    """The first block of an epoch, the source or the target of a vote."""

    epoch: Uint
    root: Root


class AttestationData(_Object):
    """What an attestation votes for."""

    slot: Uint
    index: Uint
    beacon_block_root: Root
    source: Checkpoint
    target: Checkpoint


class Attestation(_Object):
    """An aggregate; since Electra, ``committee_bits`` are the committees that it spans."""

    aggregation_bits: Data
    data: AttestationData
    signature: Signature
    committee_bits: Data | None = None


class IndexedAttestation(_Object):
    """An attestation with its signers, as attester slashings have it."""

    attesting_indices: list[Index]
    data: AttestationData
    signature: Signature


class AttesterSlashing(_Object):
    """Two attestations that contradict each other."""

    attestation_1: IndexedAttestation
    attestation_2: IndexedAttestation


class Header(_Object):
    """The header of a block."""

    slot: Uint
    proposer_index: Index
    parent_root: Root
    state_root: Root
    body_root: Root


class SignedHeader(_Object):
    """A header with the signature of the proposer."""

    message: Header
    signature: Signature


class ProposerSlashing(_Object):
    """Two headers of one slot by one proposer."""

    signed_header_1: SignedHeader
    signed_header_2: SignedHeader


class DepositData(_Object):
    """A deposit."""

    pubkey: Pubkey
    withdrawal_credentials: Root
    amount: Amount
    signature: Signature


class Deposit(_Object):
    """A deposit that the block includes with its Merkle proof."""

    data: DepositData


class VoluntaryExit(_Object):
    """The exit of a validator."""

    epoch: Uint
    validator_index: Index


class SignedVoluntaryExit(_Object):
    """An exit with the signature of the validator."""

    message: VoluntaryExit
    signature: Signature


class SyncAggregate(_Object):
    """The signatures of the sync committee."""

    sync_committee_bits: Data
    sync_committee_signature: Signature


class Withdrawal(_Object):
    """An amount that leaves the balance of a validator."""

    index: Amount
    validator_index: Index
    address: Address
    amount: Amount


class ExecutionPayload(_Object):
    """The execution block."""

    parent_hash: Root
    fee_recipient: Address
    state_root: Root
    receipts_root: Root
    logs_bloom: Data
    prev_randao: Root
    block_number: Amount
    gas_limit: Amount
    gas_used: Amount
    timestamp: Amount
    extra_data: Data
    base_fee_per_gas: Uint
    block_hash: Root
    transactions: list[Any]
    withdrawals: list[Withdrawal] | None = None


class CredentialChange(_Object):
    """The change from a BLS key to an address."""

    validator_index: Index
    from_bls_pubkey: Pubkey
    to_execution_address: Address


class SignedCredentialChange(_Object):
    """A change of credentials with the signature of the old key."""

    message: CredentialChange
    signature: Signature


class WithdrawalRequest(_Object):
    """A request to withdraw an amount, or to exit with the amount 0."""

    source_address: Address
    validator_pubkey: Pubkey
    amount: Amount


class ConsolidationRequest(_Object):
    """A request to move a balance, or to switch to compounding if source and target are equal."""

    source_address: Address
    source_pubkey: Pubkey
    target_pubkey: Pubkey


class ExecutionRequests(_Object):
    """Requests of the execution layer. They are valid or not: a block does not say."""

    deposits: list[DepositData]
    withdrawals: list[WithdrawalRequest]
    consolidations: list[ConsolidationRequest]


class Body(_Object):
    """The content of a block."""

    randao_reveal: Signature
    eth1_data: Eth1Data
    graffiti: Root
    proposer_slashings: list[ProposerSlashing]
    attester_slashings: list[AttesterSlashing]
    attestations: list[Attestation]
    deposits: list[Deposit]
    voluntary_exits: list[SignedVoluntaryExit]
    sync_aggregate: SyncAggregate | None = None
    execution_payload: ExecutionPayload | None = None
    bls_to_execution_changes: list[SignedCredentialChange] | None = None
    blob_kzg_commitments: list[Data] | None = None
    execution_requests: ExecutionRequests | None = None


class Block(_Object):
    """A block."""

    slot: Amount
    proposer_index: Index
    parent_root: Root
    state_root: Root
    body: Body


class SignedBlock(_Object):
    """A block with the signature of its proposer."""

    message: Block
    signature: Signature


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


def check_validators(block: SignedBlock, validator_count: int) -> None:
    """Raise ResponseError if a block names a validator whose index is *validator_count* or more."""
    for field, index in _list_validators(block):
        if index >= validator_count:
            raise build_error(
                block.message.slot,
                f"{field} is {index}, but there are {validator_count} validators",
            )


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


def _list_validators(block: SignedBlock) -> Iterator[tuple[str, int]]:
    """Yield the field and the largest validator index of each part of the block."""
    body = block.message.body
    yield "message.proposer_index", block.message.proposer_index
    for n, proposer_slashing in enumerate(body.proposer_slashings):
        field = f"message.body.proposer_slashings[{n}].signed_header_1.message.proposer_index"
        yield field, proposer_slashing.signed_header_1.message.proposer_index
    for n, slashing in enumerate(body.attester_slashings):
        for number, vote in enumerate((slashing.attestation_1, slashing.attestation_2), start=1):
            field = f"message.body.attester_slashings[{n}].attestation_{number}.attesting_indices"
            yield field, max(vote.attesting_indices, default=0)
    for n, voluntary_exit in enumerate(body.voluntary_exits):
        field = f"message.body.voluntary_exits[{n}].message.validator_index"
        yield field, voluntary_exit.message.validator_index
    for n, change in enumerate(body.bls_to_execution_changes or ()):
        field = f"message.body.bls_to_execution_changes[{n}].message.validator_index"
        yield field, change.message.validator_index
    payload = body.execution_payload
    for n, withdrawal in enumerate((payload and payload.withdrawals) or ()):
        field = f"message.body.execution_payload.withdrawals[{n}].validator_index"
        yield field, withdrawal.validator_index
