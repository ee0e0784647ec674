"""The epochs, slots and days in which a validator must have rows."""

import polars as pl
import pytest

from beaconframes.active_periods import Lifetime, find_periods, split_gaps
from beaconframes.calendar import MAINNET
from beaconframes.endpoint import Role
from beaconframes.v1 import ENDPOINTS
from beaconframes.v2 import ENDPOINTS as ENDPOINTS_V2

VALIDATORS = pl.DataFrame(
    [
        (1, 100, None, None, False), (2, None, None, None, False), (3, 0, 150, 400, False),
        (4, 0, 150, 400, True), (5, 120, 130, 400, False),
    ],
    schema=["validator_index", "activation_epoch", "exit_epoch", "withdrawable_epoch", "slashed"],
    orient="row",
)  # fmt: skip
"""Since epoch 100; never active; exited; slashed; active for ten epochs."""


def split(unit, first, last, lifetime=Lifetime.PENALTIES, indices=range(1, 6)):
    """Return the missing and the impossible parts of a gap of each validator."""
    gaps = pl.DataFrame({"validator_index": indices, f"first_{unit}": first, f"last_{unit}": last})
    periods = find_periods(VALIDATORS, lifetime, unit, MAINNET)
    parts = split_gaps(gaps, periods, unit)
    return [sorted(part.rows()) for part in parts]


def test_gaps_are_split_at_activation_and_exit():
    """G1: the parts outside of the active period cannot exist; those of others are missing."""
    why = "not returned by the service"
    missing, impossible = split("epoch", 50, 200, indices=range(1, 7))

    assert [
        (1, 100, 200, why), (3, 50, 149, why), (4, 50, 200, why), (5, 120, 129, why),
        (6, 50, 200, why),
    ] == missing  # fmt: skip
    assert [
        (1, 50, 99, "not active yet"), (2, 50, 200, "not active yet"), (3, 150, 200, "exited"),
        (5, 50, 119, "not active yet"), (5, 130, 200, "exited"),
    ] == impossible  # fmt: skip


@pytest.mark.parametrize(
    ("lifetime", "ends"),
    [
        (Lifetime.DUTIES, {3: 149, 4: 149}),
        (Lifetime.PENALTIES, {3: 149, 4: 398}),
        (Lifetime.BALANCE, {3: 399, 4: 399}),
    ],
)
def test_the_last_epoch_depends_on_the_table(lifetime, ends):
    """G1: a slashed validator is penalized while its next epoch is not withdrawable."""
    missing, _ = split("epoch", 100, 500, lifetime, indices=[3, 4])

    assert ends == {index: last for index, _, last, _ in missing}


def test_partial_days_and_whole_epochs_of_slots_count():
    """G1: a validator active in a part of a day has a row for it."""
    days, no_days = split("day", 0, 5, indices=[1, 2, 3])
    slots, no_slots = split("slot", 0, 3300, indices=[1])

    assert [(1, 0, 5), (3, 0, 0)] == [row[:3] for row in days]
    assert [(2, 0, 5), (3, 1, 5)] == [row[:3] for row in no_days]
    assert [(1, 3200, 3300)] == [row[:3] for row in slots]
    assert [(1, 0, 3199)] == [row[:3] for row in no_slots]


@pytest.mark.parametrize("endpoint", [*ENDPOINTS, *ENDPOINTS_V2], ids=lambda e: e.path)
def test_endpoints_of_validators_declare_the_lifetime(endpoint):
    """G1: without it, an exited validator would be reported as missing."""
    subjects = [
        parameter
        for parameter in endpoint.parameters_of(Role.SUBJECT)
        if parameter.rows_column is not None
        and parameter.rows_column.name == "validator_index"
        and getattr(parameter, "required", True)
    ]

    assert bool(subjects) == (endpoint.lifetime is not None)
