"""Daily statistics of validators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from beaconframes.active_periods import Lifetime
from beaconframes.client import Explorer, Frame, Subjects, load
from beaconframes.endpoint import (
    Batch,
    ColumnParameter,
    Endpoint,
    ExpectedRows,
    Finality,
    Numbers,
    RequestRefused,
    Role,
)
from beaconframes.endpoint.identifiers import parse_number
from beaconframes.schema import Count, Day, DayTime, Gwei, Table
from beaconframes.time_range import Moment
from beaconframes.v1._validator_lookup import find_indices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint import ChainHead, Fields, JsonSchema
    from beaconframes.schema import Column

GENESIS_DEPOSITS = -1
"""The day before day 0: it has the deposits of genesis."""


class ValidatorStats(Table):
    """Daily statistics. One row per validator per day of the chain."""

    validator_index = Count("Validator.", key=True, wire=("validatorindex", "validator_index"))
    day = Day("Day: full days since genesis; -1 has the deposits of genesis.", key=True)
    time = DayTime("Start of the day, UTC.", wire="day_start")
    day_end = DayTime("End of the day, UTC.", wire="day_end", offset=1)
    start_balance_gwei = Gwei(
        "Balance at the start of the day.", wire="start_balance", nullable=True, minimum=0
    )
    end_balance_gwei = Gwei(
        "Balance at the end of the day.", wire="end_balance", nullable=True, minimum=0
    )
    min_balance_gwei = Gwei(
        "Smallest balance; 0 if the service has no value.",
        wire="min_balance",
        nullable=True,
        minimum=0,
    )
    max_balance_gwei = Gwei(
        "Largest balance; 0 if the service has no value.",
        wire="max_balance",
        nullable=True,
        minimum=0,
    )
    start_effective_balance_gwei = Gwei(
        "Effective balance at the start of the day.",
        wire="start_effective_balance",
        nullable=True,
        minimum=0,
    )
    end_effective_balance_gwei = Gwei(
        "Effective balance at the end of the day.",
        wire="end_effective_balance",
        nullable=True,
        minimum=0,
    )
    min_effective_balance_gwei = Gwei(
        "Smallest effective balance; 0 if the service has no value.",
        wire="min_effective_balance",
        nullable=True,
        minimum=0,
    )
    max_effective_balance_gwei = Gwei(
        "Largest effective balance; 0 if the service has no value. Some responses have the "
        "balance here.",
        wire="max_effective_balance",
        nullable=True,
        minimum=0,
    )
    missed_attestations = Count("Attestations missed.", nullable=True)
    orphaned_attestations = Count("Always 0.", nullable=True)
    proposed_blocks = Count("Blocks proposed.", nullable=True)
    missed_blocks = Count("Proposals missed.", nullable=True)
    orphaned_blocks = Count("Blocks proposed that did not become canonical.", nullable=True)
    attester_slashings = Count("Attester slashings in its blocks.", nullable=True)
    proposer_slashings = Count("Proposer slashings in its blocks.", nullable=True)
    deposits_count = Count("Deposits for the validator.", wire="deposits", nullable=True)
    deposits_amount_gwei = Gwei(
        "Sum of these deposits.", wire="deposits_amount", nullable=True, minimum=0
    )
    withdrawals_count = Count("Withdrawals of the validator.", wire="withdrawals", optional=True)
    withdrawals_amount_gwei = Gwei(
        "Sum of these withdrawals.", wire="withdrawals_amount", optional=True, minimum=0
    )
    participated_sync = Count("Sync-committee duties fulfilled.", nullable=True)
    missed_sync = Count("Sync-committee duties missed.", nullable=True)
    orphaned_sync = Count(
        "Sync-committee duties in blocks that did not become canonical.", nullable=True
    )


@dataclass(frozen=True)
class DayWindow(ColumnParameter):
    """An inclusive range of days: ``start_day`` and ``end_day``."""

    column: Column

    role = Role.RANGE
    args = ("since", "until")

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one range; without a start, from the day before day 0."""
        since, until = values["since"], values["until"]
        if since is None and until is None:
            return [Batch()]
        span = chain_head.span(0 if since is None else since, until, "day", length=1)
        if since is None:
            days = range(GENESIS_DEPOSITS, span.last + 1)
            expected = ExpectedRows({self.column.name: days}, required=False)
            return [Batch({"end_day": str(span.last)}, (expected,))]
        fields = {"start_day": str(span.first), "end_day": str(span.last)}
        return [
            Batch(fields, (ExpectedRows({self.column.name: range(span.first, span.last + 1)}),))
        ]

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        day = {"type": "integer", "minimum": GENESIS_DEPOSITS}
        return {"start_day": day, "end_day": day}


def day(fields: Fields, name: str, default: int) -> int:
    """Return the query parameter *name* as a day; refuse an invalid one."""
    text = fields.get(name, str(default))
    number = GENESIS_DEPOSITS if text == str(GENESIS_DEPOSITS) else parse_number(text)
    if number is None:
        raise RequestRefused(f"invalid {name} parameter")
    return number


VALIDATOR_STATS = Endpoint(
    "validator_stats",
    route="GET /api/v1/validator/stats/{validator}",
    table=ValidatorStats,
    parameters=(
        Numbers(
            "validators",
            ValidatorStats.validator_index,
            wire="validator",
            tags=(),
            error="invalid validator index",
            role=Role.SUBJECT,
        ),
    ),
    pagination=DayWindow(ValidatorStats.day),
    finality=Finality.WHEN_PUBLISHED,
    is_contiguous=True,
    lifetime=Lifetime.DUTIES,
)


def load_validator_stats(
    validators: Subjects,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load daily statistics, one row per validator per day of the chain, in gwei.

    One request per validator, for any range. The service takes indices only: public keys are
    looked up first, 100 per request.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length.
    since, until
        First and last day, inclusive: a day (full days since genesis), a negative number counting
        back from the latest complete day, a date, a datetime or ``"30d"``. Default: from the first
        to the latest day.
        A date is the whole UTC day: ``until="2026-10-01"`` includes all of October 1.
        ``"2026-10"`` is the whole month.
        A Timestamp is one instant: ``until=pd.Timestamp("2026-10-01")`` ends at its midnight.
    explorer, strict, lazy, frame, max_requests
        See `load_validators`. With ``strict=True``, missing rows raise `MissingRows` instead of a
        warning.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``, ``day``. Without *since*, the rows include day -1, which has
        the deposits of genesis. Balances may be null. The smallest and the largest balance are
        often 0, which means that the service has no value. Deposits and withdrawals are those
        between the first and the last balance: those in the first block of a day count for the
        day before. So end minus start, minus deposits, plus withdrawals is the income of the day.

    Notes
    -----
    ``GET /api/v1/validator/stats/{index}``. A day is published when it is over, and is then final.
    """
    indices = find_indices(validators, explorer=explorer, strict=strict, max_requests=max_requests)
    return load(
        VALIDATOR_STATS,
        {"validators": indices, "since": since, "until": until},
        explorer=explorer,
        strict=strict,
        lazy=lazy,
        frame=frame,
        max_requests=max_requests,
    )
