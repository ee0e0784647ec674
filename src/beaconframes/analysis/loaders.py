"""The loaders of the frames of each analysis, for the command line; those of charts are the same.

Arguments of analyses say which frames they require. Frames without a loader come from files.
"""

FRAMES = {
    "attestations": "attestations",
    "balances": "balance_history",
    "blocks": "produced_blocks",
    "committees": "sync_committees",
    "days": "yield_index",
    "deposits": "deposits",
    "duties": "v2.upcoming_duty_slots",
    "epochs": "epochs",
    "income": "income_history",
    "index": "yield_index",
    "proposals": "proposals",
    "slots": "epoch_slots",
    "stats": "validator_stats",
    "validators": "validators",
    "withdrawals": "validator_withdrawals",
}
"""The loader of the rows of a frame, by the name of the argument."""
_INCOME = {"frame": "income_history"}
_SLOTS = {"blocks": "epoch_slots"}
OTHER_FRAMES = {
    "income": _INCOME,
    "completeness": _INCOME,
    "attestation_effectiveness": _SLOTS,
    "attestation_faults": _SLOTS,
    "sync_participation": _SLOTS,
    "sync_members": _SLOTS,
    "sync_duties": _SLOTS,
    "sync_against_committee": _SLOTS,
    "reconcile": {"blocks": "proposals"},
}
"""The loaders of frames whose argument has another meaning in this analysis."""
ALWAYS_LOADED = {
    "ledger": ("income", "withdrawals"),
    "reconcile": ("balances", "income", "withdrawals", "validators", "deposits", "blocks"),
    "problems": ("income", "balances", "validators", "proposals"),
    "missed_proposals": ("proposals", "income"),
}
"""Frames that are loaded although the function does not require them. The first one is first."""
ONLY_REQUIRED = ("stats",)
"""Frames that need a request per validator: if they are optional, they come from files only."""
UNUSED = {"missed_proposals": ("stats",)}
"""Frames that replace one that is always loaded, and would not be used beside it."""
SOURCES = {"incidents": "problems"}
"""Analyses of the result of another analysis."""
