"""Sync-committee periods of validators."""

from __future__ import annotations

from beaconframes.client import SubjectsOrSet, Values, loader
from beaconframes.endpoint import ChainName, Cursor, Endpoint, Envelope, ValidatorSelector
from beaconframes.schema import Epoch, Table


class SyncCommitteePeriods(Table):
    """Sync-committee periods. One row per record, with all fields of the service."""

    first_epoch = Epoch("First epoch of the searched range.", context="range.epoch.start")
    last_epoch = Epoch("Last epoch of the searched range.", context="range.epoch.end")

    keeps_every_field = True


SYNC_COMMITTEE_PERIODS = Endpoint(
    "sync_committee_periods",
    route="POST /api/v2/ethereum/validators/sync-committee-periods",
    table=SyncCommitteePeriods,
    parameters=(ChainName(), ValidatorSelector(batched="refused")),
    pagination=Cursor(),
    envelope=Envelope.V2,
)


@loader(SYNC_COMMITTEE_PERIODS)
def load_sync_committee_periods(validators: SubjectsOrSet) -> Values:
    """Load the periods in which validators are in a sync committee, one row per record of the
    service.

    One request per page. At most 100 validators (20 on the smallest plans) or a dashboard of any
    size: rows may not name their validator, so rows of several requests could not be distinguished.
    `beaconframes.load_sync_committees` loads the members of a period.

    Parameters
    ----------
    validators
        Indices, public keys, or a set; see `load_validators`.

    Returns
    -------
    polars.DataFrame
        In the order of the service. Every field of a record is a column.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/sync-committee-periods``. The shape of its response is not
    published: names and types of columns follow from the response.
    """
    return {"validators": validators}
