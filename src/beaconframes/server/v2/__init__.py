"""V2 of the API, as the local explorer serves it."""

from beaconframes.server.v2.service import ServiceV2, encode_error, find_endpoints

__all__ = ["ServiceV2", "encode_error", "find_endpoints"]
