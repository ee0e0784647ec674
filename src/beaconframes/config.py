"""The settings in force: arguments override blocks, ``connect()``, the environment and defaults.

`beaconframes.setting_table` has the settings. An empty environment variable counts as unset.
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import os
import textwrap
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from beaconframes.addresses import check_url
from beaconframes.errors import ConfigError
from beaconframes.setting_table import (
    SETTINGS,
    VARIABLES,
    SettingArguments,
    Settings,
    convert_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_Function = TypeVar("_Function", bound="Callable[..., Any]")
_Class = TypeVar("_Class", bound=type)
_connected: dict[str, Any] = {}
_block: ContextVar[dict[str, Any]] = ContextVar("settings of the block")


def current(**arguments: Any) -> Settings:
    """Return the settings in force.

    *arguments* override all others; None means not given. A key is used with the address of its
    own level or of a lower level, never with the address of a higher level.
    """
    layers = _override(_connected, _block.get({}))
    layers = _override(layers, _check_values(arguments, none_is_value=False))
    found = Settings(**_override(_read_environment(without=layers), layers))
    if found.url is not None:
        check_url(found.url, has_key=found.api_key is not None)
    return found


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


def list_arguments(given: Iterable[str] = ()) -> dict[str, str]:
    """Return the settings that are arguments of an explorer, each with its type as text.

    A TypeError names the first of the *given* arguments that is none of them.
    """
    hints: dict[str, Any] = SettingArguments.__annotations__
    for name in given:
        if name not in hints:
            raise TypeError(f"got an unexpected keyword argument {name!r}")
    return {name: hint.__forward_arg__ for name, hint in hints.items()}


def show_arguments(function: _Function) -> _Function:
    """Let the signature of *function* show the settings that its keyword arguments are."""
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    settings = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
        for name, hint in list_arguments().items()
    ]
    # sorted() is stable: an own keyword comes after the settings.
    parameters = sorted([*settings, *own], key=lambda parameter: parameter.kind)
    shown: Any = function
    shown.__signature__ = signature.replace(parameters=parameters)
    return function


def document_arguments(owner: _Class) -> _Class:
    """Insert the meaning of the arguments that are settings into the docstring of a class."""
    if owner.__doc__:
        lines = []
        for name in ("url", *list_arguments()):
            lines.append(f"    {name}")
            lines += textwrap.wrap(
                SETTINGS[name].details, 100, initial_indent=" " * 8, subsequent_indent=" " * 8,
                break_on_hyphens=False,
            )  # fmt: skip
        owner.__doc__ = owner.__doc__.replace("    {settings}", "\n".join(lines))
    return owner


def _check_values(values: dict[str, Any], *, none_is_value: bool = True) -> dict[str, Any]:
    """Validate settings, and return them in their own types."""
    # Secrets come first, so that no traceback of a later error has one in a local variable.
    for name in values.keys() & SETTINGS.keys():
        if SETTINGS[name].is_secret:
            values[name] = convert_value(name, values[name], name)
    for name in values:
        if name not in SETTINGS:
            similar = difflib.get_close_matches(name, SETTINGS, n=1)
            raise ConfigError(
                f"unknown setting {name!r}"
                + (f"; did you mean {similar[0]!r}?" if similar else ""),
                hint=f"Settings: {', '.join(SETTINGS)}",
            )
    given = {n: value for n, value in values.items() if none_is_value or value is not None}
    return {name: convert_value(name, value, name) for name, value in given.items()}


def _override(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    """Return *lower* overridden by *upper*; a new address does not get the key of the old one."""
    if "url" in upper and "api_key" not in upper:
        upper = upper | {"api_key": None}
    return lower | upper


def _read_environment(*, without: Iterable[str]) -> dict[str, Any]:
    """Return the settings of the environment, except the overridden ones in *without*."""
    values: dict[str, Any] = {}
    for name, setting in SETTINGS.items():
        variable = VARIABLES[name]
        text = os.environ.get(variable)
        if text is None or not text.strip() or name in without:
            continue
        values[name] = convert_value(name, setting.read(text), variable)
    return values
