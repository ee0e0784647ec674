"""Progress: how far the call of a loader has come, shown when it takes more than a moment."""

from __future__ import annotations

import logging
import sys
import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from beaconframes.client.estimate import pages_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from beaconframes.endpoint import Call, Endpoint

log = logging.getLogger("beaconframes.client")

DELAY = 1.0
"""Seconds: what is over by then shows nothing."""
OFTEN = 0.2
"""Seconds between two looks at how far it is."""


class Progress:
    """How far one call of a loader has come; any thread may count."""

    def __init__(self) -> None:
        self.requests = 0
        """Requests answered, failed attempts not counted."""
        self.rows = 0
        self.expected: int | None = 0
        """Requests in all, as planned; None when nobody knows before the last one."""
        self.begun = time.monotonic()
        self._lock = threading.Lock()

    def expect(self, requests: int | None) -> None:
        """Add to the requests that are planned; None when it is not known how many."""
        known = self.expected is not None and requests is not None
        self.expected = (self.expected or 0) + (requests or 0) if known else None

    def answered(self) -> None:
        """Count one request."""
        with self._lock:
            self.requests += 1

    @property
    def seconds(self) -> float:
        """Return for how long it has been going on."""
        return time.monotonic() - self.begun


PROGRESS: ContextVar[Progress | None] = ContextVar("progress", default=None)
"""That of the call of a loader that goes on here, where somebody watches it."""


def expect(endpoint: Endpoint, calls: Sequence[Call], at_once: int) -> None:
    """Tell whoever watches what is going to be asked, *at_once* validators in one request."""
    progress = PROGRESS.get()
    if progress is not None:
        parts = (part for call in calls for part in endpoint.parts(call, at_once))
        counts = [pages_of(endpoint, part) for part in parts]
        known = all(sure for _, sure in counts)
        progress.expect(sum(pages for pages, _ in counts) if known else None)


def brought(rows: int) -> None:
    """Tell whoever watches that so many *rows* came."""
    progress = PROGRESS.get()
    if progress is not None:
        progress.rows += rows


@contextmanager
def watched(name: str, *, show: bool | None, left: Callable[[], int | None]) -> Iterator[None]:
    """Show how far the block is, from a second on; with *show* None where somebody looks.

    *left* tells how many requests are left of the month, None if nobody knows.
    """
    if not (somebody_looks() if show is None else show):
        yield
        return
    progress = Progress()
    token = PROGRESS.set(progress)
    watcher = Watcher(name, progress, left)
    try:
        yield
    except BaseException:
        watcher.stop(well=False)
        raise
    else:
        watcher.stop(well=True)
    finally:
        PROGRESS.reset(token)


class Watcher:
    """A thread that shows how far it is, also while whoever loads only waits."""

    def __init__(self, name: str, progress: Progress, left: Callable[[], int | None]) -> None:
        self._name, self._progress, self._left = name, progress, left
        self._over = threading.Event()
        self._well = False
        # In this context, by which a notebook knows to which cell an output belongs.
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._watch,), name="beaconframes", daemon=True
        )
        self._thread.start()

    def stop(self, *, well: bool) -> None:
        """Show the last figures and end; *well* says that everything came."""
        self._well = well
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        if self._over.wait(DELAY):
            return
        try:
            self._show()
        except Exception as error:  # noqa: BLE001 - whatever it is, the rows matter more
            log.debug("progress is not shown: %s", type(error).__name__)

    def _show(self) -> None:
        # With nothing to ask for there is nothing to count: all of it is in the store.
        while not (self._progress.expected or self._progress.requests):
            if self._over.wait(OFTEN):
                return
        progress = self._progress
        bar = new_bar(self._name, progress.expected)
        # It has been going on for a while.
        start = bar.start_t - progress.seconds
        while True:
            over = self._over.wait(OFTEN)
            total = progress.expected
            if over and self._well and total is not None:
                total = progress.requests
            if total != bar.total:
                bar.reset(total)
            bar.n, bar.start_t = progress.requests, start
            bar.set_postfix_str(figures(progress.rows, self._left()), refresh=False)
            bar.refresh()
            if over:
                break
        bar.close()


def figures(rows: int, left: int | None) -> str:
    """Return what there is to say besides the requests."""
    told = [f"{rows:,} rows"] if rows else []
    if left is not None:
        told.append(f"{left:,} requests left this month")
    return ", ".join(told)


def new_bar(name: str, total: int | None) -> Any:
    """Return a bar in the way of the place: a widget in a notebook, else a line of text."""
    notebook = in_notebook()
    if notebook and find_spec("ipywidgets") is None:
        # The automatic choice would warn of what is not installed.
        from tqdm.std import tqdm
    else:
        from tqdm.auto import tqdm
    return tqdm(
        total=total,
        desc=name,
        unit=" requests",
        # In a notebook it stays beneath its cell; a terminal is left as it was.
        leave=notebook,
        dynamic_ncols=not notebook,
        file=sys.stdout if notebook else sys.stderr,
    )


def somebody_looks() -> bool:
    """Tell whether there is a terminal or a notebook to show anything in."""
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def in_notebook() -> bool:
    """Tell whether this runs in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config
