"""Progress bars: shown in terminals and notebooks for what takes long, never in files."""

from __future__ import annotations

import io
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

import beaconframes as bf
from beaconframes import progress
from beaconframes.client import Explorer, set_explorer
from beaconframes.config import settings
from beaconframes.errors import ServerError
from beaconframes.load_context import Progress
from beaconframes.progress import new_bar, postfix

from .support.faults import FaultServer


class Terminal(io.StringIO):
    """A text stream that is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Replace standard error by a terminal inside the test, after pytest has replaced it."""

    def replace_stderr():
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return replace_stderr


class Drawn:
    """What the bars have shown so far."""

    def __init__(self):
        self.counts = {}
        self._changed = threading.Condition()

    def record(self, bar):
        refresh = bar.refresh

        def refresh_and_record(*arguments, **options):
            shown = refresh(*arguments, **options)
            with self._changed:
                self.counts[bar] = bar.n
                self._changed.notify_all()
            return shown

        bar.refresh = refresh_and_record
        return bar

    def await_bars(self, bars, count=0):
        """Return when so many *bars* are shown, with this *count* together."""
        with self._changed:
            assert self._changed.wait_for(
                lambda: len(self.counts) >= bars and sum(self.counts.values()) >= count, 60
            )


@pytest.fixture
def drawn(monkeypatch):
    """Show the bar immediately, and record what it shows."""
    shown, create = Drawn(), progress.new_bar
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "REFRESH_INTERVAL", 0.01)
    monkeypatch.setattr(progress, "new_bar", lambda *args: shown.record(create(*args)))
    return shown


class PacedServer(FaultServer):
    """Answers a request once *bars* show all the requests before it."""

    drawn, bars, received = None, 1, 0

    def _good(self, seen):
        if self.drawn is not None:
            with self._lock:
                before, self.received = self.received, self.received + 1
            # Without a known total there is no bar before the first response.
            if before:
                self.drawn.await_bars(self.bars, before)
        return super()._good(seen)


@pytest.fixture
def connect_slowly(running):
    """Connect to a service with a high latency: options in, explorer out."""
    opened = []
    with PacedServer(upstream=running.url, latency=0.02) as server:

        def connect(drawn=None, bars=1, **options):
            service = running.service
            server.drawn, server.bars = drawn, bars
            explorer = Explorer(server.url, chain=service.chain, head=service.head, **options)
            opened.append(explorer)
            set_explorer(explorer)
            explorer.server = server
            return explorer

        yield connect
        for explorer in opened:
            explorer.close()


@pytest.mark.more
def test_requests_of_all_rows_and_time_left_are_shown(connect_slowly, drawn, capsys):
    """468 epochs of 150 validators are 2 x 5 requests and 70,200 rows."""
    connect_slowly(drawn, progress=True)
    frame = bf.load_income_history(range(150), since=0)
    shown = capsys.readouterr()

    assert "" == shown.out
    assert re.search(r"income_history: +[1-9]0%.* [1-9]/10 \[00:\d\d<00:\d\d", shown.err)
    last = [line for line in shown.err.split("\r") if "income" in line][-1]
    assert "10/10" in last
    assert f"{frame.height:,} rows" in last
    assert 70_200 == frame.height
    assert shown.err.endswith("\r")


def test_pages_of_unknown_number_are_counted(connect_slowly, drawn, capsys, monkeypatch):
    """A list with an unknown number of pages has a count and no total."""
    monkeypatch.setattr(
        "beaconframes.endpoint.Endpoint.count_pages", lambda endpoint, part: (1, False)
    )
    connect_slowly(drawn, progress=True)
    bf.load_income_history(range(10), since=0)
    shown = capsys.readouterr().err

    assert re.search(r"income_history: [1-5] requests \[", shown)
    assert not re.search("%|/5", shown)


