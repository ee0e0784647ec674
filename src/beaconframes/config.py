"""Settings: arguments override blocks, ``connect()``, environment variables and defaults.

================  =============================  ==========================================
setting           variable                       meaning
================  =============================  ==========================================
``url``           ``BEACONFRAMES_URL``           the explorer's address; None: the public one
``api_key``       ``BEACONFRAMES_API_KEY``       the API key; never shown
``chain``         ``BEACONFRAMES_CHAIN``         ``mainnet``, ``hoodi`` or a ``Chain``
``rate``          ``BEACONFRAMES_RATE``          requests per second; None: the plan's limit
``store``         ``BEACONFRAMES_STORE``         store final rows: true, false or a folder
``store_limit``   ``BEACONFRAMES_STORE_LIMIT``   largest size of the store, such as ``2GB``
``offline``       ``BEACONFRAMES_OFFLINE``       read from the store only
``frame``         ``BEACONFRAMES_FRAME``         kind of frame that loaders return
``strict``        ``BEACONFRAMES_STRICT``        raise ``MissingRows`` instead of a warning
``progress``      ``BEACONFRAMES_PROGRESS``      show progress; None: in terminals, notebooks
``max_requests``  ``BEACONFRAMES_MAX_REQUESTS``  limit per call; None: no limit
``timeout``       ``BEACONFRAMES_TIMEOUT``       seconds for one request, or for it and a call
``state``         ``BEACONFRAMES_STATE``         folder of the shared rate limit, or false
``node``          ``BEACONFRAMES_NODE``          the address of `bf.node`; never shown
``execution``     ``BEACONFRAMES_EXECUTION``     its execution node; never shown
================  =============================  ==========================================

An empty variable counts as unset.
"""

from __future__ import annotations

import contextlib
import difflib
import ipaddress
import os
import re
from contextvars import ContextVar
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from beaconframes.errors import ConfigError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_PREFIX = "BEACONFRAMES_"
_OPTIONAL = {
    "url",
    "api_key",
    "rate",
    "store",
    "store_limit",
    "progress",
    "max_requests",
    "timeout",
    "state",
    "node",
    "execution",
}
_SECRETS = {"api_key", "node", "execution"}
_BOOLEANS = {"offline", "strict", "progress"}
_FOLDERS = {"store", "state"}
_YES_NO = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def parse_timeout(text: str) -> tuple[float | None, ...]:
    """Return the seconds in *text*: "30" for one request, "30,600" also for a whole call."""
    numbers = [float(part) if part.strip() else None for part in text.split(",")]
    return (*numbers, None) if len(numbers) == 1 else tuple(numbers)


_NUMBERS: dict[str, Callable[[str], Any]] = {
    "rate": float,
    "max_requests": int,
    "timeout": parse_timeout,
}


