"""The local explorer: the same API, served from a dataset on this machine."""

from beaconframes.server.server import Local, Server, local, opened

__all__ = ["Local", "Server", "local", "opened"]
