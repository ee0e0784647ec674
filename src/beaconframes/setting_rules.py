"""Rules of settings: each returns a valid value in its own type, or raises ValueError."""

from __future__ import annotations

import os
import re
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from beaconframes.addresses import check_url
from beaconframes.errors import ConfigError
from beaconframes.secret import Secret

_MOST_SECONDS = 1e9
_YES_NO = dict.fromkeys(("1", "true", "yes", "on"), True)
_YES_NO |= dict.fromkeys(("0", "false", "no", "off"), False)
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)


def parse_switch(text: str) -> bool | str:
    """Return whether *text* says yes or no; other texts unchanged."""
    return _YES_NO.get(text.strip().lower(), text)


def parse_timeout(text: str) -> tuple[float | None, ...]:
    """Return the seconds in *text*: "30" for one request, "30,600" also for a whole call."""
    numbers = [float(part) if part.strip() else None for part in text.split(",")]
    return (*numbers, None) if len(numbers) == 1 else tuple(numbers)


def parse_size(value: Any) -> int | None:
    """Return a number of bytes, from a number or a text such as "2GB" or "512 MiB"."""
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        number, prefix, binary = match.groups()
        unit = (1024 if binary else 1000) ** " kmgt".index(prefix.lower() or " ")
        value = int(float(number) * unit)
    return int(value) if _is_whole(value) and value > 0 else None


def _require(value: Any, is_valid: object) -> Any:
    """Return *value* if it is valid."""
    if not is_valid:
        raise ValueError(value)
    return value


def _is_positive(value: Any) -> bool:
    """Return whether *value* is a number above 0, and not too large for a time."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and bool(0 < value < _MOST_SECONDS)


def _is_whole(value: Any) -> bool:
    """Return whether *value* is an integer, numpy's included."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def convert_url(value: Any, source: str) -> str:
    """Return a valid address."""
    try:
        return check_url(value)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error.message}", hint=error.hint) from None


def convert_key(value: Any, source: str) -> Secret:
    """Return a key as a secret."""
    return Secret(value, source=source)


def convert_chain(value: Any, _source: str) -> Any:
    """Return the name of a chain, or a chain."""
    value = os.fspath(value) if isinstance(value, os.PathLike) else value
    return _require(value, value if isinstance(value, str) else hasattr(value, "genesis"))


def convert_rate(value: Any, _source: str) -> float:
    """Return a number of requests per second."""
    return float(_require(value, _is_positive(value)))


def convert_folder(value: Any, source: str) -> Path | bool:
    """Return a folder, or whether to use the folder of the platform."""
    if isinstance(value, bool):
        return value
    _require(value, isinstance(value, str | os.PathLike) and str(value).strip())
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise ConfigError(f"{source} is {value!r}, but this user does not exist") from None


def convert_size(value: Any, _source: str) -> int:
    """Return a number of bytes."""
    size: int = _require(parse_size(value), parse_size(value))
    return size


def convert_switch(value: Any, _source: str) -> bool:
    """Return True or False."""
    return bool(_require(value, isinstance(value, bool)))


def convert_count(value: Any, _source: str) -> int:
    """Return a number, 0 or more."""
    return int(_require(value, _is_whole(value) and value >= 0))


def convert_timeout(value: Any, _source: str) -> tuple[float | None, float | None]:
    """Return the seconds of a request, and those of a whole call."""
    pair: Any = (value, None) if isinstance(value, Real) else value
    _require(value, isinstance(pair, tuple) and len(pair) == 2)
    request, call = (
        None if each is None else float(_require(each, _is_positive(each))) for each in pair
    )
    return request, call


def convert_frame(value: Any, _source: str) -> str:
    """Return the name of a library of frames."""
    kind: str = _require(value, isinstance(value, str) and value in {"polars", "pandas"})
    return kind
