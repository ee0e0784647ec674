"""Generation 2 as the local explorer serves it."""

from beaconframes.service.generation2.answering import Generation2, endpoints_of, refused

__all__ = ["Generation2", "endpoints_of", "refused"]
