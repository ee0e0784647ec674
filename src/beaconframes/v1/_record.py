"""The recorder: attestation duties for as long as one likes, of a service that forgets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.calendar import instants
from beaconframes.client.connected import current
from beaconframes.client.recorder import Clock, Recorder
from beaconframes.endpoint.identifiers import cut
from beaconframes.errors import UsageError
from beaconframes.v1.attestations import ATTESTATIONS

if TYPE_CHECKING:
    from datetime import date, datetime, timedelta

    import polars as pl

    from beaconframes.client import Explorer, Subjects

SERVED = 100
"""Epochs that the service keeps."""


def record(
    what: str,
    validators: Subjects,
    *,
    until: int | str | date | datetime | None = None,
    for_: str | timedelta | None = None,
    every: int = 48,
    slim: bool = False,
    explorer: Explorer | None = None,
    clock: Clock | None = None,
) -> pl.DataFrame:
    """Record what the service forgets, into the store: one row per validator and run of epochs.

    Attestation duties are served for the last 100 epochs only, some ten hours. This loads them in
    time, again and again, and keeps those that are final, each once; `load_attestations` has them
    from then on, for any range. It waits in between, and ends at *until*, after *for_*, or on
    Ctrl-C; what was recorded stays either way, and another call goes on from there.

    Parameters
    ----------
    what
        ``"attestations"``: nothing else is forgotten.
    validators
        Indices or public keys: one, or a list, range or Series of them.
    until
        The last epoch, or an instant or date to come. Left out: no end.
    for_
        For how long instead, such as ``"7d"``.
    every
        Epochs between two polls: 48 are some five hours, which leaves as much to try again.
    slim
        Whether to leave out ``committee_index``, for half the bytes; see `load_attestations`.
    explorer
        The explorer to ask, which has a store; left out, the one of ``bf.connect``.
    clock
        What tells the time and waits; for tests.

    Returns
    -------
    polars.DataFrame
        ``validator_index, first_epoch, last_epoch, state``. What is ``kept`` is in the store, of
        what is ``absent`` the service has nothing, what is ``open`` did not come and is still
        served, and what is ``lost`` nobody can fill any more. Epochs that are not final yet are not
        in it. `MissingRows` warns of what is absent.

    Notes
    -----
    An outage is waited for. Whatever else stops it (a wrong key, a spent month) is raised, and
    what was recorded by then is kept.
    """
    if what != "attestations":
        raise UsageError(
            f"{cut(what)} cannot be recorded",
            hint='Only "attestations" are forgotten by the service; all else can be loaded later',
        )
    asked = explorer if explorer is not None else current()
    clock = clock or Clock()
    return Recorder(
        explorer=asked,
        endpoint=ATTESTATIONS,
        values={"validators": validators, "slim": slim},
        reach=SERVED,
        every=every,
        last=last_epoch(asked, until, for_, clock),
        clock=clock,
    ).run()


def last_epoch(
    explorer: Explorer,
    until: int | str | date | datetime | None,
    for_: str | timedelta | None,
    clock: Clock,
) -> int | None:
    """Return the epoch that *until* or *for_* mean; None for no end."""
    now = clock.now()
    if until is not None and for_ is not None:
        raise UsageError("until= and for_= both say when it ends", hint="Give one of them")
    if for_ is not None:
        # Read as loaders do, "that long ago", and laid forward.
        ago, end = instants("for_", for_, lambda: now)
        if not ago == end < now:
            raise UsageError(f"for_={cut(for_)} is no length", hint='Such as for_="7d"')
        return explorer.chain.at("epoch", now + (now - ago))
    if until is None:
        return None
    if isinstance(until, int) and not isinstance(until, bool):
        if until < 0:
            raise UsageError(f"until={until} is no epoch to come", hint="Count from 0 up")
        return until
    _, end = instants("until", until, lambda: now)
    return explorer.chain.at("epoch", end) - 1
