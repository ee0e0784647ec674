"""The JSON of a signed beacon block: its fields and their types.

Fields that are columns of a table have the name of the column.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Generic, TypeAlias, TypeVar

from msgspec import Meta, Struct, field

T = TypeVar("T")

# The Beacon API writes integers as texts, which the lax mode of msgspec parses exactly.
Uint: TypeAlias = Annotated[int, Meta(ge=0)]
Index: TypeAlias = Annotated[int, Meta(ge=0, lt=2**40)]  # VALIDATOR_REGISTRY_LIMIT
Amount: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Data: TypeAlias = Annotated[str, Meta(pattern=r"^0x(?:[0-9a-fA-F]{2})*\Z")]
# The highest bit of the last byte marks the end.
Bits: TypeAlias = Annotated[str, Meta(pattern=r"^0x(?:[0-9a-fA-F]{2})*(?!00)[0-9a-fA-F]{2}\Z")]
Address: TypeAlias = Annotated[str, Meta(pattern=r"^0x[0-9a-fA-F]{40}\Z")]
Root: TypeAlias = Annotated[str, Meta(pattern=r"^0x[0-9a-fA-F]{64}\Z")]
Pubkey: TypeAlias = Annotated[str, Meta(pattern=r"^0x[0-9a-fA-F]{96}\Z")]
Signature: TypeAlias = Annotated[str, Meta(pattern=r"^0x[0-9a-fA-F]{192}\Z")]

LARGEST_WEI: Final = 10**28 - 1
"""The largest amount of a column of wei."""


class _Object(Struct, gc=False):
    """A JSON object; fields without a column are ignored."""


class Signed(_Object, Generic[T]):
    """A message with the signature of its validator."""

    message: T
    signature: Signature


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

    aggregation_bits: Bits
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


class ProposerSlashing(_Object):
    """Two headers of one slot by one proposer."""

    signed_header_1: Signed[Header]
    signed_header_2: Signed[Header]


class DepositData(_Object):
    """A deposit."""

    pubkey: Pubkey
    withdrawal_credentials: Root
    amount_gwei: Amount = field(name="amount")
    signature: Signature


class Deposit(_Object):
    """A deposit that the block includes with its Merkle proof."""

    data: DepositData


class VoluntaryExit(_Object):
    """The exit of a validator."""

    epoch: Uint
    validator_index: Index


class SyncAggregate(_Object):
    """The signatures of the sync committee."""

    sync_committee_bits: Data
    sync_committee_signature: Signature


class Withdrawal(_Object):
    """An amount that leaves the balance of a validator."""

    withdrawal_index: Amount = field(name="index")
    validator_index: Index
    address: Address
    amount_gwei: Amount = field(name="amount")


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
    bls_pubkey: Pubkey = field(name="from_bls_pubkey")
    address: Address = field(name="to_execution_address")


class WithdrawalRequest(_Object):
    """A request to withdraw an amount, or to exit with the amount 0."""

    source_address: Address
    pubkey: Pubkey = field(name="validator_pubkey")
    amount_gwei: Amount = field(name="amount")


class ConsolidationRequest(_Object):
    """A request to move a balance, or to switch to compounding if source and target are equal."""

    source_address: Address
    pubkey: Pubkey = field(name="source_pubkey")
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
    voluntary_exits: list[Signed[VoluntaryExit]]
    sync_aggregate: SyncAggregate | None = None
    execution_payload: ExecutionPayload | None = None
    bls_to_execution_changes: list[Signed[CredentialChange]] | None = None
    blob_kzg_commitments: list[Data] | None = None
    execution_requests: ExecutionRequests | None = None


class Block(_Object):
    """A block."""

    slot: Amount
    proposer_index: Index
    parent_root: Root
    state_root: Root
    body: Body


SignedBlock: TypeAlias = Signed[Block]
