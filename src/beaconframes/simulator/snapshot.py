"""How things stand at the head: the validators, the epochs, the latest state."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from beaconframes.simulator import tables
from beaconframes.simulator.duties import FATES, MISSED, ORPHANED, PROPOSED, SCHEDULED
from beaconframes.simulator.preset import FAR_FUTURE

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.simulator.epoch import Epoch
    from beaconframes.simulator.preset import Ints
    from beaconframes.simulator.registry import Registry

_PRICES = {"USD": ("$", 2_500), "EUR": ("€", 2_150), "GBP": ("£", 1_875), "JPY": ("¥", 372_500)}
_ONLINE_WITHIN = 64  # slots of the newest attestation


def validators(
    registry: Registry, head: Epoch, *, pubkeys: list[str], credentials: list[str], names: list[str]
) -> pl.DataFrame:
    """Return the validators as they stand at the first slot of the *head* epoch."""
    known = len(head.balance)
    attested = registry.last_attestation[:known]
    return tables.frame(
        "validators",
        {
            "validator_index": np.arange(known),
            "pubkey": pubkeys[:known],
            "status": statuses(registry, head.number, known),
            "slashed": registry.slashed[:known],
            "balance_gwei": head.balance,
            "effective_balance_gwei": head.effective,
            "activation_eligibility_epoch": _or_null(registry.eligibility[:known], FAR_FUTURE),
            "activation_epoch": _or_null(registry.activation[:known], FAR_FUTURE),
            "exit_epoch": _or_null(registry.exit[:known], FAR_FUTURE),
            "withdrawable_epoch": _or_null(registry.withdrawable[:known], FAR_FUTURE),
            "last_attestation_slot": _or_null(attested, 0),
            "withdrawal_credentials": credentials[:known],
            "name": names[:known],
            "total_withdrawals_gwei": registry.withdrawn[:known],
        },
    )


def statuses(registry: Registry, epoch: int, known: int) -> list[str]:
    """Return each validator's status; the first that fits, in the order of the service."""
    slashed, exit_epoch = registry.slashed[:known], registry.exit[:known]
    attested = registry.last_attestation[:known]
    offline = attested < attested.max() - _ONLINE_WITHIN
    left = exit_epoch <= epoch
    state = np.where(slashed, "slashing", np.where(exit_epoch < FAR_FUTURE, "exiting", "active"))
    working = np.char.add(state, np.where(offline, "_offline", "_online"))
    return list(
        np.select(
            [
                left & slashed,
                left,
                registry.eligibility[:known] == FAR_FUTURE,
                registry.activation[:known] > epoch,
            ],
            ["slashed", "exited", "deposited", "pending"],
            default=working,
        ).tolist()
    )


def epoch_row(epoch: Epoch, *, latest: int, finalized: int) -> dict[str, Any]:
    """Return the overview of an epoch; that of the running one is counted when it has ended."""
    slots, active = epoch.slots, epoch.active
    total, count = int(epoch.balance[active].sum()), int(active.sum())
    fates = np.bincount(slots.fates, minlength=len(FATES))
    twins = sum(s.kind == "proposer" for s in epoch.slashings)
    over = epoch.number < latest
    kinds = [slashing.kind for slashing in epoch.slashings]
    counts = {
        "blocks_count": fates[PROPOSED],
        "attestations_count": epoch.attestations[slots.canonical].sum(),
        "attester_slashings_count": kinds.count("attester"),
        "proposer_slashings_count": kinds.count("proposer"),
        "deposits_count": len(epoch.deposits),
        "withdrawals_count": len(epoch.withdrawals.validators),
        "voluntary_exits_count": len(epoch.exits),
        "voted_ether_gwei": epoch.voted,
    }
    return {
        "epoch": epoch.number,
        "finalized": epoch.number <= finalized,
        "validators_count": count,
        "average_validator_balance_gwei": total // count,
        "total_validator_balance_gwei": total,
        "global_participation_rate": epoch.voted / epoch.total if over else 0.0,
        "eligible_ether_gwei": epoch.total,
        "proposed_blocks": int(fates[PROPOSED]),
        "missed_blocks": int(fates[MISSED]),
        "orphaned_blocks": int(fates[ORPHANED]) + twins,
        "scheduled_blocks": int(fates[SCHEDULED]),
        "rewards_exported": epoch.number <= finalized,
        **{name: int(value) if over else 0 for name, value in counts.items()},
    }


def latest_state(chain: Chain, head: Epoch, slot: int, finalized: int) -> pl.DataFrame:
    """Return the latest state, with made-up exchange rates."""
    blocks = np.flatnonzero(head.slots.canonical)
    first = head.number * chain.slots_per_epoch
    symbol, price = _PRICES["USD"]
    written = f'{price // 1000}<span class="thousands-separator"></span>{price % 1000:03}'
    ether: dict[str, Any] = {}
    for layer in ("main", "el", "cl"):
        ether |= {
            f"{layer}_currency": "ETH",
            f"{layer}_currency_symbol": "ETH",
            f"{layer}_currency_price": 1.0,
            f"{layer}_currency_price_formatted": "1",
            f"{layer}_currency_price_k_formatted": "1",
        }
    row = {
        "current_slot": slot,
        "last_proposed_slot": first + int(blocks[-1]) if len(blocks) else first - 1,
        "current_epoch": head.number,
        "current_finalized_epoch": finalized,
        "finality_delay": head.number - finalized,
        "syncing": False,
        "ticker_currency": "USD",
        "ticker_currency_symbol": symbol,
        "selected_currency": "ETH",
        "selected_currency_symbol": "ETH",
        "main_currency_ticker_price": float(price),
        "main_currency_ticker_price_formatted": written,
        "main_currency_ticker_price_k_formatted": written,
        "main_currency_ticker_prices": json.dumps(
            {
                code: {"symbol": sign, "roundPrice": amount, "truncPrice": f"{amount / 1000:.1f}k"}
                for code, (sign, amount) in _PRICES.items()
            },
            separators=(",", ":"),
        ),
        **ether,
    }
    rows = pl.DataFrame([row]).with_columns(time=chain.time_expr("slot", pl.col("current_slot")))
    return tables.frame("latest_state", rows.to_dict())


def _or_null(numbers: Ints, marker: int) -> pl.Series:
    series = pl.Series(numbers)
    return series.set(series == marker, None)
