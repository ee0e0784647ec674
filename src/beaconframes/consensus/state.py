"""Decoding of a beacon state from SSZ, as ``/eth/v2/debug/beacon/states/{state_id}`` sends it.

A state of mainnet has more than 300 MB. Columns are read with numpy; large byte columns are views
of the response.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from beaconframes.consensus.spec import FAR_FUTURE_EPOCH, FORKS, Spec, is_since
from beaconframes.errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Bytes = NDArray[np.uint8]
    Structs = NDArray[np.void]

VALIDATOR: Final = np.dtype([
    ("pubkey", "u1", 48),
    ("withdrawal_credentials", "u1", 32),
    ("effective_balance", "<i8"),
    ("slashed", "u1"),
    ("activation_eligibility_epoch", "<i8"),
    ("activation_epoch", "<i8"),
    ("exit_epoch", "<i8"),
    ("withdrawable_epoch", "<i8"),
])  # fmt: skip
PENDING_DEPOSIT: Final = np.dtype([
    ("pubkey", "u1", 48),
    ("withdrawal_credentials", "u1", 32),
    ("amount", "<i8"),
    ("signature", "u1", 96),
    ("slot", "<i8"),
])  # fmt: skip
PENDING_PARTIAL_WITHDRAWAL: Final = np.dtype([
    ("validator_index", "<i8"),
    ("amount", "<i8"),
    ("withdrawable_epoch", "<i8"),
])  # fmt: skip
PENDING_CONSOLIDATION: Final = np.dtype([("source_index", "<i8"), ("target_index", "<i8")])

_FORK_VERSION: Final = slice(8 + 32 + 8 + 4, 8 + 32 + 8 + 8)
"""The place of the current fork version: after genesis time and root, slot, previous version."""


def _empty(dtype: np.dtype[Any]) -> Structs:
    return np.empty(0, dtype)


@dataclass(frozen=True)
class Checkpoint:
    """The block *root* with which an epoch began."""

    epoch: int
    root: bytes


@dataclass(frozen=True, eq=False)
class BeaconState:
    """A beacon state. Arrays of the registry have one entry per validator."""

    fork: str
    slot: int
    effective_balances: Ints
    balances: Ints
    slashed: Bools
    activation_eligibility_epochs: Ints
    activation_epochs: Ints
    exit_epochs: Ints
    withdrawable_epochs: Ints
    pubkeys: Bytes
    """Shape (validators, 48)."""
    withdrawal_credentials: Bytes
    """Shape (validators, 32)."""
    previous_participation: Bytes
    """Flags: 1 is a timely source, 2 a timely target, 4 a timely head."""
    current_participation: Bytes
    inactivity_scores: Ints
    slashings: Ints
    randao_mixes: Bytes
    """Shape (epochs_per_historical_vector, 32)."""
    block_roots: Bytes
    """Shape (slots_per_historical_root, 32)."""
    justification_bits: tuple[bool, bool, bool, bool]
    """Whether the current epoch and each of the three before it are justified."""
    previous_justified: Checkpoint
    current_justified: Checkpoint
    finalized: Checkpoint
    current_sync_committee: Ints
    """Validator indices, one per seat."""
    next_sync_committee: Ints

    next_withdrawal_index: int = 0
    """0 before Capella."""
    next_withdrawal_validator_index: int = 0

    eth1_deposit_index: int = 0
    """The number of deposits that blocks included themselves, before or beside requests."""
    deposit_requests_start_index: int = FAR_FUTURE_EPOCH
    """Before Electra, and until the first request: ``FAR_FUTURE_EPOCH``."""
    deposit_balance_to_consume: int = 0
    exit_balance_to_consume: int = 0
    earliest_exit_epoch: int = 0
    consolidation_balance_to_consume: int = 0
    earliest_consolidation_epoch: int = 0
    pending_deposits: Structs = field(default_factory=lambda: _empty(PENDING_DEPOSIT))
    """Fields pubkey, withdrawal_credentials, amount, signature, slot; empty before Electra."""
    pending_partial_withdrawals: Structs = field(
        default_factory=lambda: _empty(PENDING_PARTIAL_WITHDRAWAL)
    )
    """Fields validator_index, amount, withdrawable_epoch."""
    pending_consolidations: Structs = field(default_factory=lambda: _empty(PENDING_CONSOLIDATION))
    """Fields source_index, target_index."""

    proposer_lookahead: Ints | None = None
    """The proposers of this epoch and the next; None before Fulu."""

    @property
    def previous_justified_epoch(self) -> int:
        """Return the epoch of the previous justified checkpoint."""
        return self.previous_justified.epoch

    @property
    def current_justified_epoch(self) -> int:
        """Return the epoch of the current justified checkpoint."""
        return self.current_justified.epoch

    @property
    def finalized_epoch(self) -> int:
        """Return the epoch of the finalized checkpoint."""
        return self.finalized.epoch

    def is_active(self, epoch: int) -> Bools:
        """Return for each validator whether it is active in *epoch*."""
        return (self.activation_epochs <= epoch) & (epoch < self.exit_epochs)

    def get_total_active_balance(self, spec: Spec) -> int:
        """Return the effective balance of all validators that are active in the state's epoch."""
        active = self.is_active(spec.epoch_of(self.slot))
        return max(spec.effective_balance_increment, int(self.effective_balances @ active))


