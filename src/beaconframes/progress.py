"""Progress of loads, exports, analysis and charts, shown after a second."""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import contextmanager
from contextvars import copy_context
from functools import wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from beaconframes.config import current
from beaconframes.load_context import LOAD, Progress, change_load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

log = logging.getLogger("beaconframes.fetch")

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

DELAY = 1.0
"""Seconds: what ends earlier shows nothing."""
REFRESH_INTERVAL = 0.2
"""Seconds."""


def count_rows(rows: int) -> None:
    """Add received *rows* to the progress."""
    progress = LOAD.get().progress
    if progress is not None:
        progress.rows += rows


@contextmanager
def show_progress(
    name: str,
    *,
    show: bool | None,
    requests_left: Callable[[], int | None] = lambda: None,
    unit: str = "requests",
) -> Iterator[None]:
    """Show the progress of the block once it has run for a second.

    With *show* None it is shown in a terminal or a notebook. *requests_left* returns the requests
    left this month, None if unknown. A block inside another one counts in the bar of the outer one.
    """
    if LOAD.get().progress is not None or not (is_interactive() if show is None else show):
        yield
        return
    progress = Progress(unit)
    bar = ProgressBar(name, progress, requests_left)
    try:
        with change_load(progress=progress):
            yield
    except BaseException:
        bar.stop(succeeded=False)
        raise
    else:
        bar.stop(succeeded=True)


def show_elapsed(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Show the name and the time of a function that runs for more than a second."""

    @wraps(function)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with show_progress(function.__name__, show=current().progress, unit=""):
            return function(*args, **kwargs)

    return run


class ProgressBar:
    """A thread that draws the progress, also while the function only waits."""

    def __init__(
        self, name: str, progress: Progress, requests_left: Callable[[], int | None]
    ) -> None:
        self._name, self._progress, self._requests_left = name, progress, requests_left
        self._finished = threading.Event()
        self._succeeded = False
        # The copy of this context links the output to its notebook cell.
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._run,), name="beaconframes", daemon=True
        )
        self._thread.start()

    def stop(self, *, succeeded: bool) -> None:
        """Draw the last figures and end; *succeeded* says that the load is complete."""
        self._succeeded = succeeded
        self._finished.set()
        self._thread.join()

    def _run(self) -> None:
        if self._finished.wait(DELAY):
            return
        try:
            self._draw()
        except Exception as error:  # noqa: BLE001 - the rows matter more than the bar
            log.debug("progress is not shown: %s", type(error).__name__)

    def _draw(self) -> None:
        progress = self._progress
        # Without requests all rows come from the store, and there is no progress to show.
        while progress.unit and not (progress.expected or progress.finished):
            if self._finished.wait(REFRESH_INTERVAL):
                return
        bar = new_bar(self._name, progress.expected or None, progress.unit)
        # The load started before the bar.
        start = bar.start_t - progress.seconds
        while True:
            is_finished = self._finished.wait(REFRESH_INTERVAL)
            total = progress.expected or None
            if is_finished and self._succeeded and total is not None:
                total = progress.finished
            if total != bar.total:
                bar.reset(total)
            bar.unit, bar.bar_format = f" {progress.unit}", choose_format(progress.unit)
            bar.n, bar.start_t = progress.finished, start
            figures = postfix(progress.rows, self._requests_left(), progress.count_sent)
            bar.set_postfix_str(figures, refresh=False)
            bar.refresh()
            if is_finished:
                break
        bar.close()


def postfix(
    rows: int, requests_left: int | None, count_sent: Callable[[], int] | None = None
) -> str:
    """Return the figures after the bar."""
    parts = [] if count_sent is None else [f"{count_sent():,} requests"]
    parts += [f"{rows:,} rows"] if rows else []
    if requests_left is not None:
        parts.append(f"{requests_left:,} requests left this month")
    return ", ".join(parts)


@contextmanager
def show_epochs(name: str, total: int, *, delay: float = 0) -> Iterator[Callable[[], None]]:
    """Show a bar of *total* epochs and the remaining time; yield the function that counts one.

    It is shown after *delay* seconds in a terminal or a notebook, unless the setting ``progress``
    says otherwise.
    """
    show = current().progress
    if not total or not (is_interactive() if show is None else show):
        yield lambda: None
        return
    bar = new_bar(name, total, "epochs", delay=delay)
    try:
        yield bar.update
    finally:
        bar.close()


def new_bar(name: str, total: int | None, unit: str = "requests", *, delay: float = 0) -> Any:
    """Return a tqdm bar: a widget in a notebook, a line of text in a terminal."""
    notebook = in_notebook()
    if notebook and find_spec("ipywidgets") is None:
        # tqdm.auto would warn that ipywidgets is not installed.
        from tqdm.std import tqdm
    else:
        from tqdm.auto import tqdm
    return tqdm(
        total=total,
        desc=name,
        unit=f" {unit}",
        bar_format=choose_format(unit),
        delay=delay,
        # The finished bar stays in a notebook, and is removed from a terminal.
        leave=notebook,
        dynamic_ncols=not notebook,
        file=sys.stdout if notebook else sys.stderr,
    )


def choose_format(unit: str) -> str | None:
    """Return the format of a bar; None is the default of tqdm."""
    return None if unit else "{desc}: {elapsed}{postfix}"


def is_interactive() -> bool:
    """Return whether the output is a terminal or a notebook."""
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def in_notebook() -> bool:
    """Return whether this runs in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config
