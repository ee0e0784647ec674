"""The public functions of a plotting library: one for each chart of the list."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

from beaconframes.charts.caption import add_sources, state_finding
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from beaconframes.charts.model import Chart


@dataclass(frozen=True)
class Library:
    """A plotting library: how it draws a chart, and what the documentation says of it."""

    module: str
    """The public module of its functions."""
    draw: Callable[..., Any]
    """Draws a `Chart` with keyword arguments of the library.

    Its keyword-only arguments are those that all charts share.
    """
    escape: Callable[[object, int], str]
    """Makes a name in the data safe for this library: the argument *escape* of a chart."""
    second_panel: str
    """How users find the second panel."""
    keywords: str | None = None
    """What *kwargs* go to. By default, that is the last paragraph of the chart's docstring."""

    @cached_property
    def signature(self) -> inspect.Signature:
        """The arguments that all charts share, and the type of the result."""
        whole = inspect.signature(self.draw)
        shared = [p for p in whole.parameters.values() if p.kind is p.KEYWORD_ONLY]
        return whole.replace(parameters=shared)

    def make_functions(self, charts: Iterable[Callable[..., Chart]]) -> dict[str, Any]:
        """Return the public functions of *charts* by name."""
        return {build.__name__: self._make_function(build) for build in charts}

    def _make_function(self, build: Callable[..., Chart]) -> Callable[..., Any]:
        """Return the public function of a chart: it builds the chart, and draws it."""
        parameters = dict(inspect.signature(build).parameters)
        hidden = {"escape": self.escape} if parameters.pop("escape", None) else {}
        shared = self.signature.parameters

        @show_elapsed
        @wraps(build)
        def function(*args: Any, **kwargs: Any) -> Any:
            own = {name: kwargs.pop(name) for name in parameters if name in kwargs}
            options = {name: kwargs.pop(name) for name in shared if name in kwargs}
            chart = add_sources(build(*args, **own, **hidden), (*args, *own.values()))
            if options.get("title") == "auto":
                options["title"] = state_finding(chart)
            return self.draw(chart, kwargs, **options)

        others = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD, annotation="Any")
        signature = self.signature.replace(
            parameters=[*parameters.values(), *shared.values(), others]
        )
        vars(function)["__signature__"] = signature
        function.__module__ = self.module
        function.__doc__ = self._compose_docstring(build)
        return function

    def _compose_docstring(self, build: Callable[..., Chart]) -> str:
        """Return the docstring of a chart with the paragraphs that all charts share."""
        body, _, keywords = (inspect.getdoc(build) or "").rpartition("\n\n")
        body = body.replace("{second_panel}", self.second_panel)
        *names, last = (f"*{name}*" for name in self.signature.parameters)
        listed = f"{', '.join(names)} and {last}"
        shared = f"{listed} are those of every chart, as `{self.module}` states."
        return "\n\n".join((body, shared, self.keywords or keywords))
