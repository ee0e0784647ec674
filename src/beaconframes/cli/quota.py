"""``beaconframes quota``: the limits of a key, and the remaining requests."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from beaconframes.cli.connection_options import connection_options, open_explorer
from beaconframes.cli.from_signature import command
from beaconframes.cli.rendering import print_object


@command(*connection_options())
def quota(**values: Any) -> None:
    """Print the limits of the key, and the remaining requests.

    No request is sent: the figures are the last ones that the service reported, and the requests
    since then.
    """
    from beaconframes.client import quota as read_quota

    with open_explorer(values, sends_requests=False) as explorer:
        key_quota = read_quota(explorer)
    print_object(asdict(key_quota), key_quota)