def test_quick_calls_show_nothing(connect_slowly, terminal, monkeypatch):
    """Calls that end before the delay of a second show no bar, even with progress=True."""
    assert 1 == progress.DELAY
    monkeypatch.setattr(progress, "DELAY", 60.0)  # the machine may be busy
    connect_slowly(progress=True)
    shown = terminal()
    bf.load_latest_state()
    bf.load_validators(range(10))

    assert "" == shown.getvalue()


@pytest.mark.parametrize("how", ["argument", "block", "variable"])
@pytest.mark.usefixtures("drawn")
def test_progress_can_be_turned_off(connect_slowly, terminal, monkeypatch, how):
    """An argument, a block of settings or the environment turns it off in a terminal."""
    if how == "variable":
        monkeypatch.setenv("BEACONFRAMES_PROGRESS", "false")
    connect_slowly(**({"progress": False} if how == "argument" else {}))
    shown = terminal()
    with settings(**({"progress": False} if how == "block" else {})):
        bf.load_income_history(range(10), since=0)

    assert "" == shown.getvalue()


def test_shown_in_a_terminal_and_not_in_a_file(connect_slowly, drawn, terminal, monkeypatch):
    """By default it is shown in a terminal, and removed at the end."""
    server = connect_slowly(drawn).server
    shown = terminal()
    bf.load_income_history(range(10), since=0)
    shown_in_terminal = shown.getvalue()
    server.drawn = None
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    bf.load_income_history(range(10), since=0)

    assert "5/5" in shown_in_terminal
    assert "" == shown_in_terminal.rsplit("\r", 1)[1].strip()
    assert "" == file.getvalue()


@pytest.mark.usefixtures("drawn")
def test_connect_sets_it_for_all_loaders(connect_slowly, terminal, running):
    """`bf.connect(progress=False)` applies to later calls."""
    bf.connect(connect_slowly().url, chain=running.service.chain, progress=False)
    shown = terminal()
    bf.load_income_history(range(10), since=0)

    assert "" == shown.getvalue()


@pytest.mark.more
@pytest.mark.usefixtures("drawn")
def test_an_error_stops_the_bar(connect_slowly, capsys):
    """The bar does not reach the total, and the error is raised."""
    explorer = connect_slowly(progress=True)
    explorer.server.fault("status?code=500&path=100")
    explorer.source.sessions.copy().pop().retry_quota._available = 0
    with pytest.raises(ServerError):
        bf.load_income_history(range(150), since=0)

    assert "10/10" not in capsys.readouterr().err


def test_stored_rows_show_nothing(connect_slowly, drawn, capsys, tmp_path):
    """No request is sent, so no bar is shown, however long reading takes."""
    connect_slowly(drawn, store=tmp_path, progress=True)
    bf.load_income_history(range(10), since=0, until=399)
    first = capsys.readouterr().err
    bf.load_income_history(range(10), since=0, until=399)

    assert "4/4" in first
    assert "3,990 rows" in first or "4,000 rows" in first
    assert "" == capsys.readouterr().err


@pytest.mark.usefixtures("drawn")
def test_a_closed_terminal_loses_no_rows(connect_slowly, monkeypatch):
    """The load succeeds if the bar cannot be written."""
    closed = Terminal()
    closed.close()
    connect_slowly(progress=True)
    monkeypatch.setattr(sys, "stderr", closed)

    assert 4_680 == bf.load_income_history(range(10), since=0).height


@pytest.mark.more
def test_loads_in_threads_count_separately(connect_slowly, drawn, capsys):
    """Each of three concurrent loads counts its own requests."""
    connect_slowly(drawn, bars=3, progress=True)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda n: bf.load_income_history([n], since=0), range(3)))
    shown = capsys.readouterr().err

    assert "5/5" in shown
    assert not re.search(r" ([6-9]|1\d)/", shown)


