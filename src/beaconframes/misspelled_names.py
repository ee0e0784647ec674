"""The errors for names that do not exist, with the names that are probably meant."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORDS = {
    "apy": ("analysis.apr",),
    "effectiveness": ("analysis.attestation_rates",),
    "mev": ("analysis.relay_payments", "load_produced_blocks"),
    "raver": ("analysis.attestation_rates",),
    "tips": ("analysis.income", "load_produced_blocks"),
    "uptime": ("analysis.attestation_rates", "load_validator_stats"),
}
"""Words that other tools use: in any module, and in any case."""
SYNONYMS = {
    "Client": ("Explorer", "connect"),
    "analysis.net_income": ("analysis.income",),
    "chart": ("plot", "interactive"),
    "load_apr": ("load_yield_index",),
    "load_apy": ("load_yield_index", "v2.load_apy_roi"),
    "load_attestation_duties": ("load_attestations", "v2.load_slot_attestation_duties"),
    "load_balances": ("load_balance_history", "v2.load_balances"),
    "load_blocks": ("load_epoch_slots", "load_slots", "load_execution_blocks"),
    "load_committees": ("load_sync_committees",),
    "load_duties": ("load_attestations", "v2.load_slot_attestation_duties"),
    "load_effectiveness": ("load_attestation_efficiency",),
    "load_exits": ("load_voluntary_exits",),
    "load_gas": ("load_gas_fees",),
    "load_graffiti": ("load_graffiti_wall", "load_slots"),
    "load_head": ("load_latest_state",),
    "load_income": ("load_income_history",),
    "load_luck": ("load_proposal_luck",),
    "load_mev": ("load_produced_blocks",),
    "load_queue": ("load_validator_queue", "v2.load_queues"),
    "load_raver": ("load_attestation_efficiency",),
    "load_relay_payments": ("load_produced_blocks",),
    "load_rewards": ("load_income_history", "v2.load_rewards"),
    "load_slashings": ("load_attester_slashings", "load_proposer_slashings"),
    "load_tips": ("load_produced_blocks",),
    "load_uptime": ("load_validator_stats",),
    "load_wall": ("load_graffiti_wall",),
    "load_withdrawals": ("load_validator_withdrawals", "load_slot_withdrawals"),
    "load_yield": ("load_yield_index",),
    "plots": ("plot", "interactive"),
    "simulate": ("local",),
    "v2.load_balance_history": ("v2.load_balances",),
    "v2.load_income_history": ("v2.load_rewards",),
}
"""Names of `beaconframes` that a user may expect, and those of the same meaning."""

_ARGUMENTS = {"begin": "since", "end": "until", "from_": "since", "start": "since", "to": "until"}
"""Arguments of other libraries, and those of the same meaning."""


def missing_name(module: str, name: str, names: Iterable[str]) -> AttributeError:
    """Return the error for *name*, which is none of the public *names* of *module*."""
    path = module.removeprefix("beaconframes").removeprefix(".")
    start = f"{path}." if path else ""
    text = f"module {module!r} has no attribute {name!r}"
    # A synonym may be misspelled, too.
    known = {each: (start + each,) for each in names} | {
        other.removeprefix(start): own
        for other, own in SYNONYMS.items()
        if other.rpartition(".")[0] == path
    }
    known |= {name: _WORDS[name.lower()]} if name.lower() in _WORDS else {}
    # Tools look for names such as `_repr_html_`.
    near = [] if name.startswith("_") else get_close_matches(name, known, n=1, cutoff=0.7)
    meant = [f"bf.{each}" for match in near for each in known[match]]
    if meant:
        text += f". Did you mean {' or '.join(meant)}?"
    # With an object, Python would add a second suggestion.
    return AttributeError(text, name=name)


def wrong_arguments(error: TypeError, names: list[str]) -> TypeError | None:
    """Return the *error* of a call that does not fit, with the argument of *names* that is meant.

    None for an error of the function itself, and if no argument is near.
    """
    if error.__traceback__ is None or error.__traceback__.tb_next is not None:
        return None
    text = str(error)
    if unknown := re.search(r"unexpected keyword argument '(\w+)'", text):
        meant = {name: name for name in names} | {
            other: own for other, own in _ARGUMENTS.items() if own in names
        }
        for match in get_close_matches(unknown[1], meant, n=1, cutoff=0.7):
            return TypeError(f"{text}. Did you mean {meant[match]}?")
    elif "positional argument" in text and "given" in text:
        return TypeError(f"{text}. Pass the others by name: {', '.join(names)}")
    return None
