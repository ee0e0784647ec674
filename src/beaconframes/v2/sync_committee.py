"""Sync committees: when they are on duty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.client import load
from beaconframes.endpoint import Endpoint, Envelope, Final, OnChain, PeriodIn, Shape
from beaconframes.schema import Epoch, Period, Table, Text, UnixTime
from beaconframes.v2._columns import ABSENT, FINALITY

if TYPE_CHECKING:
    from typing import Unpack

    import polars as pl

    from beaconframes.client import Explorer, Options, Subjects


class SyncCommittee(Table):
    """Sync committees. One row per period."""

    period = Period("Sync-committee period, 256 epochs.", key=True)
    start_epoch = Epoch("First epoch of the period.", beside="range.epoch.start")
    end_epoch = Epoch("Last epoch of the period.", beside="range.epoch.end")
    start_time = UnixTime("Start of the period, UTC.", beside="range.timestamp.start")
    end_time = UnixTime("Its last second, UTC.", beside="range.timestamp.end")
    finality = Text(FINALITY)


SYNC_COMMITTEE = Endpoint(
    "sync_committee",
    route="POST /api/v2/ethereum/sync-committee",
    table=SyncCommittee,
    parameters=(OnChain(), PeriodIn(SyncCommittee.period)),
    finality=Final.AT_FINALITY,
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
    absent=ABSENT,
)


def load_sync_committee(
    periods: Subjects = "latest", *, explorer: Explorer | None = None, **options: Unpack[Options]
) -> pl.DataFrame:
    """Load when sync committees are on duty, one row per period. One request each.

    Who sits in them is in `load_sync_committee_validators`, and by seat in
    `beaconframes.load_sync_committees`.

    Parameters
    ----------
    periods
        Periods: one, or a list, range or Series of them; ``"latest"`` is the current one,
        ``"next"`` the one after it. An epoch's period is ``epoch // 256``.
    explorer
        The explorer to ask; left out, the one of ``bf.connect`` or ``bf.local``.
    options
        ``strict=True`` raises `MissingRows` for periods without a committee, instead of warning.

    Returns
    -------
    polars.DataFrame
        Sorted by ``period``.

    Notes
    -----
    ``POST /api/v2/ethereum/sync-committee``. Final once its last epoch is.
    """
    return load(SYNC_COMMITTEE, explorer, options, periods=periods)