def test_notebook_without_widgets(monkeypatch):
    """Without ipywidgets the bar is a line of text, and no warning is raised."""
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    written = io.StringIO()
    monkeypatch.setattr(sys, "stdout", written)
    bar = new_bar("epochs", 3)
    bar.close()

    assert "epochs" in written.getvalue()


def test_postfix():
    """Rows and requests, with commas; unknown figures are omitted."""
    assert "2,000 rows, 995 requests left this month" == postfix(2_000, 995)
    assert "" == postfix(0, None)


def test_planned_requests_add_up_until_one_is_unknown():
    """Repeated requests are added; with a list of unknown length the total is unknown."""
    progress = Progress()
    progress.expect(10)
    progress.expect(2)
    assert 12 == progress.expected
    progress.expect(None)
    progress.expect(3)
    assert progress.expected is None
    assert progress.seconds <= time.monotonic() - progress.started_at


@pytest.fixture
def reconcile():
    """A function that runs longer than the delay of the bar, and calls another one like it.

    `wait` is what the other one does.
    """

    @progress.show_elapsed
    def completeness():
        reconcile.wait()

    @progress.show_elapsed
    def reconcile():
        completeness()

    reconcile.wait = lambda: time.sleep(0.05)
    return reconcile


def test_long_functions_show_their_time(reconcile, terminal, drawn):
    """Step 12, 6: a sign of life, once for functions that call each other; removed at the end."""
    shown = terminal()
    reconcile.wait = lambda: drawn.await_bars(1)
    reconcile()

    assert "reconcile: 00:0" in shown.getvalue()
    assert "completeness" not in shown.getvalue()
    assert "" == shown.getvalue().rsplit("\r", 1)[1].strip()


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("how", ["block", "variable", "file"])
def test_the_time_of_functions_can_be_turned_off(reconcile, terminal, monkeypatch, how):
    """Step 12, 6: by the setting `progress`; in a file it is not shown."""
    shown = terminal()
    if how == "variable":
        monkeypatch.setenv("BEACONFRAMES_PROGRESS", "false")
    if how == "file":
        shown = io.StringIO()
        monkeypatch.setattr(sys, "stderr", shown)
    with settings(**({"progress": False} if how == "block" else {})):
        reconcile()

    assert "" == shown.getvalue()


def test_analysis_charts_animations_and_exports_show_their_time(monkeypatch):
    """Step 12, 6: every public function that may take more than a second."""
    shown = []

    @contextmanager
    def record(name, **_):
        shown.append(name)
        yield

    monkeypatch.setattr(progress, "show_progress", record)
    functions = [bf.export, bf.wall.timelapse]
    functions += [getattr(bf.analysis, name) for name in bf.analysis.__all__]
    functions = [function for function in functions if callable(function)]
    for function in functions:
        # Without arguments, it fails after the bar has started.
        with suppress(TypeError):
            function()
    assert [function.__name__ for function in functions] == shown

    for library in (bf.plot, bf.interactive):
        shown.clear()
        names = [name for name in library.__all__ if name not in {"alt_text", "style", "wall"}]
        for name in names:
            with suppress(TypeError):
                getattr(library, name)()
        assert names == shown


@pytest.mark.more
def test_an_export_shows_one_bar(connect_slowly, drawn, capsys, monkeypatch, tmp_path):
    """Step 12, 6: it counts its loads, which show no bars of their own."""
    monkeypatch.setattr("beaconframes.exports.chunked_load.CHUNK_ROWS", 1_000)
    connect_slowly(drawn, progress=True)
    with settings(progress=True):
        bf.export(
            bf.load_income_history, tmp_path / "rows", validators=range(10), since=0, until=299
        )
    shown = capsys.readouterr().err

    assert re.search(r"export: +[1-9]\d*%.* [12]/3 \[00:\d\d<00:\d\d, .*loads?", shown)
    assert "income_history" not in shown
    assert "3/3" in shown
    assert re.search(r"[23],\d{3} rows", shown)
