"""The only package that touches the network."""

from beaconframes.client.connected import connect, use
from beaconframes.client.explorer import Explorer
from beaconframes.client.loading import Options, Subjects, load

__all__ = ["Explorer", "Options", "Subjects", "connect", "load", "use"]
