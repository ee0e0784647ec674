"""Analysis of validators: frames in (polars, pandas, DuckDB, Dask, PySpark), the same kind out."""

from typing import TYPE_CHECKING

from beaconframes.analysis.apr import apr
from beaconframes.analysis.attestations import attestation_effectiveness, attestation_faults
from beaconframes.analysis.completeness import completeness
from beaconframes.analysis.income import income
from beaconframes.analysis.income_columns import PENALTIES, REWARDS
from beaconframes.analysis.ledger import ledger
from beaconframes.analysis.proposals import missed_proposals, proposal_luck
from beaconframes.analysis.reconciliation import reconcile
from beaconframes.analysis.summary import performance
from beaconframes.analysis.sync_committees import sync_members, sync_participation
from beaconframes.analysis.sync_duties import sync_against_committee, sync_duties
from beaconframes.analysis.validator_yield import own_yield
from beaconframes.misspelled_names import missing_name

__all__ = [
    "PENALTIES",
    "REWARDS",
    "apr",
    "attestation_effectiveness",
    "attestation_faults",
    "completeness",
    "income",
    "ledger",
    "missed_proposals",
    "own_yield",
    "performance",
    "proposal_luck",
    "reconcile",
    "sync_against_committee",
    "sync_duties",
    "sync_members",
    "sync_participation",
]


if not TYPE_CHECKING:  # Type checkers would accept every name.

    def __getattr__(name: str) -> object:
        """Raise an AttributeError that suggests a public name."""
        raise missing_name(__name__, name, __all__)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return __all__
