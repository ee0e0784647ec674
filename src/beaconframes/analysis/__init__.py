"""Analysis of validators: frames in (polars, pandas, DuckDB, Dask, PySpark), the same kind out."""

from typing import TYPE_CHECKING

from beaconframes.analysis.apr import apr
from beaconframes.analysis.attestation_losses import attestation_losses, attestation_rates
from beaconframes.analysis.attestations import attestation_effectiveness, attestation_faults
from beaconframes.analysis.average_comparison import compare_with_average
from beaconframes.analysis.completeness import completeness
from beaconframes.analysis.daily_balances import daily_balances
from beaconframes.analysis.daily_duties import daily_losses, daily_sync, daily_votes
from beaconframes.analysis.daily_income import daily_income
from beaconframes.analysis.daily_income_gaps import daily_income_gaps
from beaconframes.analysis.daily_luck import daily_luck, total_balances
from beaconframes.analysis.daily_rates import daily_rates
from beaconframes.analysis.group_comparison import compare_groups
from beaconframes.analysis.incidents import incidents
from beaconframes.analysis.income import income
from beaconframes.analysis.income_columns import PENALTIES, REWARDS
from beaconframes.analysis.ledger import ledger
from beaconframes.analysis.ledger_totals import ledger_totals, yearly_totals
from beaconframes.analysis.luck import proposal_luck, sync_luck
from beaconframes.analysis.network_comparison import compare_with_network
from beaconframes.analysis.problem_totals import problem_totals
from beaconframes.analysis.problems import problems
from beaconframes.analysis.proposal_costs import missed_proposals
from beaconframes.analysis.proposals import proposal_outcomes, relay_payments
from beaconframes.analysis.reconciliation import reconcile, reconciliation_totals
from beaconframes.analysis.summary import performance
from beaconframes.analysis.sync_committees import sync_participation
from beaconframes.analysis.sync_duties import sync_against_committee, sync_duties, sync_members
from beaconframes.analysis.sync_income import sync_income
from beaconframes.analysis.upcoming_duties import upcoming_duties, upcoming_totals
from beaconframes.analysis.validator_yield import own_yield
from beaconframes.analysis.valuation import tax_rows
from beaconframes.misspelled_names import missing_name

__all__ = [
    "PENALTIES",
    "REWARDS",
    "apr",
    "attestation_effectiveness",
    "attestation_faults",
    "attestation_losses",
    "attestation_rates",
    "compare_groups",
    "compare_with_average",
    "compare_with_network",
    "completeness",
    "daily_balances",
    "daily_income",
    "daily_income_gaps",
    "daily_losses",
    "daily_luck",
    "daily_rates",
    "daily_sync",
    "daily_votes",
    "incidents",
    "income",
    "ledger",
    "ledger_totals",
    "missed_proposals",
    "own_yield",
    "performance",
    "problem_totals",
    "problems",
    "proposal_luck",
    "proposal_outcomes",
    "reconcile",
    "reconciliation_totals",
    "relay_payments",
    "sync_against_committee",
    "sync_duties",
    "sync_income",
    "sync_luck",
    "sync_members",
    "sync_participation",
    "tax_rows",
    "total_balances",
    "upcoming_duties",
    "upcoming_totals",
    "yearly_totals",
]


if not TYPE_CHECKING:  # Type checkers would accept every name.

    def __getattr__(name: str) -> object:
        """Raise an AttributeError that suggests a public name."""
        raise missing_name(__name__, name, __all__)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return __all__
