"""Whoever waits sees how far it is; nobody else sees anything."""

from __future__ import annotations

import io
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import beaconframes as bf
from beaconframes.client import Explorer, set_explorer
from beaconframes.config import settings
from beaconframes.errors import ServerError
from beaconframes.fetch import progress
from beaconframes.fetch.progress import Progress, new_bar, postfix

from ..support.faults import FaultServer


class Terminal(io.StringIO):
    """Where somebody watches."""

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Make a terminal of standard error, which pytest has taken anew for the test itself."""

    def begin():
        there = Terminal()
        monkeypatch.setattr(sys, "stderr", there)
        return there

    return begin


@pytest.fixture
def soon(monkeypatch):
    """What takes longer than a tenth of a second is shown, so that tests need not take longer."""
    monkeypatch.setattr(progress, "DELAY", 0.1)
    monkeypatch.setattr(progress, "REFRESH_INTERVAL", 0.02)


@pytest.fixture
def slowly(running):
    """An explorer as far away as one on another continent: settings in, explorer out."""
    opened = []
    with FaultServer(upstream=running.url, latency=0.15) as server:

        def connect(**said):
            service = running.service
            explorer = Explorer(server.url, chain=service.chain, head=service.head, **said)
            opened.append(explorer)
            set_explorer(explorer)
            explorer.server = server
            return explorer

        yield connect
        for explorer in opened:
            explorer.close()


def test_requests_of_all_rows_and_time_left_are_shown(slowly, soon, capsys):
    """468 epochs of 150 validators are 2 x 5 requests and 70,200 rows."""
    slowly(progress=True)
    frame = bf.load_income_history(range(150), since=0)
    shown = capsys.readouterr()

    assert "" == shown.out
    assert re.search(r"income_history: +[1-9]0%.* [1-9]/10 \[00:0\d<00:0\d", shown.err)
    last = [line for line in shown.err.split("\r") if "income" in line][-1]
    assert "10/10" in last
    assert f"{frame.height:,} rows" in last
    assert 70_200 == frame.height
    assert shown.err.endswith("\r")


def test_pages_of_unknown_number_are_counted(slowly, soon, capsys, monkeypatch):
    """A list whose end nobody knows has a count and no end that was made up."""
    monkeypatch.setattr(
        "beaconframes.endpoint.Endpoint.count_pages", lambda endpoint, part: (1, False)
    )
    slowly(progress=True)
    bf.load_income_history(range(10), since=0)
    shown = capsys.readouterr().err

    assert re.search(r"income_history: [1-5] requests \[", shown)
    assert not re.search("%|/5", shown)


def test_quick_calls_show_nothing(slowly, terminal):
    """Some tenths of a second are not worth a look, even where it was asked for."""
    slowly(progress=True)
    shown = terminal()
    bf.load_latest_state()
    bf.load_validators(range(10))

    assert "" == shown.getvalue()


@pytest.mark.parametrize("how", ["argument", "block", "variable"])
def test_quiet_where_it_is_wanted(slowly, soon, terminal, monkeypatch, how):
    """An argument, a block of settings or the environment keeps it quiet in a terminal."""
    if how == "variable":
        monkeypatch.setenv("BEACONFRAMES_PROGRESS", "false")
    slowly(**({"progress": False} if how == "argument" else {}))
    shown = terminal()
    with settings(**({"progress": False} if how == "block" else {})):
        bf.load_income_history(range(10), since=0)

    assert "" == shown.getvalue()


def test_shown_in_a_terminal_and_not_in_a_file(slowly, soon, terminal, monkeypatch):
    """Unless told otherwise it is shown where somebody watches, and is gone at the end."""
    slowly()
    shown = terminal()
    bf.load_income_history(range(10), since=0)
    watched = shown.getvalue()
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    bf.load_income_history(range(10), since=0)

    assert "5/5" in watched
    assert "" == watched.rsplit("\r", 1)[1].strip()
    assert "" == file.getvalue()


def test_connect_takes_it_and_every_loader_keeps_to_it(slowly, soon, terminal, running):
    """`bf.connect(progress=False)` holds for what follows."""
    bf.connect(slowly().url, chain=running.service.chain, progress=False)
    shown = terminal()
    bf.load_income_history(range(10), since=0)

    assert "" == shown.getvalue()


def test_an_error_ends_it_where_it_was(slowly, soon, capsys):
    """What failed is not shown as done; the error comes as ever."""
    explorer = slowly(progress=True)
    explorer.server.fault("status?code=500&path=100")
    explorer.source.sessions.copy().pop().retry_quota._available = 0
    with pytest.raises(ServerError):
        bf.load_income_history(range(150), since=0)

    assert "10/10" not in capsys.readouterr().err


def test_what_is_kept_shows_nothing(slowly, soon, capsys, tmp_path, monkeypatch):
    """Nothing is asked for, so there is nothing to count, however long the reading takes."""
    slowly(store=tmp_path, progress=True)
    bf.load_income_history(range(10), since=0, until=399)
    first = capsys.readouterr().err
    monkeypatch.setattr(progress, "DELAY", 0.0)
    bf.load_income_history(range(10), since=0, until=399)

    assert "4/4" in first
    assert "3,990 rows" in first or "4,000 rows" in first
    assert "" == capsys.readouterr().err


def test_rows_come_though_nothing_can_be_shown(slowly, soon, monkeypatch):
    """A closed terminal is no reason to lose what was loaded."""
    gone = Terminal()
    gone.close()
    slowly(progress=True)
    monkeypatch.setattr(sys, "stderr", gone)

    assert 4_680 == bf.load_income_history(range(10), since=0).height


def test_loads_in_threads_are_told_apart(slowly, soon, capsys):
    """Each of three loads at once counts its own requests."""
    slowly(progress=True)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda n: bf.load_income_history([n], since=0), range(3)))
    shown = capsys.readouterr().err

    assert "5/5" in shown
    assert not re.search(r" ([6-9]|1\d)/", shown)


def test_notebook_without_widgets_is_not_warned_of_them(monkeypatch):
    """Where ipywidgets is missing it is a line of text, and no warning."""
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    written = io.StringIO()
    monkeypatch.setattr(sys, "stdout", written)
    bar = new_bar("epochs", 3)
    bar.close()

    assert "epochs" in written.getvalue()


def test_postfix_tell_what_is_left_of_the_month():
    """Rows and requests, with commas; nothing of what nobody knows."""
    assert "2,000 rows, 995 requests left this month" == postfix(2_000, 995)
    assert "" == postfix(0, None)


def test_planned_requests_add_up_until_one_is_unknown():
    """What is asked once more comes on top; a list without an end has no end in sum either."""
    progress = Progress()
    progress.expect(10)
    progress.expect(2)
    assert 12 == progress.expected
    progress.expect(None)
    progress.expect(3)
    assert progress.expected is None
    assert progress.seconds <= time.monotonic() - progress.started_at
