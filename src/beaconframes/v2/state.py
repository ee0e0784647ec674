"""The state of the network."""

from __future__ import annotations

from beaconframes.client import Values, loader
from beaconframes.endpoint import ChainName, Endpoint, Envelope, Shape
from beaconframes.schema import Table


class State(Table):
    """The state of the network. One row, with all fields of the service."""

    keeps_every_field = True


STATE = Endpoint(
    "state",
    route="POST /api/v2/ethereum/state",
    table=State,
    parameters=(ChainName(),),
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
)


@loader(STATE)
def load_state() -> Values:
    """Load the state of the network, one row.

    `beaconframes.load_latest_state` loads that of V1, with documented columns.

    Returns
    -------
    polars.DataFrame
        Every field of the response is a column.

    Notes
    -----
    ``POST /api/v2/ethereum/state``. The shape of its response is not published: names and types of
    columns follow from the response. If the service does not have it yet, the call raises
    `NotServed`. Never final.
    """
    return {}
