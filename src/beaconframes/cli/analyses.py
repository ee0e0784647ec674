"""The analyses of the command line: functions of `analysis`, with the loaders of their frames.

A function has a command if each frame that it requires has a loader: its arguments say so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from beaconframes.cli import chart_input
from beaconframes.cli.from_signature import list_frames
from beaconframes.cli.loader_options import list_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SUBJECTS = ("validators", "producers")
"""The arguments of loaders for which ``--validators`` is given."""
LOADERS = {
    "attestations": "attestations",
    "balances": "balance-history",
    "blocks": "produced-blocks",
    "committees": "sync-committees",
    "days": "yield-index",
    "deposits": "deposits",
    "duties": "v2.upcoming-duty-slots",
    "epochs": "epochs",
    "income": "income-history",
    "index": "yield-index",
    "proposals": "proposals",
    "slots": "epoch-slots",
    "stats": "validator-stats",
    "validators": "validators",
    "withdrawals": "validator-withdrawals",
}
"""The loader of the rows of a frame, by the name of the argument."""
_INCOME = {"frame": "income-history"}
_SLOTS = {"blocks": "epoch-slots"}
OTHER_LOADERS = {
    "income": _INCOME,
    "completeness": _INCOME,
    "attestation-effectiveness": _SLOTS,
    "attestation-faults": _SLOTS,
    "sync-participation": _SLOTS,
    "sync-members": _SLOTS,
    "sync-duties": _SLOTS,
    "sync-against-committee": _SLOTS,
    "reconcile": {"blocks": "proposals"},
}
"""The loaders of frames whose argument has another meaning in this analysis."""
ALWAYS_LOADED = {
    "ledger": ("income", "withdrawals"),
    "reconcile": ("balances", "income", "withdrawals", "validators", "deposits", "blocks"),
    "problems": ("income", "balances", "validators", "proposals"),
    "missed-proposals": ("proposals", "income"),
}
"""Frames that are loaded although the function does not require them. The first one is first."""
ONLY_REQUIRED = ("stats",)
"""Frames that need a request per validator: if they are optional, they come from files only."""
UNUSED = {"missed-proposals": ("stats",)}
"""Frames that replace one that is always loaded, and would not be used beside it."""
SOURCES = {"incidents": "problems"}
"""Analyses of the result of another analysis."""


@dataclass(frozen=True)
class Analysis:
    """The frames of one function of `analysis`, each with the loader of its rows."""

    loaded: Mapping[str, str]
    """Frames that are loaded if no file has them. The first one sets the range of the others."""
    optional: Mapping[str, str]
    """Frames that are loaded with ``--with``."""
    files: tuple[str, ...] = ()
    """Frames that no loader returns."""
    source: str = ""
    """The analysis of these frames whose result is the first argument of the function."""

    @property
    def loaders(self) -> dict[str, str]:
        """Return the loader of each frame that has one."""
        return {**self.loaded, **self.optional}

    @property
    def takes_validators(self) -> bool:
        """Return whether frames are loaded for validators."""
        loaders = map(chart_input.require_loader, self.loaded.values())
        return any({*SUBJECTS} & list_arguments(loader).keys() for loader in loaders)

    @property
    def first(self) -> str:
        """Return the name of the first frame."""
        return next(iter(self.loaded))

    @property
    def frames(self) -> list[str]:
        """Return the names of all frames, the first one first."""
        return [*self.loaders, *self.files]


def get_function(name: str) -> Callable[..., Any]:
    """Return the function of an analysis."""
    from beaconframes import analysis

    function: Callable[..., Any] = getattr(analysis, name.replace("-", "_"))
    return function


@cache
def list_analyses() -> dict[str, Analysis]:
    """Return every analysis that is a command, by its name."""
    from beaconframes import analysis

    names = [name.replace("_", "-") for name in analysis.__all__ if name.islower()]
    found = ((name, find_analysis(name)) for name in names)
    return {name: each for name, each in found if each is not None}


def find_analysis(name: str) -> Analysis | None:
    """Return the frames of an analysis; None if no loader has a required one."""
    frames = list_frames(get_function(name))
    if name in SOURCES:
        source = find_analysis(SOURCES[name])
        own = tuple(frame for frame, is_required in frames.items() if not is_required)
        return source and replace(source, files=(*source.files, *own), source=SOURCES[name])
    loaders = LOADERS | OTHER_LOADERS.get(name, {})
    required = [frame for frame, is_required in frames.items() if is_required]
    if not required or any(frame not in loaders for frame in required):
        return None
    loaded = ALWAYS_LOADED.get(name, required)
    rest = [frame for frame in frames if frame not in (*loaded, *UNUSED.get(name, ()))]
    optional = [frame for frame in rest if frame in loaders and frame not in ONLY_REQUIRED]
    return Analysis(
        {frame: loaders[frame] for frame in loaded},
        {frame: loaders[frame] for frame in optional},
        tuple(frame for frame in rest if frame not in optional),
    )
