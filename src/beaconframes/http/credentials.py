"""Credentials in the address of a node: user name and password, a token in the path, a query.

Providers of hosted nodes put the key into the address. The address is split before its first use:
what is shown holds no secret, and the secret parts are added as the request is sent.
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from beaconframes.addresses import check_url
from beaconframes.errors import ConfigError
from beaconframes.secret import Secret

if TYPE_CHECKING:
    import httpx

MIN_TOKEN_LENGTH = 16
"""Characters: a longer part of a path is a token, as in https://node.example/v2/<token>."""
MIN_REDACTED_LENGTH = 4
"""Characters: a shorter password also occurs in texts that have nothing to do with it."""
ENCODING_HINT = (
    "Percent-encode special characters of a user name or password, such as %2F for / and %40 for @"
)


class Credentials:
    """The secret parts of an address: no output contains them."""

    def __init__(self, user: str | None, path: str, query: str) -> None:
        self._authorization = None
        secrets = [path, query, *(text.partition("=")[2] for text in query.split("&"))]
        secrets += [part for part in path.split("/") if len(part) >= MIN_TOKEN_LENGTH]
        if user is not None:
            name, _, password = (unquote(text) for text in user.partition(":"))
            encoded = b64encode(f"{name}:{password}".encode()).decode()
            self._authorization = _secret(encoded)
            secrets += [encoded.rstrip("="), f"{name}:{password}", password, user]
            secrets += [name] if len(name) >= MIN_TOKEN_LENGTH else []
        self._path = _secret(path) if path else None
        self._query = _secret(query) if query else None
        chosen = sorted({text for text in secrets if len(text) >= MIN_REDACTED_LENGTH}, key=len)
        self.secrets = tuple(_secret(text) for text in reversed(chosen))
        """What must not appear in any text, longest first."""

    def __repr__(self) -> str:
        return "Credentials('***')"

    def apply(self, request: httpx.Request) -> httpx.Request:
        """Add the secret parts to *request*: its last change before it is sent.

        The path goes into the target of the request only, which the HTTP client does not log.
        """
        if self._authorization is not None:
            request.headers["Authorization"] = f"Basic {self._authorization.reveal()}"
        if self._path is not None or self._query is not None:
            target = request.url.raw_path
            if self._path is not None:
                # Without a route, the path is sent as it is: some servers do not know it with "/".
                target = self._path.reveal().encode() + (b"" if target == b"/" else target)
            if self._query is not None:
                sign = b"&" if b"?" in target else b"?"
                target += sign + self._query.reveal().encode()
            request.extensions = {**request.extensions, "target": target}
        return request


def split_address(address: str | Secret) -> tuple[str, Credentials | None]:
    """Return the address of a node without its credentials, and the credentials.

    Plain http with credentials is allowed for this machine only, as with API keys.
    """
    outcome = _split_address(address.reveal() if isinstance(address, Secret) else address)
    # Raised here, so that no frame of this module holds a credential.
    del address
    if isinstance(outcome, ConfigError):
        raise outcome
    return outcome


def _split_address(address: str) -> tuple[str, Credentials | None] | ConfigError:
    """Return what `split_address` returns, or the error to raise."""
    if not re.match(r"https?://", str(address), re.IGNORECASE):
        # The value may be a key in the wrong place, so the message does not contain it.
        return ConfigError(
            "the node's address does not start with http:// or https://",
            hint='Write it in full, such as "http://localhost:5052"',
        )
    try:
        parts = urlsplit(address)
        user, _, host = parts.netloc.rpartition("@")
    except ValueError:
        return ConfigError(
            "the node's address is not valid: it cannot be parsed", hint=ENCODING_HINT
        )
    # A "/" or "?" in a password ends the host, so that the rest of the password is sent to it.
    if "@" in parts.path + parts.query:
        return ConfigError(
            "the node's address is not valid: it contains @ after its host", hint=ENCODING_HINT
        )
    if parts.fragment:
        return ConfigError(
            "the node's address contains a fragment (#)", hint=f"Remove it. {ENCODING_HINT}"
        )
    path = parts.path.rstrip("/")
    has_token = any(len(part) >= MIN_TOKEN_LENGTH for part in path.split("/"))
    has_credentials = bool(user or has_token or parts.query)
    try:
        public = check_url(
            f"{parts.scheme}://{host}{'' if has_token else path}", has_key=has_credentials
        )
    except ConfigError as error:
        message = error.message.replace("the key would", "the credentials of the node would")
        hint = (error.hint or ENCODING_HINT).replace(
            "send no key (api_key=None)", "connect through SSH"
        )
        return ConfigError(message, hint=hint)
    if not has_credentials:
        return public, None
    return public, Credentials(user or None, path if has_token else "", parts.query)


def _secret(text: str) -> Secret:
    return Secret(text, source="a credential in the node's address", is_any_text=True)
