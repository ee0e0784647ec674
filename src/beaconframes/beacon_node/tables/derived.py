"""Tables that follow from other tables of a node; `beaconframes.derive` has their rows."""

from __future__ import annotations

from typing import Final

from beaconframes.beacon_node.tables.declaration import (
    BLOCKS,
    DUTIES,
    HEAD,
    INCOME,
    NOTHING,
    PAYMENTS,
    NodeTable,
)
from beaconframes.v1.attestation_efficiency import AttestationEfficiency
from beaconframes.v1.epochs import Epochs
from beaconframes.v1.execution_performance import ExecutionPerformance
from beaconframes.v1.leaderboard import Leaderboard
from beaconframes.v1.performance import Performance
from beaconframes.v1.proposal_luck import ProposalLuck
from beaconframes.v1.validator_stats import ValidatorStats
from beaconframes.v1.withdrawal_credentials import WithdrawalCredentials
from beaconframes.v1.yield_index import YieldIndex

# The rows of an epoch or a day stay once they are final; the other tables are replaced.
TABLES: Final = (
    NodeTable(Epochs, "epoch", tuple(tuple(dict.fromkeys(("blocks", *n))) for n in INCOME)),
    NodeTable(ValidatorStats, "day", INCOME),
    NodeTable(YieldIndex, "day", tuple((*needs, "execution") for needs in INCOME)),
    NodeTable(Performance, HEAD, INCOME),
    NodeTable(Leaderboard, HEAD, INCOME),
    NodeTable(ExecutionPerformance, HEAD, PAYMENTS),
    NodeTable(AttestationEfficiency, HEAD, DUTIES),
    NodeTable(ProposalLuck, HEAD, BLOCKS),
    NodeTable(WithdrawalCredentials, HEAD, NOTHING),
)
