"""The exact requests that the call of every wire sample sends, compared with requests.json.

The wire samples say which requests must arrive; this file adds their order and their exact bodies.
Where each request waits for the answer of the one before, they are in the order sent. Where
several are in flight at once, they are sorted, because the threads decide which arrives first.
After an intended change, write the file again and read its difference::

    UPDATE_SNAPSHOTS=1 pytest -n 0 tests/snapshots/test_requests.py

Writing finds out which requests are in flight at once: it holds answers back for up to a second.
"""

from __future__ import annotations

import json
import os
import threading
import warnings
from pathlib import Path

import pytest

import beaconframes as bf

from ..v1.test_wire import SAMPLES, WIRE, called, replaying, request_text

SNAPSHOT = Path(__file__).with_name("requests.json")
UPDATE = bool(os.environ.get("UPDATE_SNAPSHOTS"))
HOLD_SECONDS = 1.0
IN_ORDER, SORTED = "one at a time, in order", "several at once, sorted"


class HeldReplies(dict):
    """Replies that are held back until a second request arrives, or for a second at most."""

    def __init__(self, replies):
        super().__init__(replies)
        self.at_once = False
        self._waiting = 0
        self._arrival = threading.Condition()

    def get(self, request, default=None):
        """Return the reply to *request*; the server looks up "*" as well, which is no request."""
        if request != "*" and len(self) > 1:
            with self._arrival:
                self._waiting += 1
                self.at_once |= self._waiting > 1
                self._arrival.notify_all()
                self._arrival.wait_for(lambda: self.at_once, HOLD_SECONDS)
                self._waiting -= 1
        return super().get(request, default)


def send(name, replies_of=dict):
    """Return the requests that the call of a sample sends, as they arrive, and its replies."""
    sample = json.loads((WIRE / f"{name}.json").read_text())
    endpoint = name.partition(".")[0]
    texts = [json.dumps(reply, ensure_ascii=False).encode() for reply in sample["replies"]]
    replies = replies_of(zip(map(request_text, sample["requests"]), texts, strict=True))
    with (
        replaying(replies) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # which warnings there are, the wire tests say
        loaders, noun = (bf.v2, endpoint[3:]) if endpoint.startswith("v2/") else (bf, endpoint)
        getattr(loaders, f"load_{noun}")(**called(sample), explorer=explorer)
    return [
        [line, body.decode()] if body else line
        for line, body in zip(server.arrived, server.posted, strict=True)
    ], replies


def read_snapshot():
    """Return the requests of every sample."""
    return json.loads(SNAPSHOT.read_text()) if SNAPSHOT.exists() else {}


def update_snapshot(name):
    """Write the requests of one sample into the snapshot, and forget samples that are gone."""
    arrived, replies = send(name, HeldReplies)
    found = {SORTED: sorted(arrived, key=json.dumps)} if replies.at_once else {IN_ORDER: arrived}
    samples = {known: was for known, was in read_snapshot().items() if known in SAMPLES}
    SNAPSHOT.write_text(json.dumps(samples | {name: found}, indent=1, sort_keys=True) + "\n")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_call_sends_the_requests_of_the_snapshot(name):
    """Method, path, query and body of every request are those of the snapshot, and their order."""
    if UPDATE:
        update_snapshot(name)
    ((order, expected),) = read_snapshot()[name].items()

    arrived, _ = send(name)

    assert expected == (sorted(arrived, key=json.dumps) if order == SORTED else arrived)


def test_every_sample_of_the_snapshot_still_exists():
    """A wire sample that is removed or renamed takes its requests in the snapshot with it."""
    assert {*SAMPLES} == {*read_snapshot()}
