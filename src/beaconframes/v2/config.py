"""The settings of the network."""

from __future__ import annotations

from beaconframes.client import Values, loader
from beaconframes.endpoint import ChainName, Endpoint, Envelope, Shape
from beaconframes.schema import Table


class Config(Table):
    """The settings of the network. One row, with all fields of the service."""

    keeps_every_field = True


CONFIG = Endpoint(
    "config",
    route="POST /api/v2/ethereum/config",
    table=Config,
    parameters=(ChainName(),),
    envelope=Envelope.V2,
    shape=Shape.OBJECT,
)


@loader(CONFIG)
def load_config() -> Values:
    """Load the settings of the network, one row.

    `beaconframes.Chain` has the settings that beaconframes itself uses.

    Returns
    -------
    polars.DataFrame
        Every field of the response is a column.

    Notes
    -----
    ``POST /api/v2/ethereum/config``. The shape of its response is not published: names and types of
    columns follow from the response. If the service does not have it yet, the call raises
    `NotServed`. Never final.
    """
    return {}
