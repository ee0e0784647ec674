"""Turn a proof-of-stake chain explorer into DataFrames.

::

    import beaconframes as bf

    with bf.local():
        income = bf.load_income_history(range(250), since=-250)
        bf.plot.income(income, every="day", unit="eth")
"""

from __future__ import annotations

# As type checkers know it: importing typing would be most of what this package costs.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from beaconframes import analysis, errors, interactive, plot, v2, wall
    from beaconframes.calendar import HOODI, MAINNET, Chain
    from beaconframes.client import Explorer, Plan, Quota, Store, connect, plan, quota, store
    from beaconframes.config import settings
    from beaconframes.dataset import Dataset
    from beaconframes.dictionary import describe
    from beaconframes.errors import BeaconframesError, MissingRows
    from beaconframes.exports import Export, export
    from beaconframes.frames import printable
    from beaconframes.server import Local, local
    from beaconframes.units import to_eth, to_gwei, to_pandas, to_wei
    from beaconframes.v1 import (
        load_address_balances,
        load_attestation_efficiency,
        load_attestations,
        load_attester_slashings,
        load_balance_history,
        load_bls_changes,
        load_chart,
        load_deposit_origin,
        load_deposits,
        load_epoch_slots,
        load_epochs,
        load_execution_blocks,
        load_execution_performance,
        load_gas_fees,
        load_graffiti_wall,
        load_income_history,
        load_latest_state,
        load_leaderboard,
        load_names,
        load_performance,
        load_pool_stats,
        load_pool_validators,
        load_produced_blocks,
        load_proposal_luck,
        load_proposals,
        load_proposer_slashings,
        load_slot_attestations,
        load_slot_deposits,
        load_slot_withdrawals,
        load_slots,
        load_sync_committees,
        load_token_balances,
        load_transaction_deposits,
        load_validator_queue,
        load_validator_stats,
        load_validator_withdrawals,
        load_validators,
        load_voluntary_exits,
        load_withdrawal_credentials,
        load_yield_index,
    )
    from beaconframes.v1._record import record

    __version__: str

_CONTENTS = {
    # whom to ask
    "beaconframes.client": (
        "Explorer",
        "connect",
        "Plan",
        "plan",
        "Quota",
        "quota",
        "Store",
        "store",
    ),
    "beaconframes.server": ("Local", "local"),
    "beaconframes.config": ("settings",),
    "beaconframes.calendar": ("HOODI", "MAINNET", "Chain"),
    # load: validators
    "beaconframes.v1": (
        "load_validators",
        "load_income_history",
        "load_balance_history",
        "load_proposals",
        "load_attestations",
        "load_validator_withdrawals",
        "load_deposits",
        "load_bls_changes",
        "load_execution_performance",
        "load_performance",
        "load_attestation_efficiency",
        "load_proposal_luck",
        "load_validator_stats",
        "load_leaderboard",
        "load_deposit_origin",
        "load_withdrawal_credentials",
        "load_validator_queue",
        # load: the chain
        "load_latest_state",
        "load_epochs",
        "load_epoch_slots",
        "load_slots",
        "load_slot_attestations",
        "load_attester_slashings",
        "load_proposer_slashings",
        "load_slot_withdrawals",
        "load_voluntary_exits",
        "load_slot_deposits",
        "load_transaction_deposits",
        "load_sync_committees",
        "load_graffiti_wall",
        "load_yield_index",
        "load_execution_blocks",
        "load_produced_blocks",
        "load_gas_fees",
        "load_chart",
        # load: addresses, names, the pool
        "load_address_balances",
        "load_token_balances",
        "load_names",
        "load_pool_stats",
        "load_pool_validators",
    ),
    "beaconframes.v1._record": ("record",),
    # look up
    "beaconframes.dictionary": ("describe",),
    # convert
    "beaconframes.units": ("to_eth", "to_gwei", "to_pandas", "to_wei"),
    "beaconframes.frames": ("printable",),
    # keep, publish
    "beaconframes.dataset": ("Dataset",),
    "beaconframes.exports": ("Export", "export"),
    # what goes wrong
    "beaconframes.errors": ("BeaconframesError", "MissingRows"),
}
_MODULES = ("analysis", "plot", "interactive", "wall", "errors", "v2")
_HOME = {name: module for module, names in _CONTENTS.items() for name in names}

__all__ = [
    "HOODI",
    "MAINNET",
    "BeaconframesError",
    "Chain",
    "Dataset",
    "Explorer",
    "Export",
    "Local",
    "MissingRows",
    "Plan",
    "Quota",
    "Store",
    "analysis",
    "connect",
    "describe",
    "errors",
    "export",
    "interactive",
    "load_address_balances",
    "load_attestation_efficiency",
    "load_attestations",
    "load_attester_slashings",
    "load_balance_history",
    "load_bls_changes",
    "load_chart",
    "load_deposit_origin",
    "load_deposits",
    "load_epoch_slots",
    "load_epochs",
    "load_execution_blocks",
    "load_execution_performance",
    "load_gas_fees",
    "load_graffiti_wall",
    "load_income_history",
    "load_latest_state",
    "load_leaderboard",
    "load_names",
    "load_performance",
    "load_pool_stats",
    "load_pool_validators",
    "load_produced_blocks",
    "load_proposal_luck",
    "load_proposals",
    "load_proposer_slashings",
    "load_slot_attestations",
    "load_slot_deposits",
    "load_slot_withdrawals",
    "load_slots",
    "load_sync_committees",
    "load_token_balances",
    "load_transaction_deposits",
    "load_validator_queue",
    "load_validator_stats",
    "load_validator_withdrawals",
    "load_validators",
    "load_voluntary_exits",
    "load_withdrawal_credentials",
    "load_yield_index",
    "local",
    "plan",
    "plot",
    "printable",
    "quota",
    "record",
    "settings",
    "store",
    "to_eth",
    "to_gwei",
    "to_pandas",
    "to_wei",
    "v2",
    "wall",
]


def _import(name: str) -> object:
    """Import what is asked for, when it is asked for: the package alone imports nothing heavy."""
    from importlib import import_module

    if name == "__version__":
        from importlib.metadata import version

        return version("beaconframes")
    if name in _MODULES:
        return import_module(f"beaconframes.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'beaconframes' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:
    # Hidden from type checkers, or every misspelt name would be right to them.
    __getattr__ = _import


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return sorted([*__all__, "__version__"])
