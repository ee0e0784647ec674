"""The local explorer: the same API, served from a dataset on this machine."""

from beaconframes.server.http_server import Server
from beaconframes.server.local_explorer import Local, local

__all__ = ["Local", "Server", "local"]
