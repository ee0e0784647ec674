"""Settings: what an argument says, else the block, else ``connect``, else the environment.

================  =============================  ==========================================
setting           variable                       meaning
================  =============================  ==========================================
``url``           ``BEACONFRAMES_URL``           the explorer's address; None: the public one
``api_key``       ``BEACONFRAMES_API_KEY``       the key; it is never shown
``chain``         ``BEACONFRAMES_CHAIN``         a known name, or a ``Chain`` made by hand
``rate``          ``BEACONFRAMES_RATE``          requests per second; None: what the plan allows
``store``         ``BEACONFRAMES_STORE``         keep what is final: true, false, or in which folder
``offline``       ``BEACONFRAMES_OFFLINE``       answer from the store only
``frame``         ``BEACONFRAMES_FRAME``         "polars" or "pandas": what loaders return
``strict``        ``BEACONFRAMES_STRICT``        missing rows are an error, not a warning
``progress``      ``BEACONFRAMES_PROGRESS``      show progress; None: where somebody watches
``max_requests``  ``BEACONFRAMES_MAX_REQUESTS``  most of one call; None: as many as it takes
``state``         ``BEACONFRAMES_STATE``         where processes share a rate, or false
================  =============================  ==========================================
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_PREFIX = "BEACONFRAMES_"
_OPTIONAL = {"url", "api_key", "rate", "store", "progress", "max_requests", "state"}
_BOOLEANS = {"offline", "strict", "progress"}
_FOLDERS = {"store", "state"}
_NUMBERS: dict[str, Callable[[str], float]] = {"rate": float, "max_requests": int}
_YES_NO = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class Secret:
    """Hold a key so that only ``reveal()`` shows it: no repr, format, pickle or ``vars`` does."""

    __slots__ = ("_tell",)

    def __init__(self, value: str | Secret, *, source: str = "api_key") -> None:
        text: Any = value.reveal() if isinstance(value, Secret) else value
        if not isinstance(text, str) or not re.fullmatch(r"[!-~]+", text):
            raise ConfigError(
                f"{source} is no key",
                hint="A key is one word of printable ASCII, without quotes, spaces or line ends",
            )
        # In a closure, because debuggers and error reporters print every attribute they find.
        self._tell: Callable[[], str] = lambda: text

    def reveal(self) -> str:
        """Return the key itself. Never log, print or store what this returns."""
        return self._tell()

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
        return _left_behind, ()


def _left_behind() -> Secret:
    """Return what a pickled secret becomes elsewhere: one that asks for the key again."""

    def tell() -> str:
        raise ConfigError(
            "the key is not carried into another process",
            hint=f"Set {_PREFIX}API_KEY there, or pass api_key= again",
        )

    secret = Secret.__new__(Secret)
    secret._tell = tell  # noqa: SLF001
    return secret


@dataclass(frozen=True)
class Settings:
    """Hold the settings in force, each checked; the module's table says what they mean."""

    url: str | None = None
    api_key: Secret | None = None
    chain: str | Any = "mainnet"
    rate: float | None = None
    store: Path | bool | None = None
    offline: bool = False
    frame: Literal["polars", "pandas"] = "polars"
    strict: bool = False
    progress: bool | None = None
    max_requests: int | None = None
    state: Path | bool | None = None

    def __post_init__(self) -> None:
        for name in _KNOWN:
            object.__setattr__(self, name, _checked(name, getattr(self, name), name))
        if self.url is not None:
            check_url(self.url, has_key=self.api_key is not None)


_KNOWN = tuple(field.name for field in fields(Settings))
_connected: dict[str, Any] = {}
_block: ContextVar[dict[str, Any]] = ContextVar("settings of the block")


def current(**arguments: Any) -> Settings:
    """Return the settings in force here.

    *arguments* stand above all else; one that is None was not given. A key goes with the address
    that it was given with, or with one from further down: never with one given above it.
    """
    said = _over(_over(_connected, _block.get({})), _layer(arguments, none_counts=False))
    return Settings(**_over(_environment(without=said), said))


@contextlib.contextmanager
def settings(**overrides: Any) -> Iterator[Settings]:
    """Use other settings inside a ``with`` block, in this thread or task only.

    Blocks nest, and what was in force before returns at the end. ``api_key=None`` means no key,
    whatever the environment says; likewise the other settings that can be None.
    """
    token = _block.set(_over(_block.get({}), _layer(overrides)))
    try:
        yield current()
    finally:
        _block.reset(token)


def configure(**values: Any) -> None:
    """Set what holds for the whole process; what an earlier call set is forgotten.

    Nothing is carried over, lest the key of one address be sent to the next.
    """
    global _connected  # noqa: PLW0603
    _connected = _layer(values)


def reset() -> None:
    """Forget what ``configure`` set; the environment and the defaults hold again."""
    configure()