def decode_state(ssz: bytes, spec: Spec) -> BeaconState:
    """Return the state that these bytes hold; its fork version says which fork's.

    Bytes that are no state of this chain are a ``ResponseError``. The columns of public keys,
    credentials and roots are views of *ssz*.
    """
    fork = _read_fork(ssz, spec)
    fields = _split_fields(ssz, spec, fork)
    if fields["genesis_validators_root"] != spec.genesis_validators_root:
        raise ResponseError(
            "the state is of another chain: its genesis_validators_root is "
            f"0x{fields['genesis_validators_root'].hex()}, "
            f"that of {spec.name} is 0x{spec.genesis_validators_root.hex()}"
        )
    validators = _read_structs(fields, "validators", VALIDATOR)
    columns = _read_columns(fields, len(validators))
    effective_balances: Ints = validators["effective_balance"].astype(np.int64)
    largest = spec.get_max_effective_balance(fork)
    _check_range("effective_balance", effective_balances, largest)
    # The product of both, in the inactivity penalty, then fits int64.
    _check_range("inactivity_scores", columns["inactivity_scores"], FAR_FUTURE_EPOCH // largest)
    committees = _read_sync_committees(fields, validators, spec.sync_committee_size)
    later: dict[str, Any] = {}
    if is_since(fork, "capella"):
        for name in ("next_withdrawal_index", "next_withdrawal_validator_index"):
            later[name] = _read_integer(fields, name)
    if is_since(fork, "electra"):
        later |= _read_electra(fields)
    if is_since(fork, "fulu"):
        lookahead = _read_integers(fields, "proposer_lookahead")
        _check_range("proposer_lookahead", lookahead, len(validators) - 1)
        later["proposer_lookahead"] = lookahead
    return BeaconState(
        fork=fork,
        slot=_read_integer(fields, "slot"),
        effective_balances=effective_balances,
        slashed=_read_booleans("slashed", validators["slashed"]),
        activation_eligibility_epochs=_copy_epochs(validators, "activation_eligibility_epoch"),
        activation_epochs=_copy_epochs(validators, "activation_epoch"),
        exit_epochs=_copy_epochs(validators, "exit_epoch"),
        withdrawable_epochs=_copy_epochs(validators, "withdrawable_epoch"),
        pubkeys=validators["pubkey"],
        withdrawal_credentials=validators["withdrawal_credentials"],
        **columns,
        eth1_deposit_index=_read_integer(fields, "eth1_deposit_index"),
        slashings=_read_integers(fields, "slashings"),
        randao_mixes=_read_roots(fields, "randao_mixes"),
        block_roots=_read_roots(fields, "block_roots"),
        justification_bits=_read_justification_bits(fields),
        previous_justified=_read_checkpoint(fields, "previous_justified_checkpoint"),
        current_justified=_read_checkpoint(fields, "current_justified_checkpoint"),
        finalized=_read_checkpoint(fields, "finalized_checkpoint"),
        current_sync_committee=committees[0],
        next_sync_committee=committees[1],
        **later,
    )


def _read_fork(ssz: bytes, spec: Spec) -> str:
    version = ssz[_FORK_VERSION]
    if len(version) < 4:
        raise ResponseError(f"the state has {len(ssz)} bytes; it ends before its fork version")
    # A network may give two forks of its genesis the same version: then the later one counts.
    forks = [fork for fork, known in spec.fork_versions.items() if known == version]
    if not forks:
        raise ResponseError(
            f"the fork version of the state, 0x{version.hex()}, is unknown to the node's spec",
            hint="The response is damaged, or is no beacon state of this chain",
        )
    if forks[-1] not in FORKS[1:]:
        raise ResponseError(
            f"the state is of fork {forks[-1]!r}, which is not supported",
            hint=f"Supported forks: {', '.join(FORKS[1:])}",
        )
    return forks[-1]


def list_fields(spec: Spec, fork: str) -> Iterator[tuple[str, int | None]]:
    """Yield the name and size of each field; the size of a list is None."""
    committee = 48 * (spec.sync_committee_size + 1)
    yield from {
        "genesis_time": 8,
        "genesis_validators_root": 32,
        "slot": 8,
        "fork": 16,
        "latest_block_header": 112,
        "block_roots": 32 * spec.slots_per_historical_root,
        "state_roots": 32 * spec.slots_per_historical_root,
        "historical_roots": None,
        "eth1_data": 72,
        "eth1_data_votes": None,
        "eth1_deposit_index": 8,
        "validators": None,
        "balances": None,
        "randao_mixes": 32 * spec.epochs_per_historical_vector,
        "slashings": 8 * spec.epochs_per_slashings_vector,
        "previous_epoch_participation": None,
        "current_epoch_participation": None,
        "justification_bits": 1,
        "previous_justified_checkpoint": 40,
        "current_justified_checkpoint": 40,
        "finalized_checkpoint": 40,
        "inactivity_scores": None,
        "current_sync_committee": committee,
        "next_sync_committee": committee,
    }.items()
    if is_since(fork, "bellatrix"):
        yield "latest_execution_payload_header", None
    if is_since(fork, "capella"):
        yield "next_withdrawal_index", 8
        yield "next_withdrawal_validator_index", 8
        yield "historical_summaries", None
    if is_since(fork, "electra"):
        for name in _ELECTRA_INTEGERS:
            yield name, 8
        for name in _ELECTRA_QUEUES:
            yield name, None
    if is_since(fork, "fulu"):
        yield "proposer_lookahead", 8 * (spec.min_seed_lookahead + 1) * spec.slots_per_epoch


_ELECTRA_INTEGERS: Final = (
    "deposit_requests_start_index",
    "deposit_balance_to_consume",
    "exit_balance_to_consume",
    "earliest_exit_epoch",
    "consolidation_balance_to_consume",
    "earliest_consolidation_epoch",
)
_ELECTRA_QUEUES: Final = {
    "pending_deposits": PENDING_DEPOSIT,
    "pending_partial_withdrawals": PENDING_PARTIAL_WITHDRAWAL,
    "pending_consolidations": PENDING_CONSOLIDATION,
}


def _split_fields(ssz: bytes, spec: Spec, fork: str) -> dict[str, memoryview]:
    """Return the bytes of each field: fixed fields and offsets of lists first, then the lists."""
    view, position = memoryview(ssz), 0
    found: dict[str, memoryview] = {}
    offsets: dict[str, int] = {}
    for name, size in list_fields(spec, fork):
        end = position + (4 if size is None else size)
        if end > len(ssz):
            raise ResponseError(f"the state is truncated: its {len(ssz)} bytes end in {name}")
        if size is None:
            offsets[name] = int.from_bytes(view[position:end], "little")
        else:
            found[name] = view[position:end]
        position = end
    names = list(offsets)
    ends = [*list(offsets.values())[1:], len(ssz)]
    for name, end in zip(names, ends, strict=True):
        start = offsets[name]
        if name == names[0] and start != position:
            raise ResponseError(
                f"{name} of the state begins at byte {start} instead of {position}",
                hint=f"The state is damaged, or has not the fields of fork {fork!r}",
            )
        if start > end:
            raise ResponseError(
                f"{name} of the state begins at byte {start} and ends at byte {end}",
                hint="The state is truncated or damaged",
            )
        found[name] = view[start:end]
    return found


def _read_columns(fields: dict[str, memoryview], count: int) -> dict[str, Any]:
    """Return the lists beside the registry, which have an entry for each validator too."""
    columns: dict[str, Any] = {
        "balances": _read_integers(fields, "balances"),
        "previous_participation": _read_structs(
            fields, "previous_epoch_participation", np.dtype(np.uint8)
        ),
        "current_participation": _read_structs(
            fields, "current_epoch_participation", np.dtype(np.uint8)
        ),
        "inactivity_scores": _read_integers(fields, "inactivity_scores"),
    }
    for name, column in columns.items():
        if len(column) != count:
            raise ResponseError(
                f"the state has {count} validators, but {len(column)} {name}",
                hint="The state is truncated or damaged",
            )
        if column.dtype == np.uint8:
            _check_range(name, column, 7)
    return columns


def _read_electra(fields: dict[str, memoryview]) -> dict[str, Any]:
    values: dict[str, Any] = {
        name: _read_integer(fields, name, unset=2**64 - 1) for name in _ELECTRA_INTEGERS
    }
    for name, dtype in _ELECTRA_QUEUES.items():
        values[name] = queue = _read_structs(fields, name, dtype)
        for column in dtype.names or ():
            if dtype[column] == np.dtype("<i8"):
                _check_range(f"{name}.{column}", queue[column], FAR_FUTURE_EPOCH)
    return values


def _read_structs(fields: dict[str, memoryview], name: str, dtype: np.dtype[Any]) -> Any:
    """Return a list or vector of *dtype* as a view."""
    size = len(fields[name])
    if size % dtype.itemsize:
        raise ResponseError(
            f"{name} of the state has {size} bytes, which is no multiple of {dtype.itemsize}",
            hint="The state is truncated or damaged",
        )
    return np.frombuffer(fields[name], dtype)


def _read_integers(fields: dict[str, memoryview], name: str) -> Ints:
    values: Ints = _read_structs(fields, name, np.dtype("<i8"))
    _check_range(name, values, FAR_FUTURE_EPOCH)
    return values


def _copy_epochs(validators: Structs, name: str) -> Ints:
    """Return a column of the registry as an array of its own, which is faster to use."""
    values: Ints = validators[name].astype(np.int64)
    values[values == -1] = FAR_FUTURE_EPOCH  # The bits of 2**64 - 1.
    _check_range(name, values, FAR_FUTURE_EPOCH)
    return values


def _check_range(name: str, values: NDArray[Any], largest: int) -> None:
    """Refuse integers below 0 (in SSZ: 2**63 or more) and above *largest*."""
    if not len(values):
        return
    if values.min() >= 0 and values.max() <= largest:
        return
    index = int(np.flatnonzero((values < 0) | (values > largest))[0])
    value = int(values[index]) % 2**64
    raise ResponseError(
        f"{name} of the state is {value} at index {index}; it must be {largest} or less",
        hint="The state is damaged",
    )


def _read_booleans(name: str, column: Bytes) -> Bools:
    values = np.ascontiguousarray(column)
    _check_range(name, values, 1)
    return values.view(np.bool_)


def _read_integer(fields: dict[str, memoryview], name: str, unset: int | None = None) -> int:
    value = int.from_bytes(fields[name], "little")
    if value == unset:
        return FAR_FUTURE_EPOCH
    if value > FAR_FUTURE_EPOCH:
        raise ResponseError(
            f"{name} of the state is {value}; it must be {FAR_FUTURE_EPOCH} or less",
            hint="The state is damaged",
        )
    return value


def _read_roots(fields: dict[str, memoryview], name: str) -> Bytes:
    return np.frombuffer(fields[name], np.uint8).reshape(-1, 32)


def _read_checkpoint(fields: dict[str, memoryview], name: str) -> Checkpoint:
    parts = {name: fields[name][:8]}
    return Checkpoint(_read_integer(parts, name), bytes(fields[name][8:]))


def _read_justification_bits(fields: dict[str, memoryview]) -> tuple[bool, bool, bool, bool]:
    bits = fields["justification_bits"][0]
    if bits > 0b1111:
        raise ResponseError(
            f"justification_bits of the state are {bits:#x}; there are only 4 bits",
            hint="The state is damaged",
        )
    return bool(bits & 1), bool(bits & 2), bool(bits & 4), bool(bits & 8)


def _read_sync_committees(
    fields: dict[str, memoryview], validators: Structs, size: int
) -> tuple[Ints, Ints]:
    """Return the current and the next sync committee as validator indices."""
    keys = b"".join(
        fields[name][: 48 * size] for name in ("current_sync_committee", "next_sync_committee")
    )
    wanted = np.frombuffer(keys, np.uint8).reshape(-1, 48)
    # A table of 20 bits of each key finds the few possible validators among millions.
    table = np.zeros(2**20, np.bool_)
    table[_hash_pubkeys(wanted)] = True
    possible = np.flatnonzero(table[_hash_pubkeys(validators["pubkey"])])
    indices = {
        key.tobytes(): index
        for index, key in zip(possible.tolist(), validators["pubkey"][possible], strict=True)
    }
    found = []
    for key in wanted:
        index = indices.get(key.tobytes())
        if index is None:
            raise ResponseError(
                f"the public key 0x{key.tobytes().hex()} of a sync committee of the state is no "
                "validator of the state",
                hint="The state is damaged",
            )
        found.append(index)
    return np.array(found[:size], np.int64), np.array(found[size:], np.int64)


def _hash_pubkeys(pubkeys: Bytes) -> NDArray[np.uint32]:
    """Return 20 bits of each public key (bytes 8 to 11; the first byte has flags)."""
    words = np.ascontiguousarray(pubkeys[:, 8:12]).view("<u4")[:, 0]
    return words & np.uint32(2**20 - 1)
