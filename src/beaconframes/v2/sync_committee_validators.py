"""Members of sync committees."""

from __future__ import annotations

from beaconframes.client import Subjects, SubjectsOrSet, Values, loader
from beaconframes.endpoint import (
    ChainName,
    Cursor,
    Endpoint,
    Envelope,
    PeriodSelector,
    ValidatorSelector,
)
from beaconframes.schema import Epoch, Period, Table, Text


class SyncCommitteeValidators(Table):
    """Members of sync committees. One row per member, with all fields of the service."""

    period = Period("Requested period.", context="request.sync_committee_period.number")
    view = Text("latest or next, if requested so.", context="request.sync_committee_period.view")
    start_epoch = Epoch("First epoch of the period.", context="range.epoch.start")

    keeps_every_field = True


SYNC_COMMITTEE_VALIDATORS = Endpoint(
    "sync_committee_validators",
    route="POST /api/v2/ethereum/sync-committee/validators",
    table=SyncCommitteeValidators,
    parameters=(
        ChainName(),
        PeriodSelector(SyncCommitteeValidators.period),
        ValidatorSelector(optional=True),
    ),
    pagination=Cursor(sized=False),
    envelope=Envelope.V2,
)


@loader(SYNC_COMMITTEE_VALIDATORS)
def load_sync_committee_validators(
    periods: Subjects = "latest", validators: SubjectsOrSet | None = None
) -> Values:
    """Load the members of sync committees, one row per member.

    `beaconframes.load_sync_committees` loads them from V1 by seat, one request per period.

    Parameters
    ----------
    periods
        Periods: one, or a list, range or Series of them; ``"latest"`` is the current period,
        ``"next"`` the one after it. The period of an epoch is ``epoch // 256``.
    validators
        Only rows of these validators: indices, public keys, or a set; see `load_validators`.
        Default: all.

    Returns
    -------
    polars.DataFrame
        In the order of the service. Every field of a record is a column.

    Notes
    -----
    ``POST /api/v2/ethereum/sync-committee/validators``. The shape of its response is not published:
    names and types of columns follow from the response. If the service does not have it yet, the
    call raises `NotServed`.
    """
    return {"periods": periods, "validators": validators}
