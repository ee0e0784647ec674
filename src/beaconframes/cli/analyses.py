"""The analyses of the command line: each function of `analysis`, with the loaders of its frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from beaconframes.cli import chart_input
from beaconframes.cli.loader_options import list_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

INCOME = {"income": "income-history"}
BALANCES = {"balances": "balance-history"}
PRODUCED = {"blocks": "produced-blocks"}
SLOTS = {"blocks": "epoch-slots"}
COMMITTEES = {"committees": "sync-committees"}
PROPOSALS = {"proposals": "proposals"}
VALIDATORS = {"validators": "validators"}
WITHDRAWALS = {"withdrawals": "validator-withdrawals"}
INDEX = {"index": "yield-index"}
STATS = {"stats": "validator-stats"}
CAUSES = PRODUCED | INDEX | {"attestations": "attestations", "slots": "epoch-slots"}
NOT_LOADED = ("stats", "network")
SUBJECTS = ("validators", "producers")
"""The arguments of loaders for which ``--validators`` is given."""


@dataclass(frozen=True)
class Analysis:
    """The frames of one function of `analysis`, each with the loader of its rows."""

    loaded: Mapping[str, str]
    """Frames that are loaded if no file has them. The first one sets the range of the others."""
    optional: Mapping[str, str]
    """Frames that are loaded with ``--with``."""
    files: tuple[str, ...] = ()
    """Frames that no loader returns."""
    source: str = ""
    """The analysis of these frames whose result is the first argument of the function."""

    @property
    def loaders(self) -> dict[str, str]:
        """Return the loader of each frame that has one."""
        return {**self.loaded, **self.optional}

    @property
    def takes_validators(self) -> bool:
        """Return whether frames are loaded for validators."""
        loaders = map(chart_input.require_loader, self.loaded.values())
        return any({*SUBJECTS} & list_arguments(loader).keys() for loader in loaders)

    @property
    def first(self) -> str:
        """Return the name of the first frame."""
        return next(iter(self.loaded))

    @property
    def frames(self) -> list[str]:
        """Return the names of all frames, the first one first."""
        return [*self.loaders, *self.files]


ANALYSES = {
    "income": Analysis({"frame": "income-history"}, PRODUCED),
    "ledger": Analysis(INCOME | WITHDRAWALS, PRODUCED, files=("prices",)),
    "performance": Analysis(
        INCOME | BALANCES | VALIDATORS,
        PRODUCED
        | PROPOSALS
        | COMMITTEES
        | INDEX
        | {"attestations": "attestations", "slots": "epoch-slots", "epochs": "epochs"},
    ),
    "apr": Analysis(INCOME | BALANCES, PRODUCED | VALIDATORS | INDEX),
    "own-yield": Analysis(INCOME | BALANCES | {"days": "yield-index"}, {}),
    "reconcile": Analysis(
        BALANCES
        | INCOME
        | WITHDRAWALS
        | VALIDATORS
        | {"deposits": "deposits", "blocks": "proposals"},
        {},
        files=("slot_income", "consolidations", "queue_events"),
    ),
    "problems": Analysis(INCOME | BALANCES | VALIDATORS | PROPOSALS, CAUSES, files=NOT_LOADED),
    "incidents": Analysis(
        INCOME | BALANCES | VALIDATORS | PROPOSALS,
        CAUSES,
        files=(*NOT_LOADED, "groups"),
        source="problems",
    ),
    "daily-income": Analysis(STATS, PRODUCED),
    "daily-income-gaps": Analysis(STATS, PRODUCED),
    "daily-losses": Analysis(STATS, INDEX),
    "daily-luck": Analysis(STATS | {"proposals": "proposals"} | INDEX, VALIDATORS),
    "daily-sync": Analysis(STATS, {}),
    "daily-votes": Analysis(STATS | VALIDATORS, {}),
    "daily-balances": Analysis(BALANCES, {}),
    "total-balances": Analysis(INDEX, {}),
    "completeness": Analysis({"frame": "income-history"} | VALIDATORS, {}),
    "attestation-effectiveness": Analysis({"attestations": "attestations"}, SLOTS),
    "attestation-faults": Analysis({"attestations": "attestations"}, SLOTS),
    "attestation-losses": Analysis(INCOME | BALANCES, VALIDATORS),
    "attestation-rates": Analysis(INCOME, {}),
    "proposal-luck": Analysis(BALANCES | PROPOSALS | {"epochs": "epochs"}, VALIDATORS),
    "sync-luck": Analysis(BALANCES | COMMITTEES | {"epochs": "epochs"}, VALIDATORS),
    "missed-proposals": Analysis(PROPOSALS | INCOME, PRODUCED | INDEX),
    "proposal-outcomes": Analysis(PROPOSALS, INCOME | PRODUCED | INDEX, files=("stats",)),
    "relay-payments": Analysis(PRODUCED, {}),
    "upcoming-duties": Analysis(VALIDATORS, COMMITTEES | {"duties": "v2.upcoming-duty-slots"}),
    "sync-income": Analysis(INCOME, {}),
    "sync-participation": Analysis(SLOTS, COMMITTEES),
    "sync-members": Analysis(SLOTS | COMMITTEES, {}),
    "sync-duties": Analysis(SLOTS | COMMITTEES, {}),
    "sync-against-committee": Analysis(SLOTS | COMMITTEES, {}),
}
"""Every function of `analysis` that takes rows of loaders, with its frames."""
