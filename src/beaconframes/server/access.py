"""Access: the caller of a request, its tier, and the requests and parameters it permits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from beaconframes.endpoint.validator_sets import IDENTIFIERS, PREMIUM_FIELDS
from beaconframes.errors import UsageError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from starlette.requests import Request

    from beaconframes.server.wire import Wire

Tier: TypeAlias = Literal["free", "premium"]
"""The subscription of a key."""

TIERS: tuple[Tier, ...] = get_args(Tier)
NO_KEY = "nokey"
"""In place of a tier: requests without a valid key."""

MAX_VALIDATORS: dict[Tier, int] = {"free": 20, "premium": 100}
"""Maximum number of validators in a request, by tier."""

PREMIUM_ENDPOINTS = {"metadata", "entities", "sub_entities", "owners", "operators"}

WINDOWS_ONLY = {"yield_index"}
"""Endpoints whose range may be anything but a window only with a premium key."""

UPGRADE = "upgrade your subscription to use it."

V2_PREFIX = "/api/v2/"
LIMIT = re.compile(r"(?:(?P<tier>nokey|free|premium):)?(?P<limits>[a-z0-9=,]+)", re.ASCII)


@dataclass(frozen=True)
class Limits:
    """Requests permitted per second, hour and month; None means no limit."""

    second: int | None = None
    hour: int | None = None
    month: int | None = None


SERVICE_LIMITS = {
    NO_KEY: Limits(second=2, hour=1_000),
    "free": Limits(second=1, month=1_000),
    "premium": Limits(second=5),
}
"""The limits of the public service's plans, as documented in 2026."""


@dataclass(frozen=True)
class Caller:
    """The sender of a request: its valid key and the tier of this key, if it has one."""

    key: str | None = None
    tier: Tier | None = None


class Access:
    """The keys of a server, their tiers, and the limits of each tier."""

    def __init__(
        self,
        keys: Mapping[str, Tier] | Collection[str] = (),
        *,
        wire: Wire = "spec",
        require_key: bool = False,
        limits: Mapping[str, Limits] | None = None,
    ) -> None:
        """Accept these *keys*; without any, every key is accepted as a premium key.

        V2 of the public *wire* always needs a key, as does every request with *require_key*. V1 of
        the public wire answers a request without a valid key, within the limits of no key.
        """
        keys = [keys] if isinstance(keys, str) else keys
        tiers = dict(keys) if isinstance(keys, Mapping) else dict.fromkeys(keys, "premium")
        for tier in tiers.values():
            if tier not in TIERS:
                raise UsageError(
                    f"tier {shorten(tier)} is not valid", hint="Use 'free' or 'premium'"
                )
        self.tiers = cast("dict[str, Tier]", tiers)
        self.wire = wire
        self.require_key = require_key
        self.limits = dict(limits or {})

    def identify(self, request: Request) -> Caller:
        """Return the caller of a request."""
        is_v2 = request.scope["path"].startswith(V2_PREFIX)
        key = parse_bearer_key(request) if is_v2 else parse_key(request)
        if not key:
            return Caller()
        if not self.tiers:
            return Caller(key, "premium")
        tier = self.tiers.get(key)
        return Caller(key, tier) if tier else Caller()

    def permits(self, request: Request) -> bool:
        """Return whether a request is answered; 401 otherwise."""
        if self.identify(request).key is not None:
            return True
        if self.require_key:
            return False
        is_v2 = request.scope["path"].startswith(V2_PREFIX)
        return not is_v2 if self.wire == "public" else not self.tiers


def parse_limits(texts: Sequence[str]) -> dict[str, Limits]:
    """Return the limits of each tier, parsed from texts such as ``"free:second=1,month=1000"``.

    A text without a tier sets the limits of all tiers, and ``"service"`` those of the public
    service.
    """
    limits: dict[str, Limits] = {}
    for text in texts:
        if text == "service":
            limits |= SERVICE_LIMITS
            continue
        match = LIMIT.fullmatch(text)
        numbers = parse_assignments(match["limits"]) if match else None
        if match is None or numbers is None:
            raise UsageError(
                f"limits {shorten(text)} are not valid",
                hint="Write 'second=5,hour=1000,month=30000', 'free:second=1', or 'service'",
            )
        tiers = [match["tier"]] if match["tier"] else [NO_KEY, *TIERS]
        limits |= {tier: Limits(**numbers) for tier in tiers}
    return limits


def parse_assignments(text: str) -> dict[str, int] | None:
    """Return the numbers in ``second=5,hour=1000``; None if the text is not valid."""
    numbers: dict[str, int] = {}
    names = {field.name for field in fields(Limits)}
    for part in text.split(","):
        name, _, number = part.partition("=")
        if name not in names or name in numbers or not re.fullmatch("[1-9][0-9]{0,8}", number):
            return None
        numbers[name] = int(number)
    return numbers


def parse_key(request: Request) -> str | None:
    """Return the API key of a V1 request: from the query, or else from either header."""
    return (
        request.query_params.get("apikey")
        or request.headers.get("apikey")
        or request.headers.get("x-api-key")
    )


def parse_bearer_key(request: Request) -> str | None:
    """Return the API key of a V2 request."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


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
