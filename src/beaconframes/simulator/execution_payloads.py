"""Execution payloads: the execution columns of the block table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from beaconframes.simulator import drawn_hex, identities
from beaconframes.simulator.drawn_hex import BLOCK_HASH, number_before
from beaconframes.simulator.duties import PROPOSED
from beaconframes.simulator.hex_text import null_unless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.calendar import Chain
    from beaconframes.consensus.registry import Bools, Ints

_GAS_LIMIT: Final = 60_000_000
_USUAL_BASE_FEE: Final = 800_000_000  # wei
_EXTRA: Final = (b"", b"geth go1.25 linux", b"Nethermind v1.34", b"besu 25.9", b"lamp oil", b"reth")
_BLOOM: Final = "0x" + "00" * 256
_BUILT: Final = 205  # of 256 blocks are made by a builder


class PayloadBuilder:
    """Builds execution payloads, each on top of the last canonical one."""

    def __init__(self, seed: int, recipients: Sequence[str], first_slot: int) -> None:
        """*recipients* has each validator's fee recipient for blocks without a builder."""
        self._seed = seed
        self._recipients = recipients
        self._builders = [builder.address for builder in identities.make_builders(seed)]
        self._number = first_slot
        self._parent = number_before(first_slot)
        self._base_fee = _USUAL_BASE_FEE

    def build_columns(
        self,
        rng: np.random.Generator,
        slots: dict[str, Ints],
        block_numbers: Ints,
        has_content: Bools,
        chain: Chain,
    ) -> dict[str, Any]:
        """Return the execution columns of the block table; null for slots without a payload.

        The columns of random hex are those that follow from the previous block.
        """
        count = len(has_content)
        hashes = drawn_hex.draw(self._seed, BLOCK_HASH, block_numbers).to_list()
        noise = rng.integers(-25, 26, count)
        extra = [_EXTRA[kind] for kind in rng.integers(0, len(_EXTRA), count).tolist()]
        chained = self._build_chain(slots, has_content, block_numbers.tolist(), noise.tolist())
        gas = np.array(chained["exec_gas_used"])
        genesis = int(chain.genesis.timestamp())
        starts = (genesis + slots["slot"] * chain.seconds_per_slot) * 1_000_000
        columns: dict[str, Any] = {
            **chained,
            "exec_block_hash": block_numbers,
            "exec_fee_recipient": [
                self._choose_recipient(proposer, own)
                for proposer, own in zip(slots["proposer"].tolist(), hashes, strict=True)
            ],
            "exec_extra_data": [f"0x{data.hex()}" if data else None for data in extra],
            "exec_time": pl.Series(starts).cast(pl.Datetime("us", "UTC")),
            "exec_gas_limit": _GAS_LIMIT,
            # One text for all rows: a text per row would take a quarter of the table's memory.
            "exec_logs_bloom": _BLOOM,
        }
        rows: dict[str, Any] = {
            name: null_unless(has_content, values) for name, values in columns.items()
        }
        rows["exec_transactions_count"] = np.where(has_content, gas // 95_000, 0)
        rows["votes"] = [None] * len(has_content)  # counted for the last blocks only
        return rows

    def _choose_recipient(self, proposer: int, block_hash: str) -> str:
        """Return the fee recipient of a block: that of a builder, for most block hashes."""
        chance = int(block_hash[-2:], 16)
        if chance < _BUILT:
            return self._builders[chance % len(self._builders)]
        return self._recipients[proposer]

    def _build_chain(
        self, slots: dict[str, Ints], has_content: Bools, hashes: list[int], noise: list[int]
    ) -> dict[str, list[Any]]:
        """Return the columns that follow from the previous block: number, parent, gas, base fee."""
        numbers, parents, used, fees = [], [], [], []
        canonical = (has_content & (slots["status"] == PROPOSED)).tolist()
        previous = (self._number, self._parent, self._base_fee)
        previous_slot = -1
        for slot, is_canonical, own_hash, noise_percent in zip(
            slots["slot"].tolist(), canonical, hashes, noise, strict=True
        ):
            # Two blocks of one slot have the same parent.
            state = (
                previous if slot == previous_slot else (self._number, self._parent, self._base_fee)
            )
            previous_slot, previous = slot, state
            number, parent, fee = state
            # Demand falls when the base fee rises, so that the fee stays near its usual value.
            percent = 50 + noise_percent + max(-20, min(20, 10 - 10 * fee // _USUAL_BASE_FEE))
            gas = _GAS_LIMIT * percent // 100 + slot % 9_973
            numbers.append(number)
            parents.append(parent)
            used.append(gas)
            fees.append(fee)
            if is_canonical:
                half = _GAS_LIMIT // 2
                self._number, self._parent = number + 1, own_hash
                # EIP-1559: the base fee changes by an eighth of the distance to half-full blocks.
                change = fee * abs(gas - half) // half // 8
                self._base_fee = fee + max(change, 1) if gas > half else fee - change
        return {
            "exec_block_number": numbers,
            "exec_parent_hash": parents,
            "exec_gas_used": used,
            "exec_base_fee_per_gas_wei": fees,
        }
