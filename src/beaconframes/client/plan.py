"""The plan: what a call of a loader will take, told before anything is asked."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from beaconframes.client.connected import current
from beaconframes.client.estimate import Cost, cost_of
from beaconframes.client.explorer import Explorer
from beaconframes.client.quota import quota_of
from beaconframes.client.summary import as_html, as_text
from beaconframes.endpoint.identifiers import LARGEST_INDEX, cut
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from beaconframes.endpoint import Endpoint, Request

Bound = Literal["exactly", "at least", "at most", "about"]


@dataclass(frozen=True)
class Plan:
    """What a call of a loader will take; it prints well in a terminal and in a notebook.

    ``requests`` are those that the call will send. What fails is sent again and what does not come
    is asked for once more; neither can be foreseen. ``bound`` says whether it is ``"exactly"`` so
    many, ``"at least"``, ``"at most"`` or ``"about"``, and ``why`` what it depends on.
    ``rows`` will come and ``kept_rows`` are in the store already, each None where nobody can know;
    ``requests_saved`` is how many more it would take without a store. ``seconds`` is the time at
    ``rate`` requests a second, and None while the service has not said what it permits.
    ``month_left`` is how many requests are left of the ``month_limit``, None where nobody knows.
    """

    loader: str
    requests: int
    bound: Bound = "exactly"
    why: tuple[str, ...] = ()
    rows: int | None = None
    kept_rows: int | None = 0
    requests_saved: int = 0
    rate: float | None = None
    month_left: int | None = None
    month_limit: int | None = None

    @property
    def seconds(self) -> float | None:
        """Return the seconds that it takes at the permitted rate; None if that is not known."""
        if not self.requests:
            return 0.0
        return None if self.rate is None else self.requests / self.rate

    @property
    def month_share(self) -> float | None:
        """Return the share that it takes of what is left of the month, None if nobody knows."""
        if self.month_left is None:
            return None
        if not self.requests:
            return 0.0
        return self.requests / self.month_left if self.month_left else float("inf")

    def lines(self) -> list[tuple[str, str]]:
        """Return what there is to say, by what it is about."""
        bound = "" if self.bound == "exactly" else f"{self.bound} "
        told = [("requests", f"{bound}{self.requests:,}")]
        told.append(("rows to come", "not known" if self.rows is None else f"{self.rows:,}"))
        if self.kept_rows or self.requests_saved:
            kept = "rows" if self.kept_rows is None else f"{self.kept_rows:,} rows"
            told.append(("in the store", f"{kept}, which saves {counted(self.requests_saved)}"))
        told.append(("time", self.time()))
        if self.month_left is not None and self.month_share is not None:
            share = f"{self.month_share:.1%} of the {self.month_left:,} requests left"
            limit = "" if self.month_limit is None else f" of {self.month_limit:,}"
            told.append(("this month", share + limit))
        return [*told, *((f"{self.bound}, since", reason) for reason in self.why)]

    def time(self) -> str:
        """Return how long it takes, in words."""
        if self.seconds is None:
            return "not known: the service has not said how many requests a second it permits"
        if self.rate is None or not self.requests:
            return "none"
        return f"{duration(self.seconds)} at {self.rate:g} requests a second"

    def __str__(self) -> str:
        """Return the plan, a line for each thing that there is to say."""
        return as_text(self.loader, self.lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the plan as a table, for a notebook."""
        return as_html(self.loader, self.lines())


def plan(loader: Callable[..., Any], *arguments: Any, **options: Any) -> Plan:
    """Return what the call ``loader(*arguments, **options)`` will take, without making it.

    ::

        bf.plan(bf.load_income_history, range(100), since="2025-01-01", until="2025-12-31")

    Sends nothing, except for one request where the range depends on how far the chain has come.
    Looks at what is in the store. Bad arguments raise what they would raise in the loader.
    """
    name = getattr(loader, "__name__", "")
    if not name.startswith("load_"):
        raise UsageError(
            f"{cut(loader)} is no loader",
            hint="Give the loader and then its arguments: bf.plan(bf.load_epochs, since=-9)",
        )
    explorer = options.pop("explorer", None)
    draft = Draft(current() if explorer is None else explorer)
    with suppress(Planned):
        loader(*arguments, explorer=draft, **options)
    return made(name, draft.costs, draft)


def made(name: str, costs: Iterable[Cost], explorer: Explorer) -> Plan:
    """Return the plan of a call that has these *costs*."""
    costs = list(costs)
    more = dict.fromkeys(reason for cost in costs for reason in cost.more)
    less = dict.fromkeys(reason for cost in costs for reason in cost.less)
    bounds: dict[tuple[bool, bool], Bound] = {
        (False, False): "exactly", (True, False): "at least", (False, True): "at most",
    }  # fmt: skip
    # The last is what the call returns; what came before it looked something up for it.
    last = costs[-1] if costs else Cost(0, None)
    requests = sum(cost.requests for cost in costs)
    allowed = quota_of(explorer.rate_limiter)
    return Plan(
        name,
        requests,
        bounds.get((bool(more), bool(less)), "about"),
        (*more, *less),
        last.rows,
        last.kept,
        sum(cost.plain for cost in costs) - requests,
        explorer.rate,
        allowed.left,
        allowed.month,
    )


class Planned(Exception):
    """All that can be planned of a call has been. It never leaves this module."""


class Draft(Explorer):
    """An explorer as a loader sees it while its call is planned: it counts instead of asking."""

    def __init__(self, explorer: Explorer) -> None:
        """Share everything that *explorer* has: its store, and what it knows of the service."""
        self.__dict__.update(explorer.__dict__)
        self.costs: list[Cost] = []

    def load(
        self,
        endpoint: Endpoint,
        values: Mapping[str, Any],
        **_: Any,
    ) -> Any:
        """Return somebody for every validator that is asked for by key, and no other rows."""
        self.costs.append(cost_of(self, endpoint, values))
        keys = [
            key
            for parameter in endpoint.all_parameters
            if (column := getattr(parameter, "pubkey", None)) is not None
            for batch in parameter.batches(values, self.chain_head_of(endpoint))
            for wanted in batch.wanted
            for key in wanted.values.get(column.name, ())
        ]
        if not keys:
            return endpoint.table.empty()
        indices = [LARGEST_INDEX - number for number in range(len(keys))]
        known = pl.DataFrame({"validator_index": indices, "pubkey": keys})
        return pl.concat([endpoint.table.empty(), known], how="diagonal_relaxed")

    def fetch(self, request: Request) -> bytes:  # noqa: ARG002 - it is not sent
        """Count one request, and end the planning: what comes is not rows."""
        self.costs.append(Cost(1, None, plain=1))
        raise Planned


def counted(requests: int) -> str:
    """Return a number of requests in words."""
    return f"{requests:,} request{'' if requests == 1 else 's'}"


def duration(seconds: float) -> str:
    """Return *seconds* in words that are as exact as one wants to know."""
    if seconds < 1:
        return "under a second"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = round(minutes / 60)
    return f"{hours} h" if hours < 48 else f"{hours / 24:.1f} days"
