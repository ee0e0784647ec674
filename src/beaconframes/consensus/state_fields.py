"""The SSZ layout of beacon states: the place of each field, and its values as numpy arrays.

Lists of a state begin at offsets that stand among its fields of a fixed size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from beaconframes.consensus.spec import FAR_FUTURE_EPOCH, Spec, is_since
from beaconframes.errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from beaconframes.consensus.registry import Bytes, Ints, Structs

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

_ROWS_AT_ONCE: Final = 2**12
"""Validators whose columns are copied together: they fit into the cache of a core."""

ELECTRA_INTEGERS: Final = (
    "deposit_requests_start_index",
    "deposit_balance_to_consume",
    "exit_balance_to_consume",
    "earliest_exit_epoch",
    "consolidation_balance_to_consume",
    "earliest_consolidation_epoch",
)
ELECTRA_QUEUES: Final = {
    "pending_deposits": PENDING_DEPOSIT,
    "pending_partial_withdrawals": PENDING_PARTIAL_WITHDRAWAL,
    "pending_consolidations": PENDING_CONSOLIDATION,
}


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
        for name in ELECTRA_INTEGERS:
            yield name, 8
        for name in ELECTRA_QUEUES:
            yield name, None
    if is_since(fork, "fulu"):
        yield "proposer_lookahead", 8 * (spec.min_seed_lookahead + 1) * spec.slots_per_epoch


class StateFields:
    """The bytes of each field of a state, and the values that they hold.

    Integers of 2**63 or more do not fit int64; no valid state has them, except 2**64 - 1 in fields
    that are not set. They are a ``ResponseError``.
    """

    def __init__(self, ssz: bytes, spec: Spec, fork: str) -> None:
        """Split *ssz* into the fields that a state of *fork* has."""
        view, position = memoryview(ssz), 0
        self._found: dict[str, memoryview] = {}
        offsets: dict[str, int] = {}
        for name, size in list_fields(spec, fork):
            end = position + (4 if size is None else size)
            if end > len(ssz):
                raise ResponseError(f"the state is truncated: its {len(ssz)} bytes end in {name}")
            if size is None:
                offsets[name] = int.from_bytes(view[position:end], "little")
            else:
                self._found[name] = view[position:end]
            position = end
        names = list(offsets)
        if offsets[names[0]] != position:
            raise ResponseError(
                f"{names[0]} of the state begins at byte {offsets[names[0]]} instead of {position}",
                hint=f"The state is damaged, or has not the fields of fork {fork!r}",
            )
        for name, end in zip(names, [*list(offsets.values())[1:], len(ssz)], strict=True):
            start = offsets[name]
            if start > end:
                raise ResponseError(
                    f"{name} of the state begins at byte {start} and ends at byte {end}",
                    hint="The state is truncated or damaged",
                )
            self._found[name] = view[start:end]

    def read_bytes(self, name: str) -> bytes:
        """Return the bytes of a field."""
        return bytes(self._found[name])

    def read_integer(self, name: str, *, may_be_unset: bool = False) -> int:
        """Return an integer; one that is not set, 2**64 - 1, is ``FAR_FUTURE_EPOCH``."""
        value = self._found[name]
        if may_be_unset and value == b"\xff" * 8:
            return FAR_FUTURE_EPOCH
        return _parse_integer(name, value)

    def read_checkpoint(self, name: str) -> int:
        """Return the epoch of a checkpoint; its root follows the epoch."""
        return _parse_integer(name, self._found[name][:8])

    def read_structs(self, name: str, dtype: np.dtype[Any]) -> Any:
        """Return a list or vector of *dtype* as a view."""
        size = len(self._found[name])
        if size % dtype.itemsize:
            raise ResponseError(
                f"{name} of the state has {size} bytes, which is no multiple of {dtype.itemsize}",
                hint="The state is truncated or damaged",
            )
        return np.frombuffer(self._found[name], dtype)

    def read_integers(self, name: str, largest: int = FAR_FUTURE_EPOCH) -> Ints:
        """Return a list or vector of integers as a view."""
        values: Ints = self.read_structs(name, np.dtype("<i8"))
        check_range(name, values, largest)
        return values

    def read_flags(self, name: str) -> Bytes:
        """Return a list of participation flags as a view."""
        values: Bytes = self.read_structs(name, np.dtype(np.uint8))
        check_range(name, values, 0b111)
        return values

    def read_roots(self, name: str) -> Bytes:
        """Return a vector of roots as a view of shape (length, 32)."""
        return np.frombuffer(self._found[name], np.uint8).reshape(-1, 32)

    def read_queue(self, name: str) -> Structs:
        """Return a queue of pending operations as a view."""
        dtype = ELECTRA_QUEUES[name]
        queue: Structs = self.read_structs(name, dtype)
        for column in dtype.names or ():
            if dtype[column] == np.dtype("<i8"):
                check_range(f"{name}.{column}", queue[column], FAR_FUTURE_EPOCH)
        return queue

    def read_justification_bits(self) -> tuple[bool, bool, bool, bool]:
        """Return the justification bits, the current epoch first."""
        bits = self._found["justification_bits"][0]
        if bits > 0b1111:
            raise ResponseError(
                f"justification_bits of the state are {bits:#x}; there are only 4 bits",
                hint="The state is damaged",
            )
        return bool(bits & 1), bool(bits & 2), bool(bits & 4), bool(bits & 8)


def copy_columns(validators: Structs, largest_balance: int) -> dict[str, NDArray[Any]]:
    """Return the numbers of the registry by column, as arrays of their own, faster to use.

    An epoch that is not set is ``FAR_FUTURE_EPOCH``.
    """
    names = [name for name in VALIDATOR.names or () if not VALIDATOR[name].shape]
    columns = {name: np.empty(len(validators), VALIDATOR[name]) for name in names}
    for start in range(0, len(validators), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        for name, values in columns.items():
            values[part] = validators[name][part]
    largest = {"effective_balance": largest_balance, "slashed": 1}
    for name, values in columns.items():
        if name.endswith("_epoch"):
            values[values == -1] = FAR_FUTURE_EPOCH  # The bits of 2**64 - 1.
        check_range(name, values, largest.get(name, FAR_FUTURE_EPOCH))
    return columns


def check_range(name: str, values: NDArray[Any], largest: int) -> None:
    """Refuse integers below 0 (in SSZ: 2**63 or more) and above *largest*."""
    if not len(values) or (values.min() >= 0 and values.max() <= largest):
        return
    index = int(np.flatnonzero((values < 0) | (values > largest))[0])
    value = int(values[index]) % 2**64
    raise ResponseError(
        f"{name} of the state is {value} at index {index}; it must be {largest} or less",
        hint="The state is damaged",
    )


def _parse_integer(name: str, value: memoryview) -> int:
    number = int.from_bytes(value, "little")
    if number > FAR_FUTURE_EPOCH:
        raise ResponseError(
            f"{name} of the state is {number}; it must be {FAR_FUTURE_EPOCH} or less",
            hint="The state is damaged",
        )
    return number
