"""Places of validators in queues."""

from __future__ import annotations

from beaconframes.client import SubjectsOrSet, Values, loader
from beaconframes.endpoint import ChainName, Cursor, Endpoint, Envelope, ValidatorSelector
from beaconframes.schema import Epoch, Table


class ValidatorQueues(Table):
    """Places in queues. One row per record, with all fields of the service."""

    epoch = Epoch("Epoch of the observation.", context="range.epoch.end")

    keeps_every_field = True


VALIDATOR_QUEUES = Endpoint(
    "validator_queues",
    route="POST /api/v2/ethereum/validators/queues",
    table=ValidatorQueues,
    parameters=(ChainName(), ValidatorSelector()),
    pagination=Cursor(sized=False),
    envelope=Envelope.V2,
)


@loader(VALIDATOR_QUEUES)
def load_validator_queues(validators: SubjectsOrSet) -> Values:
    """Load the places of validators in queues, one row per record of the service.

    100 validators per request (20 on the smallest plans). Times are estimates from the current
    churn. `load_queues` loads the queues as a whole.

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
    ``POST /api/v2/ethereum/validators/queues``. Its request is assumed to be that of
    ``validators/sync-committee-periods``. The shape of its response is not published: names and
    types of columns follow from the response. If the service does not have it yet, the call raises
    `NotServed`.
    """
    return {"validators": validators}
