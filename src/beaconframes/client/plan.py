"""The plan: the requests, rows and time of a load, before it is made."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import polars as pl

from beaconframes.client.connection import get_explorer
from beaconframes.client.estimate import Estimate, estimate_load
from beaconframes.client.explorer import Explorer
from beaconframes.client.quota import read_quota
from beaconframes.endpoint import Head, Role
from beaconframes.endpoint.chain_head import EPOCHS_TO_FINALITY
from beaconframes.endpoint.identifiers import LARGEST_INDEX
from beaconframes.errors import UsageError
from beaconframes.fetch.head import encode_stated_head
from beaconframes.summary import format_bytes, render_html, render_text
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.endpoint import ChainHead, Endpoint, Request

_LOADER_NAME = re.compile(r"(?:bf\.)?(v2\.|)(?:load_)?([a-z]\w*)")
_MANY = 300
"""From this many requests of a load on, its plan names what is cheaper."""
_COMPOSED = ("report",)
"""Functions of several loads, all of whose rows they need."""

Number = TypeVar("Number", int, float)
Bound = Literal["exactly", "at least", "at most", "about"]


@dataclass(frozen=True)
class Plan:
    """The requests, rows and time of a load; prints as a table in a terminal or a notebook.

    ``requests`` is the number of requests that the load will send, without retries of failed
    requests and of missing rows. If validators have no rows, one more request for each hundred of
    them loads their activity epochs. ``bound`` is ``"exactly"``, ``"at least"``, ``"at most"`` or
    ``"about"``; ``why`` has the reasons for a bound that is not exact. ``rows`` will be fetched,
    without those that are known not to exist, and ``stored_rows`` are in the store, each None where
    unknown. ``requests_saved`` is how many more requests it would take without a store. ``seconds``
    is the time at ``rate`` requests per second, None if the permitted rate is unknown.
    ``month_left`` is how many requests are left of the ``month_limit``, None where unknown.

    For a node (`beaconframes.node`), ``requests`` are those to the node, without those for its
    head. ``bytes`` and ``seconds`` follow from earlier requests of the connection, each None where
    unknown; ``remarks`` has what they assume, or what is cheaper. ``unavailable`` lists what the
    node cannot answer, with the reason and the flag of its client that would help.

    ``parts`` has the requests of each loader of a `report`.
    """

    loader: str
    requests: int
    bound: Bound = "exactly"
    why: tuple[str, ...] = ()
    rows: int | None = None
    stored_rows: int | None = 0
    requests_saved: int = 0
    rate: float | None = None
    month_left: int | None = None
    month_limit: int | None = None
    is_node: bool = False
    bytes: int | None = None
    node_seconds: float | None = None
    remarks: tuple[str, ...] = ()
    unavailable: tuple[str, ...] = ()
    parts: tuple[tuple[str, int], ...] = ()

    @property
    def seconds(self) -> float | None:
        """Return the duration in seconds; None if the rate, or the speed of a node, is unknown."""
        if not self.requests:
            return 0.0
        if self.is_node:
            return self.node_seconds
        return None if self.rate is None else self.requests / self.rate

    @property
    def month_share(self) -> float | None:
        """Return the share of the remaining requests of the month; None if unknown."""
        if self.month_left is None:
            return None
        if not self.requests:
            return 0.0
        return self.requests / self.month_left if self.month_left else float("inf")

    def lines(self) -> list[tuple[str, str]]:
        """Return the figures, each with its name."""
        bound = "" if self.bound == "exactly" else f"{self.bound} "
        lines = [("requests", f"{bound}{self.requests:,}")]
        known = sum(requests for _, requests in self.parts)
        parts = [("chain head", self.requests - known), *self.parts] if self.parts else []
        lines += [(f"  {name}", f"{requests:,}") for name, requests in parts if requests]
        lines.append(("new rows", "unknown" if self.rows is None else f"{self.rows:,}"))
        if self.stored_rows or self.requests_saved:
            stored = "rows" if self.stored_rows is None else f"{self.stored_rows:,} rows"
            saved = format_requests(self.requests_saved)
            lines.append(("in the store", f"{stored}, which saves {saved}"))
        if self.is_node:
            lines.append(("bytes", "unknown" if self.bytes is None else format_bytes(self.bytes)))
        lines.append(("time", self.time()))
        if self.month_left is not None and self.month_share is not None:
            share = f"{self.month_share:.1%} of the {self.month_left:,} requests left"
            limit = "" if self.month_limit is None else f" of {self.month_limit:,}"
            lines.append(("this month", share + limit))
        lines += [(f"{self.bound}, because", reason) for reason in self.why]
        lines += [("note", remark) for remark in self.remarks]
        return [*lines, *(("not available", reason) for reason in self.unavailable)]

    def time(self) -> str:
        """Return the duration as text."""
        if not self.requests:
            return "none"
        if self.is_node:
            if self.seconds is None:
                return "unknown: this connection has not loaded any epoch"
            return f"{format_seconds(self.seconds)}, at the speed of this connection so far"
        if self.seconds is None or self.rate is None:
            return "unknown: the service has not reported its rate limit"
        plural = "" if self.rate == 1 else "s"
        return f"{format_seconds(self.seconds)} at {self.rate:g} request{plural} per second"

    def __str__(self) -> str:
        return render_text(self.loader, self.lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_html(self.loader, self.lines())


def plan(loader: Callable[..., Any], *arguments: Any, **options: Any) -> Plan:
    """Estimate the requests, rows and time of ``loader(*arguments, **options)``, without the call.

    ::

        bf.plan(bf.load_income_history, range(100), since="2025-01-01", until="2025-12-31")

    *loader* may also be `report`: the plan then has the requests of the whole report. Those that
    depend on what it loads first are not counted, and the plan says so.

    Sends no request and needs no key. If the range depends on the chain head, the plan assumes a
    head and says which one. Stored rows are taken into account. Invalid arguments raise the error
    that the loader would raise. With ``explorer=`` a `beaconframes.node`, the plan has the requests
    to the node, bytes, time, and what the node cannot answer.
    """
    name = getattr(loader, "__name__", "")
    if not name.startswith("load_") and name not in _COMPOSED:
        given: object = loader
        example = "bf.load_epochs, since=-9"
        if isinstance(given, str) and (found := _LOADER_NAME.fullmatch(given.replace("-", "_"))):
            example = f"bf.{found[1]}load_{found[2]}, ..."
        raise UsageError(
            f"{shorten(loader)} is not a loader",
            hint=f"Give the function and then its arguments: bf.plan({example})",
        )
    explorer = options.pop("explorer", None)
    planned = PlanningExplorer(get_explorer(explorer, needs_key=False))
    ended = PlanningEnded()
    try:
        loader(*arguments, explorer=planned, **options)
    except PlanningEnded as error:
        ended = error
    except UsageError as error:
        if planned.assumptions and not planned.chain_head.is_live:
            raise UsageError(
                f"the range depends on the chain head, and plans request none: {error.message}",
                hint="Give since and until as absolute numbers, or load something first",
            ) from None
        raise
    made = make_plan(name, planned.estimates, planned)
    remarks = (*made.remarks, ended.note) if ended.note else made.remarks
    return replace(made, parts=ended.parts, remarks=remarks)


def make_plan(name: str, estimates: Sequence[Estimate], explorer: PlanningExplorer) -> Plan:
    """Return the plan of a call that consists of loads with these *estimates*."""
    more = dict.fromkeys(reason for estimate in estimates for reason in estimate.may_be_more)
    less = dict.fromkeys(reason for estimate in estimates for reason in estimate.may_be_less)
    bounds: dict[tuple[bool, bool], Bound] = {
        (False, False): "exactly", (True, False): "at least", (False, True): "at most",
    }  # fmt: skip
    # The last load returns the rows; those before it look something up.
    returned = estimates if name in _COMPOSED else estimates[-1:]
    requests = sum(estimate.requests for estimate in estimates)
    # The head decides about a request or two: nothing beside pages, of which there may be many.
    more, less = more | explorer.assumptions, less if more else less | explorer.assumptions
    saved = sum(estimate.requests_without_store for estimate in estimates) - requests
    allowed = read_quota(explorer.rate_limiter)
    transfers = [estimate.transfer for estimate in estimates if estimate.transfer is not None]
    is_node = explorer.source.is_node
    return Plan(
        name,
        requests + explorer.head_requests,
        bounds.get((bool(more), bool(less)), "about"),
        tuple(more | less),
        add_known(each.rows for each in returned) if returned else None,
        add_known(each.stored_rows for each in returned),
        saved,
        explorer.rate,
        allowed.left,
        allowed.month,
        is_node=is_node,
        bytes=add_known(each.byte_count for each in transfers) if is_node else None,
        node_seconds=add_known(each.seconds for each in transfers) if is_node else None,
        remarks=tuple(
            dict.fromkeys(
                (*(text for each in transfers for text in each.remarks), *explorer.cheaper)
            )
        ),
        unavailable=tuple(dict.fromkeys(text for each in transfers for text in each.unavailable)),
    )


def add_known(values: Iterable[Number | None]) -> Number | None:
    """Return the sum of *values*; None if one of them is unknown."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return sum(known) if len(known) == len(listed) else None


