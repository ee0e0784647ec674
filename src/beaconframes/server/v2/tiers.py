"""What a key may do: the plan that it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from beaconframes.endpoint.resolving import PREMIUM
from beaconframes.endpoint.sets import NAMED

if TYPE_CHECKING:
    from collections.abc import Mapping

Tier: TypeAlias = Literal["free", "premium"]

IDENTIFIERS: dict[Tier, int] = {"free": 20, "premium": 100}
"""Validators that one request may name."""

PREMIUM_ENDPOINTS = {"metadata", "entities", "sub_entities", "owners", "operators"}

UPGRADE = "upgrade your subscription to use it."


def forbidden(endpoint: str, body: Mapping[str, Any], tier: Tier) -> str | None:
    """Return why a key of *tier* may not ask for this, or None."""
    if tier != "premium" and endpoint in PREMIUM_ENDPOINTS:
        return f"this endpoint is not allowed for your subscription tier. {UPGRADE}"
    member = body.get("validator")
    if not isinstance(member, dict):
        return None
    if tier != "premium" and (ways := PREMIUM & set(member)):
        return f"the selector {min(ways)} is not allowed for your subscription tier. {UPGRADE}"
    items, most = member.get(NAMED), IDENTIFIERS[tier]
    if isinstance(items, list) and len(items) > most:
        return (
            f"number of validator identifiers exceeds allowed limit of {most} for your "
            "subscription tier. upgrade your subscription to name more."
        )
    return None
