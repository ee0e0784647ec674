"""A beacon state, decoded from the SSZ of ``/eth/v2/debug/beacon/states/{state_id}``.

A state of mainnet has more than 300 MB. Columns are read with numpy; large byte columns are views
of the response.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from beaconframes.consensus.registry import Registry, compute_total_active_balance
from beaconframes.consensus.spec import FAR_FUTURE_EPOCH, FORKS, Spec, is_since
from beaconframes.consensus.state_fields import (
    ELECTRA_QUEUES,
    PENDING_CONSOLIDATION,
    PENDING_DEPOSIT,
    PENDING_PARTIAL_WITHDRAWAL,
    VALIDATOR,
    StateFields,
    copy_columns,
)
from beaconframes.errors import ResponseError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from beaconframes.consensus.registry import Bytes, Ints, Structs

_FORK_VERSION: Final = slice(8 + 32 + 8 + 4, 8 + 32 + 8 + 8)
"""The place of the current fork version: after genesis time and root, slot, previous version."""
_SPARE_SHARE: Final = 50
"""The memory of the public keys has place for one more validator per this number."""
_ROWS_AT_ONCE: Final = 2**16
"""Rows that are compared in one step, so that a comparison of millions needs little memory."""


def _empty(dtype: np.dtype[Any]) -> Structs:
    return np.empty(0, dtype)


@dataclass(frozen=True, eq=False)
class BeaconState(Registry):
    """A beacon state. Arrays of the registry have one entry per validator."""

    fork: str
    slot: int
    activation_eligibility_epochs: Ints
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
    previous_justified_epoch: int
    current_justified_epoch: int
    finalized_epoch: int
    current_sync_committee: Ints
    """Validator indices, one per seat."""
    next_sync_committee: Ints

    eth1_deposit_index: int = 0
    """The number of deposits that blocks included themselves, before or beside requests."""
    deposit_requests_start_index: int = FAR_FUTURE_EPOCH
    """Before Electra, and until the first request: ``FAR_FUTURE_EPOCH``."""
    deposit_balance_to_consume: int = 0
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

    def get_total_active_balance(self, spec: Spec) -> int:
        """Return the effective balance of all validators that are active in the state's epoch."""
        return compute_total_active_balance(spec, self, spec.epoch_of(self.slot))


