"""The explorer that loaders use by default: the last one that was opened and is not closed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from beaconframes.client.explorer import Explorer, RequestlessExplorer, default_explorers
from beaconframes.config import configure, show_arguments
from beaconframes.errors import UsageError
from beaconframes.setting_table import SETTINGS_OF_LOADS

if TYPE_CHECKING:
    from typing import Unpack

    from beaconframes.client.quota import Quota
    from beaconframes.setting_table import SettingArguments

_connected: WeakSet[Explorer] = WeakSet()
"""The explorers that `connect` returned."""


@show_arguments
def connect(url: str | None = None, **given: Unpack[SettingArguments]) -> Explorer:
    """Create an explorer, make it the default of all loaders until it is closed, and return it.

    Takes the arguments of `Explorer`. Defaults come from the environment; but a key from the
    environment is not sent to an address given here.
    """
    arguments: dict[str, Any] = {**given}
    of_loads = {name: arguments.pop(name, None) for name in SETTINGS_OF_LOADS}
    explorer = Explorer(url, **arguments)
    configure(**{name: value for name, value in of_loads.items() if value is not None})
    # A later connect replaces the earlier one, so that repeated calls hold no connections.
    if default_explorers and default_explorers[-1] in _connected:
        default_explorers.pop()
    _connected.add(explorer)
    set_explorer(explorer)
    return explorer


def set_explorer(explorer: Explorer | None) -> None:
    """Let loaders use *explorer* until it is closed, then the previous one; None removes all."""
    if explorer is None:
        default_explorers.clear()
    else:
        default_explorers.append(explorer)


def get_explorer(explorer: Explorer | None = None, *, needs_key: bool = True) -> Explorer:
    """Return *explorer*, or the default one: the last open one, or one from the environment.

    Calls without requests need no key.
    """
    if explorer is None:
        # Another thread may close it after a check.
        with suppress(IndexError):
            return default_explorers[-1]
        return connect() if needs_key else RequestlessExplorer()
    if not isinstance(explorer, Explorer):
        raise UsageError(
            f"explorer= is an object of type {type(explorer).__name__}, not an explorer",
            hint="Pass what bf.connect, bf.Explorer, bf.local, bf.open or bf.node returned",
        )
    return explorer


def quota(explorer: Explorer | None = None) -> Quota:
    """Return the quota of *explorer*, or of the connected one: permitted and remaining requests.

    Sends no request: the figures are from earlier responses to any process on this machine.
    """
    return get_explorer(explorer, needs_key=False).read_quota()
