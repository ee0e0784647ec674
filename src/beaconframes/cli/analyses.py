"""The analyses of the command line: functions of `analysis`, with the loaders of their frames.

A function has a command if each frame that it requires has a loader: its arguments say so.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from beaconframes import analysis
from beaconframes.analysis import loaders as tables
from beaconframes.cli import from_signature
from beaconframes.cli.loader_options import list_arguments, require_loader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beaconframes.cli.from_signature import Argument

RANGE = ("since", "until")
"""The arguments of loaders that set the range of rows."""
SUBJECTS = ("validators", "producers")
"""The arguments of loaders for which ``--validators`` is given."""
HELP = {
    "every": "Time of one row.",
    "by": "Group columns, separated by commas.",
    "tz": "Time zone of the days, and of dates in --since and --until, such as Europe/Berlin.",
}
"""The help of options whose description in Python is too long, or missing."""


@dataclass(frozen=True)
class Analysis:
    """The frames of one function of `analysis`, each with the loader of its rows."""

    name: str
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
    def first(self) -> str:
        """Return the name of the first frame."""
        return next(iter(self.loaded))

    @property
    def frames(self) -> list[str]:
        """Return the names of all frames, the first one first."""
        return [*self.loaders, *self.files]

    @cached_property
    def takes_validators(self) -> bool:
        """Return whether frames are loaded for validators."""
        loaders = map(require_loader, self.loaded.values())
        return any({*SUBJECTS} & list_arguments(loader).keys() for loader in loaders)

    @property
    def main(self) -> Callable[..., Any]:
        """Return the function that takes the frames and the options."""
        return get_function(self.source or self.name)

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Return the arguments of this function."""
        return inspect.signature(self.main).parameters

    @cached_property
    def options(self) -> dict[str, Argument]:
        """Return its arguments that are neither frames, nor the chain, nor what loaders have."""
        return from_signature.list_arguments(self.main, ("chain", "validators", *RANGE), texts=HELP)


def get_function(name: str) -> Callable[..., Any]:
    """Return the function of an analysis."""
    function: Callable[..., Any] = getattr(analysis, name.replace("-", "_"))
    return function


@cache
def list_analyses() -> dict[str, Analysis]:
    """Return every analysis that is a command, by its name."""
    found = map(find_analysis, filter(str.islower, analysis.__all__))
    return {each.name: each for each in found if each is not None}


def find_analysis(function: str) -> Analysis | None:
    """Return the frames of an analysis; None if no loader has a required one."""
    name = function.replace("_", "-")
    frames = from_signature.list_frames(get_function(name))
    if function in tables.SOURCES:
        source = find_analysis(tables.SOURCES[function])
        own = tuple(frame for frame, is_required in frames.items() if not is_required)
        return source and replace(
            source, name=name, files=(*source.files, *own), source=source.name
        )
    names = tables.FRAMES | tables.OTHER_FRAMES.get(function, {})
    loaders = {frame: loader.replace("_", "-") for frame, loader in names.items()}
    required = [frame for frame, is_required in frames.items() if is_required]
    if not required or any(frame not in loaders for frame in required):
        return None
    loaded = tables.ALWAYS_LOADED.get(function, required)
    rest = [frame for frame in frames if frame not in (*loaded, *tables.UNUSED.get(function, ()))]
    optional = [f for f in rest if f in loaders and f not in tables.ONLY_REQUIRED]
    return Analysis(
        name,
        {frame: loaders[frame] for frame in loaded},
        {frame: loaders[frame] for frame in optional},
        tuple(frame for frame in rest if frame not in optional),
    )