def decode_state(ssz: bytes, spec: Spec) -> BeaconState:
    """Return the state that these bytes hold; its fork version says which fork's.

    Bytes that are no state of this chain are a ``ResponseError``. The columns of public keys,
    credentials and roots are views of *ssz*.
    """
    fork = _read_fork(ssz, spec)
    fields = StateFields(ssz, spec, fork)
    _check_chain(fields, spec, fork)
    validators: Structs = fields.read_structs("validators", VALIDATOR)
    largest = spec.get_max_effective_balance(fork)
    # The product of balance and score, in the inactivity penalty, then fits int64.
    registry = copy_columns(validators, largest)
    columns: dict[str, Any] = {
        "balances": fields.read_integers("balances"),
        "previous_participation": fields.read_flags("previous_epoch_participation"),
        "current_participation": fields.read_flags("current_epoch_participation"),
        "inactivity_scores": fields.read_integers("inactivity_scores", FAR_FUTURE_EPOCH // largest),
    }
    for name, column in columns.items():
        if len(column) != len(validators):
            raise ResponseError(
                f"the state has {len(validators)} validators, but {len(column)} {name}",
                hint="The state is truncated or damaged",
            )
    current, following = _read_sync_committees(fields, validators, spec.sync_committee_size)
    return BeaconState(
        fork=fork,
        slot=fields.read_integer("slot"),
        effective_balances=registry["effective_balance"],
        slashed=registry["slashed"].view(np.bool_),
        activation_eligibility_epochs=registry["activation_eligibility_epoch"],
        activation_epochs=registry["activation_epoch"],
        exit_epochs=registry["exit_epoch"],
        withdrawable_epochs=registry["withdrawable_epoch"],
        pubkeys=validators["pubkey"],
        withdrawal_credentials=validators["withdrawal_credentials"],
        **columns,
        eth1_deposit_index=fields.read_integer("eth1_deposit_index"),
        slashings=fields.read_integers("slashings"),
        randao_mixes=fields.read_roots("randao_mixes"),
        block_roots=fields.read_roots("block_roots"),
        justification_bits=fields.read_justification_bits(),
        previous_justified_epoch=fields.read_checkpoint("previous_justified_checkpoint"),
        current_justified_epoch=fields.read_checkpoint("current_justified_checkpoint"),
        finalized_epoch=fields.read_checkpoint("finalized_checkpoint"),
        current_sync_committee=current,
        next_sync_committee=following,
        **_read_later_fields(fields, fork, len(validators)),
    )


class SharedColumns:
    """Memory for the columns of consecutive states, from any number of threads.

    A decoded state has views of its response. `share` copies them, so that the response can be
    freed. A registry only grows: consecutive states share their public keys, and every column that
    did not change.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pubkeys: Bytes = np.empty((0, 48), np.uint8)
        self._count = 0
        self._columns: dict[str, NDArray[Any]] = {}

    def share(self, state: BeaconState) -> BeaconState:
        """Return an equal state without views of the response."""
        with self._lock:
            columns: dict[str, Any] = {
                name: self._share_pubkeys(column)
                if name == "pubkeys"
                else self._share_column(name, column)
                for name, column in vars(state).items()
                if isinstance(column, np.ndarray)
            }
        return replace(state, **columns)

    def _share_pubkeys(self, pubkeys: Bytes) -> Bytes:
        count, known = len(pubkeys), min(len(pubkeys), self._count)
        if count > len(self._pubkeys) or not _is_equal(pubkeys[:known], self._pubkeys[:known]):
            self._pubkeys = np.empty((count + count // _SPARE_SHARE, 48), np.uint8)
            known = self._count = 0
        if count > self._count:
            self._pubkeys[known:count] = pubkeys[known:]
            self._count = count
        return self._pubkeys[:count]

    def _share_column(self, name: str, column: NDArray[Any]) -> NDArray[Any]:
        known = self._columns.get(name)
        if known is None or not _is_equal(column, known):
            known = self._columns[name] = np.array(column) if column.base is not None else column
        return known


def _is_equal(column: NDArray[Any], known: NDArray[Any]) -> bool:
    """Return whether two columns are equal."""
    if column.shape != known.shape or column.dtype != known.dtype:
        return False
    return all(
        bool((column[start : start + _ROWS_AT_ONCE] == known[start : start + _ROWS_AT_ONCE]).all())
        for start in range(0, len(column), _ROWS_AT_ONCE)
    )


def _read_later_fields(fields: StateFields, fork: str, validator_count: int) -> dict[str, Any]:
    """Return the fields that forks after Altair have added."""
    values: dict[str, Any] = {}
    if is_since(fork, "electra"):
        for name in ("deposit_requests_start_index", "deposit_balance_to_consume"):
            values[name] = fields.read_integer(name, may_be_unset=True)
        for name in ELECTRA_QUEUES:
            values[name] = fields.read_queue(name)
    if is_since(fork, "fulu"):
        name = "proposer_lookahead"
        values[name] = fields.read_integers(name, validator_count - 1)
    return values


def _check_chain(fields: StateFields, spec: Spec, fork: str) -> None:
    root = fields.read_bytes("genesis_validators_root")
    if root != spec.genesis_validators_root:
        raise ResponseError(
            f"the state is of another chain: its genesis_validators_root is 0x{root.hex()}, "
            f"that of {spec.name} is 0x{spec.genesis_validators_root.hex()}"
        )
    slot = fields.read_integer("slot")
    if (scheduled := spec.fork_at(spec.epoch_of(slot))) != fork:
        raise ResponseError(
            f"the state of slot {slot} has the version of fork {fork!r}, but the node's spec "
            f"schedules fork {scheduled!r} for this slot",
            hint="The state is damaged, or the node's spec does not belong to its chain",
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


def _read_sync_committees(fields: StateFields, validators: Structs, size: int) -> tuple[Ints, Ints]:
    """Return the current and the next sync committee as validator indices."""
    names = ("current_sync_committee", "next_sync_committee")
    # The aggregate key of the committee follows the keys of its members.
    keys = b"".join(fields.read_bytes(name)[: 48 * size] for name in names)
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
