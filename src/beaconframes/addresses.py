"""Addresses of services: valid, without credentials, and encrypted if a key is sent to them."""

from __future__ import annotations

import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

from beaconframes.errors import ConfigError


def check_url(url: Any, *, has_key: bool = False) -> str:
    """Validate the address of an explorer, and return it without a trailing slash.

    An address has the scheme http or https, a host, and optionally a path. Other parts are refused,
    because they could put a secret into logs. Plain http with a key is allowed for loopback only.
    """
    if not isinstance(url, str) or not re.match(r"https?://", url, re.IGNORECASE):
        # The value may be a key in the wrong place, so the message does not contain it.
        raise ConfigError(
            "the address does not start with http:// or https://",
            hint='Write it in full, such as "https://explorer.example"; a key belongs in api_key=',
        )
    if "@" in url:
        raise ConfigError(
            "the url contains a user name or password", hint="A key belongs in api_key="
        )
    if "?" in url or "#" in url:
        raise ConfigError(
            f"the url {re.split('[?#]', url)[0]!r} contains a query or fragment",
            hint="Remove it; a key belongs in api_key=",
        )
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or not re.fullmatch(r"[^\s\\\x00-\x1f\x7f]+", url):
        # The value may contain a password, so the message does not.
        raise ConfigError("the url is not valid: host or port cannot be parsed")
    if base := re.search(r"/api/v[12](/ethereum)?/*$", parts.path):
        raise ConfigError(
            f"the url ends in {base[0]}, which loaders append themselves",
            hint="Remove this end of the address",
        )
    if has_key and parts.scheme == "http" and not is_loopback(host):
        raise ConfigError(
            f"the key would be sent unencrypted to {host}",
            hint="Use https://, or send no key (api_key=None)",
        )
    return url.rstrip("/")


def is_loopback(host: str) -> bool:
    """Return whether *host* is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_local_url(url: str) -> bool:
    """Return whether *url* is an address on this machine."""
    return is_loopback(urlsplit(url).hostname or "")
