"""Generation 2 as the local explorer serves it."""

from beaconframes.server.v2.answering import Generation2, endpoints_of, refused

__all__ = ["Generation2", "endpoints_of", "refused"]
