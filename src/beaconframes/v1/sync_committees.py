"""Members of sync committees, by seat."""

from __future__ import annotations

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import Endpoint, Finality, Numbers, Shape
from beaconframes.schema import Count, Epoch, Period, Position, Table, WholeCommittee


class SyncCommittees(Table):
    """Sync committees. One row per seat; a validator may hold several."""

    period = Period("Sync-committee period, 256 epochs.", key=True)
    seat = Position("Seat: the position of the bit in sync_aggregate_bits.", key=True)
    validator_index = Count("Validator in the seat.", wire="validators[]")
    start_epoch = Epoch("First epoch of the period.")
    end_epoch = Epoch("Last epoch of the period.")

    invariants = (WholeCommittee(),)


SYNC_COMMITTEES = Endpoint(
    "sync_committees",
    route="GET /api/v1/sync_committee/{period}",
    table=SyncCommittees,
    parameters=(
        Numbers(
            "periods",
            SyncCommittees.period,
            wire="period",
            tags=("latest", "next"),
            error="invalid epoch parameter",
        ),
    ),
    finality=Finality.WHEN_PUBLISHED,
    is_contiguous=True,
    absent="this period has no sync committee",
    shape=Shape.OBJECT,
)


@loader(SYNC_COMMITTEES, missing="periods without a committee")
def load_sync_committees(periods: Subjects = "latest") -> Values:
    """Load the members of sync committees, one row per seat.

    One request per period.

    Parameters
    ----------
    periods
        Periods: one, or a list, range or Series of them; ``"latest"`` is the current period,
        ``"next"`` the one after it. The period of an epoch is ``epoch // 256``. Numbers of periods
        without a committee cause a warning; a word without one, such as before Altair, does not.

    Returns
    -------
    polars.DataFrame
        Sorted by ``period``, ``seat``. The order of the seats is that of the bits in
        ``sync_aggregate_bits``. A validator with several seats has several rows.

    Notes
    -----
    ``GET /api/v1/sync_committee/{period}``. Final as soon as it is published.
    """
    return {"periods": periods}
