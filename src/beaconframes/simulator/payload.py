"""Execution payloads: what the blocks carry of the other layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from beaconframes.simulator import identities
from beaconframes.simulator.duties import PROPOSED
from beaconframes.simulator.texts import digest, hexes, where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.calendar import Chain
    from beaconframes.simulator.preset import Bools, Ints

_GAS_LIMIT: Final = 60_000_000
_USUAL_BASE_FEE: Final = 800_000_000  # wei
_EXTRA: Final = (b"", b"geth go1.25 linux", b"Nethermind v1.34", b"besu 25.9", b"lamp oil", b"reth")
_BLOOM: Final = "0x" + "00" * 256
_BUILT: Final = 205  # of 256 blocks: those that a builder made


class Payloads:
    """Makes execution blocks, each on top of the last canonical one."""

    def __init__(self, seed: int, recipients: Sequence[str], first_number: int) -> None:
        """Take the address that each validator's fees go to if it builds the block itself."""
        self._recipients = recipients
        self._builders = [builder.address for builder in identities.builders(seed)]
        self._number = first_number
        self._parent = digest(seed, "execution genesis")
        self._base_fee = _USUAL_BASE_FEE

    def rows(
        self, rng: np.random.Generator, held: dict[str, Ints], real: Bools, chain: Chain
    ) -> dict[str, Any]:
        """Return the execution columns of the block table; null where there is no payload."""
        count = len(real)
        hashes = hexes(rng, count, 32)
        noise = rng.integers(-25, 26, count)
        extra = [_EXTRA[kind] for kind in rng.integers(0, len(_EXTRA), count).tolist()]
        chained = self._chain(held, real, hashes, noise.tolist())
        gas = np.array(chained["exec_gas_used"])
        genesis = int(chain.genesis.timestamp())
        starts = (genesis + held["slot"] * chain.seconds_per_slot) * 1_000_000
        columns: dict[str, list[Any]] = {
            **chained,
            "exec_block_hash": hashes,
            "exec_fee_recipient": [
                self._recipient(proposer, own)
                for proposer, own in zip(held["proposer"].tolist(), hashes, strict=True)
            ],
            "exec_state_root": hexes(rng, count, 32),
            "exec_receipts_root": hexes(rng, count, 32),
            "exec_random": hexes(rng, count, 32),
            "exec_extra_data": [f"0x{data.hex()}" if data else None for data in extra],
        }
        rows: dict[str, Any] = {name: where(real, values) for name, values in columns.items()}
        times = pl.Series(starts).cast(pl.Datetime("us", "UTC"))
        present = pl.when(pl.Series(real))
        rows["exec_time"] = pl.select(present.then(times)).to_series()
        rows["exec_gas_limit"] = pl.select(present.then(_GAS_LIMIT)).to_series()
        # One text for all rows: made row by row it would be a quarter of the table's memory.
        rows["exec_logs_bloom"] = pl.select(present.then(pl.lit(_BLOOM))).to_series()
        rows["exec_transactions_count"] = np.where(real, gas // 95_000, 0)
        rows["votes"] = [None] * len(real)  # counted for the last of them alone
        return rows

    def _recipient(self, proposer: int, block_hash: str) -> str:
        """Return who gets a block's fees: a builder, where the hash says that one made it."""
        chance = int(block_hash[-2:], 16)
        if chance < _BUILT:
            return self._builders[chance % len(self._builders)]
        return self._recipients[proposer]

    def _chain(
        self, held: dict[str, Ints], real: Bools, hashes: list[str], noise: list[int]
    ) -> dict[str, list[Any]]:
        """Return what follows from the block before: number, parent, gas used and base fee."""
        numbers, parents, used, fees = [], [], [], []
        canonical = (real & (held["fate"] == PROPOSED)).tolist()
        before = (self._number, self._parent, self._base_fee)
        slot = -1
        for at, follows, own, wobble in zip(
            held["slot"].tolist(), canonical, hashes, noise, strict=True
        ):
            # A twin stands on the same parent as its sibling.
            state = before if at == slot else (self._number, self._parent, self._base_fee)
            slot, before = at, state
            number, parent, fee = state
            # Demand falls when gas is dear, so that the fee stays about the usual.
            percent = 50 + wobble + max(-20, min(20, 10 - 10 * fee // _USUAL_BASE_FEE))
            gas = _GAS_LIMIT * percent // 100 + at % 9_973
            numbers.append(number)
            parents.append(parent)
            used.append(gas)
            fees.append(fee)
            if follows:
                half = _GAS_LIMIT // 2
                self._number, self._parent = number + 1, own
                # The rule of EIP-1559: an eighth of the distance to half-full blocks.
                change = fee * abs(gas - half) // half // 8
                self._base_fee = fee + max(change, 1) if gas > half else fee - change
        return {
            "exec_block_number": numbers,
            "exec_parent_hash": parents,
            "exec_gas_used": used,
            "exec_base_fee_per_gas_wei": fees,
        }