class PlanningEnded(Exception):
    """The rest of the call cannot be estimated, or sends no request. Only `plan` catches it."""

    def __init__(self, parts: tuple[tuple[str, int], ...] = (), note: str = "") -> None:
        """State the loaders of the call with their requests, and a *note* on them."""
        super().__init__()
        self.parts, self.note = parts, note


class PlanningExplorer(Explorer):
    """An explorer that estimates loads instead of making them."""

    def __init__(self, explorer: Explorer) -> None:
        """Share the store, the limits and the chain head of *explorer*."""
        self.__dict__.update(explorer.__dict__)
        self._reported = self._head
        self._head = self._head.copy(self._assume_head)
        self.estimates: list[Estimate] = []
        self.head_requests = 0
        """Requests for the chain head that the load will send."""
        self.assumptions: dict[str, None] = {}
        """What the plan assumes about the chain head, if the range depends on it."""
        self.cheaper: list[str] = []
        """What costs fewer requests than these loads."""
        self._head_v2 = self._head_v2.copy(self._assume_head)

    @property
    def requests(self) -> int:
        """Return the number of requests that the call will send."""
        return sum(estimate.requests for estimate in self.estimates) + self.head_requests

    def assume_more(self, reason: str) -> None:
        """Add requests that cannot be counted, for a *reason*."""
        self.estimates.append(Estimate(0, None, may_be_more=(reason,)))

    def assume_fewer(self, reason: str) -> None:
        """State that requests may not be sent, for a *reason*."""
        self.estimates.append(Estimate(0, None, may_be_less=(reason,)))

    def load(
        self,
        endpoint: Endpoint,
        values: Mapping[str, Any],
        **_: Any,
    ) -> Any:
        """Return a placeholder for every validator requested by public key, and no other rows."""
        estimate = estimate_load(self, endpoint, values)
        self.estimates.append(estimate)
        if estimate.requests > _MANY and not self.source.is_node:
            self.cheaper += self._list_cheaper(endpoint, estimate.requests)
        if estimate.head_first is not None:
            assumptions = dict(self.assumptions)
            estimate.head_first.served_units()
            self.assumptions = assumptions
        pubkeys = [
            key
            for parameter in endpoint.all_parameters
            if (column := parameter.pubkey_column) is not None
            for batch in parameter.batches(values, self.chain_head_of(endpoint))
            for expected in batch.expected
            for key in expected.values.get(column.name, ())
        ]
        if not pubkeys:
            return endpoint.table.empty()
        indices = [LARGEST_INDEX - number for number in range(len(pubkeys))]
        placeholders = pl.DataFrame({"validator_index": indices, "pubkey": pubkeys})
        return pl.concat([endpoint.table.empty(), placeholders], how="diagonal_relaxed")

    def _list_cheaper(self, endpoint: Endpoint, requests: int) -> Iterator[str]:
        """Yield what costs fewer requests than a load of many."""
        if endpoint.cheaper:
            yield f"{endpoint.cheaper} needs fewer requests"
        days = requests // self.chain.epochs_per_day
        columns = [p.rows_column for p in endpoint.parameters_of(Role.RANGE) if p.window == 1]
        if days and any(column is not None and column.unit == "epoch" for column in columns):
            yield f"one epoch of each day takes {format_requests(days)}"
            yield "a dataset of your own node takes none: bf.node, bf.index"

    def request_head(self, chain_head: ChainHead) -> None:
        """Count the request for *chain_head*; the range does not depend on it."""
        assumptions = dict(self.assumptions)
        super().request_head(chain_head)
        self.assumptions = assumptions

    def _request_chain(self) -> Chain:
        """Count the request by which a load learns the chain, and return the default chain."""
        self.chain = self._default_chain
        self._head.head()
        return self.chain

    def _assume_head(self, request: Request) -> bytes:
        """Count a request for the chain head, and return the assumed response."""
        if self.source.known_head is None:
            self.head_requests += 1
        head, source = self._find_head()
        self.assumptions = {
            f"plans request no chain head; epoch {head.epoch:,} is assumed, from {source}": None
        }
        return encode_stated_head(request, head, self.chain)

    def _find_head(self) -> tuple[Head, str]:
        """Return the most likely chain head, and its source."""
        if (known := self.source.known_head) is not None:
            return known, "the last response of the node"
        reported = self._reported.last
        stored = -1 if self.local_store is None else self.local_store.finalized
        if not self.chain_head.is_live and reported is not None:
            return reported, "an earlier response"
        if not self.chain_head.is_live and stored >= 0:
            epoch = stored + EPOCHS_TO_FINALITY
            return Head(epoch, stored, self.chain.last_slot_of(epoch)), "the store"
        now = max(self._read_clock(), self.chain.genesis)
        epoch = self.chain.at("epoch", now)
        finalized = max(epoch - EPOCHS_TO_FINALITY, 0)
        return Head(epoch, finalized, self.chain.at("slot", now)), "the clock"

    def fetch(self, request: Request) -> bytes:  # noqa: ARG002 - it is not sent
        """Count one request, and end the planning: its response is not rows."""
        self.estimates.append(Estimate(1, None, requests_without_store=1))
        raise PlanningEnded


def format_requests(requests: int) -> str:
    """Return a number of requests as text."""
    return f"{requests:,} request{'' if requests == 1 else 's'}"


def format_seconds(seconds: float) -> str:
    """Return *seconds* as text, rounded to a useful unit."""
    if seconds < 1:
        return "under a second"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = round(minutes / 60)
    return f"{hours} h" if hours < 48 else f"{hours / 24:.1f} days"