def check_url(url: Any, *, has_key: bool = False) -> str:
    """Return the address of an explorer, without a slash at its end, or refuse it.

    It is http or https with a host, perhaps with a path; anything else in it could carry a secret
    into logs. A key travels over plain http to this machine only.
    """
    if not isinstance(url, str) or not re.match(r"https?://", url, re.IGNORECASE):
        # It may be a key in the wrong place, so it is not shown.
        raise ConfigError(
            "the url does not begin with http:// or https://",
            hint='Give it whole, such as "https://explorer.example"; a key goes into api_key=',
        )
    if "@" in url:
        raise ConfigError("the url holds a user or password", hint="A key goes into api_key=")
    if "?" in url or "#" in url:
        raise ConfigError(
            f"the url {re.split('[?#]', url)[0]!r} goes on with a query or fragment",
            hint="Leave that away; a key goes into api_key=",
        )
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or not re.fullmatch(r"[^\s\\\x00-\x1f\x7f]+", url):
        raise ConfigError(f"the url {url[:80]!r} is no address: host or port cannot be read")
    if has_key and parts.scheme == "http" and not is_loopback(host):
        raise ConfigError(
            f"a key would travel in the clear to {host}",
            hint="Use https://, or no key (api_key=None)",
        )
    return url.rstrip("/")


def is_loopback(host: str) -> bool:
    """Tell whether *host* is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _layer(values: dict[str, Any], *, none_counts: bool = True) -> dict[str, Any]:
    """Return the values, each checked."""
    # First, so that no later error finds the key in a local variable.
    if values.get("api_key") is not None:
        values["api_key"] = Secret(values["api_key"])
    for name in values:
        if name not in _KNOWN:
            near = difflib.get_close_matches(name, _KNOWN, n=1)
            raise ConfigError(
                f"there is no setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""),
                hint=f"Settings: {', '.join(_KNOWN)}",
            )
    given = {n: value for n, value in values.items() if none_counts or value is not None}
    return {name: _checked(name, value, name) for name, value in given.items()}


def _over(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    """Return both, the upper before the lower; a new address does not get the old one's key."""
    if "url" in upper and "api_key" not in upper:
        upper = upper | {"api_key": None}
    return lower | upper


def _environment(*, without: Iterable[str]) -> dict[str, Any]:
    """Return the settings that the environment gives, except those that are overruled anyway."""
    found: dict[str, Any] = {}
    for name in _KNOWN:
        variable = f"{_PREFIX}{name.upper()}"
        text = os.environ.get(variable)
        if text is None or name in without:
            continue
        if not text.strip():
            raise ConfigError(f"{variable} is empty", hint="Unset it or give it a value")
        value: Any = text
        if name in _NUMBERS:
            with contextlib.suppress(ValueError):
                value = _NUMBERS[name](text)
        elif name in _BOOLEANS or (name in _FOLDERS and text.strip().lower() in _YES_NO):
            value = _YES_NO.get(text.strip().lower(), text)
        found[name] = _checked(name, value, variable)
    return found


def _checked(name: str, value: Any, source: str) -> Any:
    """Return the value of a setting in its own type, or refuse it in the name of its source."""
    if value is None and name in _OPTIONAL:
        return None
    if name == "api_key":
        return Secret(value, source=source)
    if name == "url":
        try:
            return check_url(value)
        except ConfigError as error:
            raise ConfigError(f"{source}: {error.message}", hint=error.hint) from None
    wanted, fits = _WANTED[name]
    if not fits(value):
        raise ConfigError(f"{source} is {repr(value)[:80]}: it must be {wanted}")
    if name in _FOLDERS and not isinstance(value, bool):
        try:
            return Path(value).expanduser()
        except RuntimeError:
            raise ConfigError(f"{source} is {value!r}: there is no such user") from None
    return float(value) if name == "rate" else value


_SWITCH = ("true or false", lambda value: isinstance(value, bool))
_FOLDER = (
    "true, false or a folder",
    lambda value: isinstance(value, str | os.PathLike | bool) and bool(str(value).strip()),
)
_WANTED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "chain": (
        "the name of a chain, or a Chain",
        lambda value: bool(value) if isinstance(value, str) else hasattr(value, "genesis"),
    ),
    "rate": (
        "a number of requests per second above 0",
        lambda value: type(value) in {int, float} and 0 < value < 1e9,
    ),
    "max_requests": (
        "a number of requests, 0 or more",
        lambda value: type(value) is int and value >= 0,
    ),
    "store": _FOLDER,
    "state": _FOLDER,
    "frame": ('"polars" or "pandas"', ("polars", "pandas").__contains__),
    "offline": _SWITCH,
    "strict": _SWITCH,
    "progress": _SWITCH,
}
