"""The catalogue of generation 1: every endpoint, its rows and its loader."""

from beaconframes.v1.balance_history import BALANCE_HISTORY, load_balance_history
from beaconframes.v1.epoch_slots import EPOCH_SLOTS, load_epoch_slots
from beaconframes.v1.epochs import EPOCHS, load_epochs
from beaconframes.v1.graffiti_wall import GRAFFITI_WALL, load_graffiti_wall
from beaconframes.v1.income_history import INCOME_HISTORY, load_income_history
from beaconframes.v1.latest_state import LATEST_STATE, load_latest_state
from beaconframes.v1.sync_committees import SYNC_COMMITTEES, load_sync_committees
from beaconframes.v1.validators import VALIDATORS, load_validators
from beaconframes.v1.yield_index import YIELD_INDEX, load_yield_index

ENDPOINTS = (
    VALIDATORS,
    INCOME_HISTORY,
    BALANCE_HISTORY,
    LATEST_STATE,
    EPOCHS,
    EPOCH_SLOTS,
    SYNC_COMMITTEES,
    GRAFFITI_WALL,
    YIELD_INDEX,
)

__all__ = [
    "ENDPOINTS",
    "load_balance_history",
    "load_epoch_slots",
    "load_epochs",
    "load_graffiti_wall",
    "load_income_history",
    "load_latest_state",
    "load_sync_committees",
    "load_validators",
    "load_yield_index",
]
