"""The transport that joins the head and the body of an answer."""

from beaconframes.server.uvicorn_server import MAX_JOINED_BYTES, JoinedWrites


class Recorder:
    """Stands for a transport and for the event loop: records writes, runs nothing by itself."""

    def __init__(self):
        self.written = []
        self.scheduled = []

    def write(self, data):
        self.written.append(data)

    def call_soon(self, function):
        self.scheduled.append(function)


def test_small_parts_are_written_at_once():
    """A small answer takes one packet: its head and body are one write."""
    recorder = Recorder()
    transport = JoinedWrites(recorder, recorder)
    transport.write(b"head")
    transport.write(b"body")
    assert recorder.written == []
    (flush,) = recorder.scheduled
    flush()
    assert recorder.written == [b"headbody"]


def test_a_large_body_is_not_copied():
    """F4: the transport gets a view of the body itself, after all earlier parts."""
    recorder = Recorder()
    transport = JoinedWrites(recorder, recorder)
    body = b"x" * MAX_JOINED_BYTES
    transport.write(b"head")
    transport.write(body)
    transport.write(b"next")
    while recorder.scheduled:
        recorder.scheduled.pop(0)()
    assert recorder.written == [b"head", body, b"next"]
    assert recorder.written[1].obj is body
