"""The tables of validators, epochs and latest state, as of the head."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from beaconframes.consensus.spec import FAR_FUTURE_EPOCH
from beaconframes.derive.validator_tables import find_statuses
from beaconframes.simulator import tables
from beaconframes.simulator.duties import MISSED, ORPHANED, PROPOSED, SCHEDULED, SLOT_STATUSES

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.consensus.registry import Ints
    from beaconframes.simulator.epoch import Epoch
    from beaconframes.simulator.registry import Registry

_PRICES = {"USD": ("$", 2_500), "EUR": ("€", 2_150), "GBP": ("£", 1_875), "JPY": ("¥", 372_500)}


def build_validators(
    registry: Registry, head: Epoch, *, pubkeys: list[str], credentials: list[str], names: list[str]
) -> pl.DataFrame:
    """Return validators after the first slot of the *head* epoch, one row per validator."""
    validator_count = len(head.balance)
    attested = registry.last_attestation[:validator_count]
    return tables.build_frame(
        "validators",
        {
            "validator_index": np.arange(validator_count),
            "pubkey": pubkeys[:validator_count],
            "status": find_statuses(
                head.number,
                slashed=registry.slashed[:validator_count],
                eligibility=registry.eligibility[:validator_count],
                activation=registry.activation[:validator_count],
                exit_epoch=registry.exit[:validator_count],
                attested=attested,
            ),
            "slashed": registry.slashed[:validator_count],
            "balance_gwei": head.balance,
            "effective_balance_gwei": head.effective,
            "activation_eligibility_epoch": _null_where(
                registry.eligibility[:validator_count], FAR_FUTURE_EPOCH
            ),
            "activation_epoch": _null_where(
                registry.activation[:validator_count], FAR_FUTURE_EPOCH
            ),
            "exit_epoch": _null_where(registry.exit[:validator_count], FAR_FUTURE_EPOCH),
            "withdrawable_epoch": _null_where(
                registry.withdrawable[:validator_count], FAR_FUTURE_EPOCH
            ),
            "last_attestation_slot": _null_where(attested, 0),
            "withdrawal_credentials": credentials[:validator_count],
            "name": names[:validator_count],
            "total_withdrawals_gwei": registry.withdrawn[:validator_count],
        },
    )


def build_epoch_row(epoch: Epoch, *, latest: int, finalized: int) -> dict[str, Any]:
    """Return the row of an epoch; the counts of the running epoch are 0."""
    slots, active = epoch.slots, epoch.active
    total, count = int(epoch.balance[active].sum()), int(active.sum())
    statuses = np.bincount(slots.statuses, minlength=len(SLOT_STATUSES))
    double_proposals = sum(s.kind == "proposer" for s in epoch.slashings)
    has_ended = epoch.number < latest
    kinds = [slashing.kind for slashing in epoch.slashings]
    counts = {
        "blocks_count": statuses[PROPOSED],
        "attestations_count": epoch.included_attestations[slots.canonical].sum(),
        "attester_slashings_count": kinds.count("attester"),
        "proposer_slashings_count": kinds.count("proposer"),
        "deposits_count": len(epoch.deposits),
        "withdrawals_count": len(epoch.withdrawals.validators),
        "voluntary_exits_count": len(epoch.exits),
        "voted_ether_gwei": epoch.target_balance,
    }
    return {
        "epoch": epoch.number,
        "finalized": epoch.number <= finalized,
        "validators_count": count,
        "average_validator_balance_gwei": total // count,
        "total_validator_balance_gwei": total,
        "global_participation_rate": epoch.target_balance / epoch.active_balance
        if has_ended
        else 0.0,
        "eligible_ether_gwei": epoch.active_balance,
        "proposed_blocks": int(statuses[PROPOSED]),
        "missed_blocks": int(statuses[MISSED]),
        "orphaned_blocks": int(statuses[ORPHANED]) + double_proposals,
        "scheduled_blocks": int(statuses[SCHEDULED]),
        "rewards_exported": epoch.number <= finalized,
        **{name: int(value) if has_ended else 0 for name, value in counts.items()},
    }


def build_latest_state(chain: Chain, head: Epoch, slot: int, finalized: int) -> pl.DataFrame:
    """Return the latest state with fictional exchange rates, one row."""
    blocks = np.flatnonzero(head.slots.canonical)
    first = chain.first_slot_of(head.number)
    symbol, price = _PRICES["USD"]
    formatted = f'{price // 1000}<span class="thousands-separator"></span>{price % 1000:03}'
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
        "main_currency_ticker_price_formatted": formatted,
        "main_currency_ticker_price_k_formatted": formatted,
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
    return tables.build_frame("latest_state", rows.to_dict())


def _null_where(numbers: Ints, marker: int) -> pl.Series:
    series = pl.Series(numbers)
    return series.set(series == marker, None)
