# ruff: noqa: I001
# The public names of beaconframes; `__init__.py` imports each on its first use. They are sorted by
# purpose, and help texts and the reference list them in this order.

# Connect to a service, or serve a dataset.
from beaconframes.client import (
    Explorer as Explorer,
    connect as connect,
)
from beaconframes.server import (
    Local as Local,
    local as local,
)
from beaconframes.opened_dataset import (
    OpenedDataset as OpenedDataset,
    open as open,  # noqa: A004
)
from beaconframes.beacon_node import (
    Node as Node,
    node as node,
)
from beaconframes.config import settings as settings
from beaconframes.calendar import (
    MAINNET as MAINNET,
    HOODI as HOODI,
    Chain as Chain,
)
from beaconframes.time_range import local_range as local_range

# Requests, the store and missing rows.
from beaconframes.client import (
    Plan as Plan,
    plan as plan,
    Quota as Quota,
    quota as quota,
    Store as Store,
    store as store,
)
from beaconframes.fetch.missing_report import missing as missing

# Load validators.
from beaconframes.v1 import (
    load_validators as load_validators,
    load_income_history as load_income_history,
    load_balance_history as load_balance_history,
    load_proposals as load_proposals,
    load_attestations as load_attestations,
    load_validator_withdrawals as load_validator_withdrawals,
    load_deposits as load_deposits,
    load_bls_changes as load_bls_changes,
    load_performance as load_performance,
    load_execution_performance as load_execution_performance,
    load_attestation_efficiency as load_attestation_efficiency,
    load_proposal_luck as load_proposal_luck,
    load_validator_stats as load_validator_stats,
    load_leaderboard as load_leaderboard,
    load_deposit_origin as load_deposit_origin,
    load_withdrawal_credentials as load_withdrawal_credentials,
    load_validator_queue as load_validator_queue,
)

# Load the chain.
from beaconframes.v1 import (
    load_latest_state as load_latest_state,
    load_epochs as load_epochs,
    load_epoch_slots as load_epoch_slots,
    load_slots as load_slots,
    load_slot_attestations as load_slot_attestations,
    load_attester_slashings as load_attester_slashings,
    load_proposer_slashings as load_proposer_slashings,
    load_slot_withdrawals as load_slot_withdrawals,
    load_voluntary_exits as load_voluntary_exits,
    load_slot_deposits as load_slot_deposits,
    load_transaction_deposits as load_transaction_deposits,
    load_sync_committees as load_sync_committees,
    load_graffiti_wall as load_graffiti_wall,
    load_yield_index as load_yield_index,
    load_execution_blocks as load_execution_blocks,
    load_produced_blocks as load_produced_blocks,
    load_gas_fees as load_gas_fees,
    load_chart as load_chart,
)

# Load addresses, names and the staking pool.
from beaconframes.v1 import (
    load_address_balances as load_address_balances,
    load_token_balances as load_token_balances,
    load_names as load_names,
    load_pool_stats as load_pool_stats,
    load_pool_validators as load_pool_validators,
)

# Load from V2 of the API.
from beaconframes import v2 as v2

# Record attestation duties.
from beaconframes.v1.recorder import record as record

# Index your own node.
from beaconframes.beacon_node.index.indexing import index as index
from beaconframes.beacon_node.index.follower import follow as follow

# Analyse and draw.
from beaconframes import (
    analysis as analysis,
    plot as plot,
    interactive as interactive,
    wall as wall,
)

# Report on validators.
from beaconframes.reports import (
    Report as Report,
    report as report,
)
from beaconframes.validator_files import validators as validators

# Describe and convert.
from beaconframes.dictionary import (
    describe as describe,
    loaders as loaders,
)
from beaconframes.units import (
    to_eth as to_eth,
    to_gwei as to_gwei,
    to_wei as to_wei,
    to_tokens as to_tokens,
)
from beaconframes.pandas_frames import to_pandas as to_pandas
from beaconframes.frames import printable as printable

# Export datasets.
from beaconframes.dataset import Dataset as Dataset
from beaconframes.exports import (
    Export as Export,
    export as export,
)

# Errors.
from beaconframes import errors as errors
from beaconframes.errors import (
    BeaconframesError as BeaconframesError,
    MissingRows as MissingRows,
    UnreconciledRows as UnreconciledRows,
)

__version__: str
__all__: list[str]  # noqa: PYI035 - the names above
