"""Periods of sync committees."""

from __future__ import annotations

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import ChainName, Endpoint, Envelope, Finality, PeriodSelector, Shape
from beaconframes.schema import Epoch, Period, Table, Text, UnixTime
from beaconframes.v2._columns import ABSENT, FINALITY


class SyncCommittee(Table):
    """Sync committees. One row per period."""

    period = Period("Sync-committee period, 256 epochs.", key=True)
    start_epoch = Epoch("First epoch of the period.", context="range.epoch.start")
    end_epoch = Epoch("Last epoch of the period.", context="range.epoch.end")
    start_time = UnixTime("Start of the period, UTC.", context="range.timestamp.start")
    end_time = UnixTime("Last second of the period, UTC.", context="range.timestamp.end")
    finality = Text(FINALITY, final_when=("finalized",))


SYNC_COMMITTEE = Endpoint(
    "sync_committee",
    route="POST /api/v2/ethereum/sync-committee",
    table=SyncCommittee,
    parameters=(ChainName(), PeriodSelector(SyncCommittee.period)),
    finality=Finality.AT_FINALITY,
    is_contiguous=True,
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
    absent=ABSENT,
)


@loader(SYNC_COMMITTEE, missing="periods without a committee")
def load_sync_committee(periods: Subjects = "latest") -> Values:
    """Load the periods of sync committees with their epochs and times, one row per period.

    One request per period. `load_sync_committee_validators` loads the members, and
    `beaconframes.load_sync_committees` loads them by seat.

    Parameters
    ----------
    periods
        Periods: one, or a list, range or Series of them; ``"latest"`` is the current period,
        ``"next"`` the one after it. The period of an epoch is ``epoch // 256``.

    Returns
    -------
    polars.DataFrame
        Sorted by ``period``.

    Notes
    -----
    ``POST /api/v2/ethereum/sync-committee``. Final once its last epoch is finalized.
    """
    return {"periods": periods}
