"""The table of settings: name, type, default, rule and meaning of each.

`bf.connect`, `bf.Explorer`, `bf.settings`, the command line, the environment variables and the page
about the configuration derive from it. A setting is a line of `SettingArguments` and one of
`Settings`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from beaconframes import setting_rules as rules
from beaconframes.errors import ConfigError
from beaconframes.secret import hide_address
from beaconframes.text import shorten

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from beaconframes.calendar import Chain
    from beaconframes.secret import Secret


class SettingArguments(TypedDict, total=False):
    """The settings as keyword arguments of `bf.connect` and `bf.Explorer`, in their order.

    Their first argument, ``url``, is a text.
    """

    api_key: str | None
    chain: str | Chain | None
    rate: float | None
    frame: Literal["polars", "pandas"] | None
    strict: bool | None
    store: bool | str | os.PathLike[str] | None
    store_limit: int | str | None
    offline: bool | None
    max_requests: int | None
    timeout: float | tuple[float | None, float | None] | None
    progress: bool | None
    state: bool | str | os.PathLike[str] | None


@dataclass(frozen=True)
class Setting:
    """What a setting means, which values are valid, and where it can be given."""

    summary: str
    """What it is, for the command line and the page about the configuration."""
    details: str = ""
    """What it is in Python, for the docstring of `bf.Explorer`."""
    rule: str = ""
    """What a value must be, for the error of `convert`."""
    convert: Callable[[Any, str], Any] = lambda value, _source: value
    """Return a value in its own type. A ValueError means that it violates the rule."""
    parse: Callable[[str], Any] = str
    """Return the value of an environment variable or option. A ValueError leaves the text."""
    metavar: str | None = None
    """How the command line shows the value; None if its type says it."""
    is_option: bool = True
    """Whether the commands that load have an option for it."""
    is_secret: bool = False
    """Whether no output may contain it."""
    is_of_load: bool = False
    """Whether it may change between two loads of an explorer, which then has its own value."""

    def read(self, text: str) -> Any:
        """Return the value of a variable or an option; `convert` refuses a text that has none."""
        with suppress(ValueError):
            return self.parse(text)
        return text


def _declare(default: Any, summary: str, details: str = "", **attributes: Any) -> Any:
    """Return the field of a setting; None as its default makes None a valid value."""
    setting = Setting(summary, details, **attributes)
    return field(default=default, metadata={"setting": setting})


@dataclass(frozen=True)
class Settings:
    """The settings in force, validated."""

    url: str | None = _declare(
        None,
        "Address of the explorer; the default is the public service.",
        "Address of the service; it may have a path prefix. Default: the public service.",
        rule="an address with http:// or https://",
        convert=rules.convert_url,
    )
    api_key: Secret | None = _declare(
        None,
        "The API key, sent to the address of its own level only; never shown.",
        "Sent in a header, only to this address; no output contains it.",
        rule="one word of printable ASCII",
        convert=rules.convert_key,
        is_option=False,
        is_secret=True,
    )
    chain: str | Any = _declare(
        "mainnet",
        "mainnet, hoodi, sepolia or holesky, or a TOML file with the fields of another Chain; the "
        "default is what the explorer states, or mainnet.",
        '``"mainnet"``, ``"hoodi"``, ``"sepolia"``, ``"holesky"``, a `beaconframes.Chain`, or a '
        "TOML file with its fields. Default: the chain that a local explorer at *url* states, or "
        "mainnet. A service that states another chain is an error.",
        rule="the name or the file of a chain, or a Chain",
        convert=rules.convert_chain,
    )
    rate: float | None = _declare(
        None,
        "Maximum requests per second; the default is the limit of the plan.",
        "Maximum number of requests per second. Default: the rate that the service permits.",
        rule="a number of requests per second above 0",
        convert=rules.convert_rate,
        parse=float,
    )
    frame: Literal["polars", "pandas"] = _declare(
        "polars",
        "Kind of frame that loaders return: polars or pandas.",
        '``"polars"`` or ``"pandas"``: the kind of frame that loaders return.',
        rule='"polars" or "pandas"',
        convert=rules.convert_frame,
        is_option=False,
        is_of_load=True,
    )
    strict: bool = _declare(
        False,
        "Missing rows are an error instead of a warning.",
        "Whether missing rows are an error instead of a warning.",
        rule="true or false",
        convert=rules.convert_switch,
        parse=rules.parse_switch,
        is_option=False,
        is_of_load=True,
    )
    store: Path | bool | None = _declare(
        None,
        "Store final rows in this folder.",
        "Whether final rows are stored and not requested again: True, False, or a folder. Default: "
        "the platform's folder for data; rows of a service on this machine are not stored.",
        rule="true, false or a folder",
        convert=rules.convert_folder,
        parse=rules.parse_switch,
    )
    store_limit: int | None = _declare(
        None,
        "Warn if the store is larger than this, such as 2GB.",
        "Size of the store of this service above which a warning says so, in bytes or as a text "
        'such as ``"2GB"``. ``bf.store().prune(to="2GB")`` removes what was stored first. Default: '
        "no limit.",
        rule='a number of bytes above 0, or a size such as "2GB"',
        convert=rules.convert_size,
        metavar="SIZE",
    )
    offline: bool = _declare(
        False,
        "Read stored rows only, without requests.",
        "Whether to read stored rows only, without requests, and to report missing ones.",
        rule="true or false",
        convert=rules.convert_switch,
        parse=rules.parse_switch,
    )
    max_requests: int | None = _declare(
        None,
        "Fail before the first request if more requests are needed.",
        "Maximum number of requests of one load. A load that needs more raises "
        "`RequestLimitExceeded` before its first request.",
        rule="a number of requests, 0 or more",
        convert=rules.convert_count,
        parse=int,
        is_of_load=True,
    )
    timeout: float | tuple[float | None, float | None] | None = _declare(
        None,
        "Seconds for one request, and for a whole call.",
        "Seconds for one request, until its response is complete; or two numbers, for one request "
        "and for a whole call with its retries and waits, such as ``(10, 60)``. Default: a request "
        "ends after 30 seconds without data, and its retries after 300.",
        rule="a number of seconds above 0, or two: for one request, and for a whole call",
        convert=rules.convert_timeout,
        parse=rules.parse_timeout,
        metavar="SECONDS[,SECONDS]",
        is_of_load=True,
    )
    progress: bool | None = _declare(
        None,
        "Show progress on standard error; the default is to show it on a terminal.",
        "Whether to show requests, rows and remaining time of a load that takes over a second. "
        "Default: if the output is a terminal or a notebook.",
        rule="true or false",
        convert=rules.convert_switch,
        parse=rules.parse_switch,
        is_of_load=True,
    )
    state: Path | bool | None = _declare(
        None,
        "Folder of the shared rate limit, or false; the default is that of the platform.",
        "Whether processes with the same key share its rate limit: True, False, or the folder of "
        "the shared state. Default: the platform's folder for state; for a service on this machine "
        "without a key, nothing is shared.",
        rule="true, false or a folder",
        convert=rules.convert_folder,
        parse=rules.parse_switch,
        is_option=False,
    )
    node: Secret | None = _declare(
        None,
        "Address of the beacon node, for bf.node and --node; never shown.",
        rule="an address",
        convert=hide_address,
        is_option=False,
        is_secret=True,
    )
    execution: Secret | None = _declare(
        None,
        "Address of the JSON-RPC of its execution node; never shown.",
        rule="an address",
        convert=hide_address,
        is_option=False,
        is_secret=True,
    )


SETTINGS: dict[str, Setting] = {each.name: each.metadata["setting"] for each in fields(Settings)}
"""Every setting, by its name."""
VARIABLES = {name: f"BEACONFRAMES_{name.upper()}" for name in SETTINGS}
"""The environment variable of each setting."""
SETTINGS_OF_LOADS = tuple(name for name, setting in SETTINGS.items() if setting.is_of_load)
"""The settings that each load of an explorer may have of its own."""
DEFAULTS = {each.name: each.default for each in fields(Settings)}
"""The default of each setting."""


def convert_value(name: str, value: Any, source: str) -> Any:
    """Validate a setting, and return it in its own type; errors name its *source*."""
    if value is None and DEFAULTS[name] is None:
        return None
    setting = SETTINGS[name]
    try:
        return setting.convert(value, source)
    except ConfigError:
        raise
    except ValueError:
        raise ConfigError(f"{source} is {shorten(value)}; it must be {setting.rule}") from None
