"""Subscription tiers of V2: the endpoints, parameters and identifiers that a key permits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes.endpoint.validator_sets import IDENTIFIERS, PREMIUM_FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.server.access import Tier

MAX_VALIDATORS: dict[Tier, int] = {"free": 20, "premium": 100}
"""Maximum number of validators in a request, by tier."""

PREMIUM_ENDPOINTS = {"metadata", "entities", "sub_entities", "owners", "operators"}

WINDOWS_ONLY = {"yield_index"}
"""Endpoints whose range may be anything but a window only with a premium key."""

UPGRADE = "upgrade your subscription to use it."


def find_denial(endpoint: str, fields: Mapping[str, Any], tier: Tier) -> str | None:
    """Return the error message if a key of *tier* does not permit a request, otherwise None."""
    if tier != "premium" and endpoint in PREMIUM_ENDPOINTS:
        return f"this endpoint is not allowed for your subscription tier. {UPGRADE}"
    interval = fields.get("range")
    if tier != "premium" and endpoint in WINDOWS_ONLY and isinstance(interval, dict):
        for form in interval.keys() - {"evaluation_window"}:
            return f"the range {form} is not allowed for your subscription tier. {UPGRADE}"
    validator = fields.get("validator")
    if not isinstance(validator, dict):
        return None
    if tier != "premium" and (premium := PREMIUM_FIELDS & set(validator)):
        return f"the selector {min(premium)} is not allowed for your subscription tier. {UPGRADE}"
    identifiers, limit = validator.get(IDENTIFIERS), MAX_VALIDATORS[tier]
    if isinstance(identifiers, list) and len(identifiers) > limit:
        return (
            f"number of validator identifiers exceeds allowed limit of {limit} for your "
            "subscription tier. upgrade your subscription to name more."
        )
    return None