class Secret:
    """A key that only ``reveal()`` returns: no repr, format, pickle or ``vars`` contains it."""

    __slots__ = ("_reveal",)

    def __init__(
        self, value: str | Secret, *, source: str = "api_key", is_any_text: bool = False
    ) -> None:
        text: Any = value.reveal() if isinstance(value, Secret) else value
        if not isinstance(text, str) or not (is_any_text or re.fullmatch(r"[!-~]+", text)):
            raise ConfigError(
                f"{source} is not a valid key",
                hint="A key is one word of printable ASCII, without quotes, spaces or line breaks",
            )
        # In a closure, because debuggers and error reporters print every attribute they find.
        self._reveal: Callable[[], str] = lambda: text

    def reveal(self) -> str:
        """Return the key itself. Never log, print or store what this returns."""
        return self._reveal()

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return format("***", spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.reveal() == other.reveal()

    def __hash__(self) -> int:
        return hash((Secret, self.reveal()))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> tuple[Callable[[], Secret], tuple[()]]:
        return _unpickle_secret, ()


def _unpickle_secret() -> Secret:
    """Return a secret without its key: ``reveal()`` raises an error."""

    def reveal() -> str:
        raise ConfigError(
            "the API key is missing, because keys are not pickled",
            hint=f"Set {_PREFIX}API_KEY, or pass api_key= again",
        )

    secret = Secret.__new__(Secret)
    secret._reveal = reveal  # noqa: SLF001
    return secret


@dataclass(frozen=True)
class Settings:
    """The settings in force, validated; the docstring of the module has a table of them."""

    url: str | None = None
    api_key: Secret | None = None
    chain: str | Any = "mainnet"
    rate: float | None = None
    store: Path | bool | None = None
    store_limit: int | None = None
    offline: bool = False
    frame: Literal["polars", "pandas"] = "polars"
    strict: bool = False
    progress: bool | None = None
    max_requests: int | None = None
    timeout: float | tuple[float | None, float | None] | None = None
    state: Path | bool | None = None
    node: Secret | None = None
    execution: Secret | None = None

    def __post_init__(self) -> None:
        for name in _NAMES:
            object.__setattr__(self, name, _check_value(name, getattr(self, name), name))
        if self.url is not None:
            check_url(self.url, has_key=self.api_key is not None)


_NAMES = tuple(field.name for field in fields(Settings))
_connected: dict[str, Any] = {}
_block: ContextVar[dict[str, Any]] = ContextVar("settings of the block")


def current(**arguments: Any) -> Settings:
    """Return the settings in force.

    *arguments* override all others; None means not given. A key is used with the address of its
    own level or of a lower level, never with the address of a higher level.
    """
    layers = _override(_connected, _block.get({}))
    layers = _override(layers, _check_values(arguments, none_is_value=False))
    return Settings(**_override(_read_environment(without=layers), layers))


def is_chain_given(argument: Any = None) -> bool:
    """Return whether the chain is an argument, or set by the user, instead of the default."""
    layers = _override(_connected, _block.get({}))
    given = {**_read_environment(without=layers), **layers}
    return argument is not None or "chain" in given


@contextlib.contextmanager
def settings(**overrides: Any) -> Iterator[Settings]:
    """Use other settings inside a ``with`` block, in this thread or task only.

    Blocks nest; the end of a block restores the previous settings. ``api_key=None`` means no key,
    even if the environment has one; the same holds for other settings that can be None.
    """
    token = _block.set(_override(_block.get({}), _check_values(overrides)))
    try:
        yield current()
    finally:
        _block.reset(token)


def configure(**values: Any) -> None:
    """Set the settings of the whole process, and drop those of an earlier call.

    Dropping them keeps the key of one address from being sent to the next.
    """
    global _connected  # noqa: PLW0603
    _connected = _check_values(values)


def reset() -> None:
    """Drop the settings of ``configure()``: environment and defaults apply again."""
    configure()


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


def _check_values(values: dict[str, Any], *, none_is_value: bool = True) -> dict[str, Any]:
    """Validate settings, and return them in their own types."""
    # Secrets come first, so that no traceback of a later error has one in a local variable.
    for name in _SECRETS & values.keys():
        values[name] = _check_value(name, values[name], name)
    for name in values:
        if name not in _NAMES:
            similar = difflib.get_close_matches(name, _NAMES, n=1)
            raise ConfigError(
                f"unknown setting {name!r}"
                + (f"; did you mean {similar[0]!r}?" if similar else ""),
                hint=f"Settings: {', '.join(_NAMES)}",
            )
    given = {n: value for n, value in values.items() if none_is_value or value is not None}
    return {name: _check_value(name, value, name) for name, value in given.items()}


def hide_address(value: Any, source: str) -> Secret:
    """Return the address of a node as a secret, because it may contain credentials."""
    if not isinstance(value, str | Secret):
        raise ConfigError(
            f"{source} is not an address",
            hint='Give the address of the node, such as "http://localhost:5052"',
        )
    return Secret(value, source=source, is_any_text=True)


def _override(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    """Return *lower* overridden by *upper*; a new address does not get the key of the old one."""
    if "url" in upper and "api_key" not in upper:
        upper = upper | {"api_key": None}
    return lower | upper


def _read_environment(*, without: Iterable[str]) -> dict[str, Any]:
    """Return the settings of the environment, except the overridden ones in *without*."""
    values: dict[str, Any] = {}
    for name in _NAMES:
        variable = f"{_PREFIX}{name.upper()}"
        text = os.environ.get(variable)
        if text is None or not text.strip() or name in without:
            continue
        value: Any = text
        if name in _NUMBERS:
            with contextlib.suppress(ValueError):
                value = _NUMBERS[name](text)
        elif name in _BOOLEANS or (name in _FOLDERS and text.strip().lower() in _YES_NO):
            value = _YES_NO.get(text.strip().lower(), text)
        values[name] = _check_value(name, value, variable)
    return values


def _check_value(name: str, value: Any, source: str) -> Any:
    """Validate one setting, and return it in its own type; errors name its *source*."""
    if value is None and name in _OPTIONAL:
        return None
    if name in _SECRETS:
        return Secret(value, source=source) if name == "api_key" else hide_address(value, source)
    if name == "url":
        try:
            return check_url(value)
        except ConfigError as error:
            raise ConfigError(f"{source}: {error.message}", hint=error.hint) from None
    if name == "timeout" and type(value) in {int, float}:
        value = value, None
    expected, is_valid = _RULES[name]
    if not is_valid(value):
        raise ConfigError(f"{source} is {shorten(value)}; it must be {expected}")
    if name in _FOLDERS and not isinstance(value, bool):
        try:
            return Path(value).expanduser()
        except RuntimeError:
            raise ConfigError(f"{source} is {value!r}, but this user does not exist") from None
    if name == "store_limit":
        return parse_size(value)
    return float(value) if name == "rate" else value


def parse_size(value: Any) -> int | None:
    """Return a number of bytes, from a number or a text such as "2GB" or "512 MiB"."""
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        number, prefix, binary = match.groups()
        unit = (1024 if binary else 1000) ** " kmgt".index(prefix.lower() or " ")
        value = int(float(number) * unit)
    return value if type(value) is int and value > 0 else None


_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_SWITCH = ("true or false", lambda value: isinstance(value, bool))
_FOLDER = (
    "true, false or a folder",
    lambda value: isinstance(value, str | os.PathLike | bool) and bool(str(value).strip()),
)
_RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "chain": (
        "the name of a chain, or a Chain",
        lambda value: bool(value) if isinstance(value, str) else hasattr(value, "genesis"),
    ),
    "rate": (
        "a number of requests per second above 0",
        lambda value: type(value) in {int, float} and 0 < value < 1e9,
    ),
    "timeout": (
        "a number of seconds above 0, or two: for one request, and for a whole call",
        lambda value: (
            isinstance(value, tuple)
            and len(value) == 2
            and all(
                seconds is None or (type(seconds) in {int, float} and 0 < seconds < 1e9)
                for seconds in value
            )
        ),
    ),
    "max_requests": (
        "a number of requests, 0 or more",
        lambda value: type(value) is int and value >= 0,
    ),
    "store": _FOLDER,
    "store_limit": (
        'a number of bytes above 0, or a size such as "2GB"',
        lambda value: parse_size(value) is not None,
    ),
    "state": _FOLDER,
    "frame": ('"polars" or "pandas"', ("polars", "pandas").__contains__),
    "offline": _SWITCH,
    "strict": _SWITCH,
    "progress": _SWITCH,
}
