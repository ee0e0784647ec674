"""Credentials in a node's address are sent with each request, and shown nowhere."""

from __future__ import annotations

import logging
import os
import pickle
import traceback
from base64 import b64encode
from contextlib import closing

import pytest

import beaconframes as bf
from beaconframes import progress
from beaconframes.beacon_node import Node
from beaconframes.beacon_node.client.api import BeaconApi
from beaconframes.beacon_node.client.session import NodeSession
from beaconframes.beacon_node.execution.api import ExecutionApi
from beaconframes.config import current
from beaconframes.errors import BeaconframesError, ConfigError, Unauthorized, UsageError
from beaconframes.http import retry
from beaconframes.http.credentials import split_address

from ..http.test_secrets import dump
from ..support.beacon_node_faults import Fault
from ..support.beacon_node_stub import BeaconNodeStub
from ..support.faults import FastClock, FaultServer

PASSWORD = "ZEBRA-9f86d081"
TOKEN = "b7f2c9e4d1a8463f95ZEBRA"
BASIC = b64encode(f"alice:{PASSWORD}".encode()).decode()
ADDRESSES = {
    "password": (f"alice:{PASSWORD}@", "", "/eth/v1/node/version"),
    "query": ("", f"?apikey={PASSWORD}", f"/eth/v1/node/version?apikey={PASSWORD}"),
    "path": ("", f"/v2/{TOKEN}/", f"/v2/{TOKEN}/eth/v1/node/version"),
}
NEEDLES = ("ZEBRA", "zebra-9f", BASIC.rstrip("="), "9f86d081")


@pytest.mark.parametrize(
    "fault", ["", "401", "5xx?code=500", "key_echo?code=400", "drop", "200_html", "garbage"]
)
@pytest.mark.parametrize("kind", ADDRESSES)
def test_credentials_are_sent_and_not_shown(kind, fault, caplog):
    """No error text, traceback, log record or repr holds them, whatever goes wrong."""
    caplog.set_level(logging.DEBUG)
    shown = ""
    with FaultServer(fault) as server:
        api = connect(server, kind)
        try:
            api.version()
        except BeaconframesError as error:
            shown = dump(error)
        shown += f"{api!r} {vars(api)!r} {vars(api.session)!r} {vars(api.session._session)!r}"
        api.close()

    assert ADDRESSES[kind][2] == server.seen[0].target
    sent = server.seen[0].headers.get("authorization")
    assert (f"Basic {BASIC}" if kind == "password" else None) == sent
    logged = "\n".join(f"{record.getMessage()} {vars(record)!r}" for record in caplog.records)
    assert "httpcore" in logged
    assert [] == [needle for needle in NEEDLES if needle in shown or needle in logged]


@pytest.mark.parametrize("fault", ["401", "key_echo?code=400", "drop", "garbage"])
@pytest.mark.parametrize("kind", ADDRESSES)
def test_credentials_of_an_execution_node(kind, fault, caplog):
    """The JSON-RPC gets them with the path as given, without a slash at its end."""
    caplog.set_level(logging.DEBUG)
    shown = ""
    with FaultServer(fault) as server:
        api = connect(server, kind, ExecutionApi)
        try:
            api.head_number()
        except BeaconframesError as error:
            shown = dump(error)
        shown += f"{api!r} {vars(api)!r} {vars(api.session)!r}"
        api.close()

    targets = {"password": "/", "query": f"/?apikey={PASSWORD}", "path": f"/v2/{TOKEN}"}
    assert targets[kind] == server.seen[0].target
    sent = server.seen[0].headers.get("authorization")
    assert (f"Basic {BASIC}" if kind == "password" else None) == sent
    logged = "\n".join(f"{record.getMessage()} {vars(record)!r}" for record in caplog.records)
    assert [] == [needle for needle in NEEDLES if needle in shown or needle in logged]


def connect(server, kind, api=BeaconApi):
    """Return the API of a server, with credentials in its address."""
    user, end, _ = ADDRESSES[kind]
    return api(NodeSession(f"http://{user}{server.url[7:]}{end}", clock=FastClock()))


@pytest.mark.parametrize("write", ["index", "follow"])
def test_credentials_of_both_nodes_of_an_index(write, tmp_path, caplog):
    """No frame of the traceback of an error holds the addresses that the caller gave."""
    caplog.set_level(logging.DEBUG)
    with FaultServer("401") as server:
        address = f"http://alice:{PASSWORD}@{server.url[7:]}"
        with pytest.raises(Unauthorized) as caught:
            getattr(bf, write)(address, tmp_path / "index", execution=f"{address}/{TOKEN}")

    del address
    error = caught.value
    # The first frame is that of this test.
    error.__traceback__ = error.__traceback__.tb_next
    shown = dump(error) + "\n".join(record.getMessage() for record in caplog.records)
    assert [] == [needle for needle in NEEDLES if needle in shown]


def test_credentials_are_never_sent_unencrypted():
    """Plain http with credentials is refused, except to this machine; the error has none."""
    for address in (
        f"http://alice:{PASSWORD}@node.example:5052",
        f"http://node.example/{TOKEN}",
        f"http://node.example/?apikey={PASSWORD}",
        f"alice:{PASSWORD}@node.example",
        f"https://alice:{PASSWORD}@node.example:port",
        f"https://alice:{PASSWORD}@node.example#part",
    ):
        with pytest.raises(ConfigError) as caught:
            split_address(address)
        assert "ZEBRA" not in str(caught.value)

    assert ("http://node.example:5052/beacon", None) == split_address(
        "http://node.example:5052/beacon/"
    )


@pytest.mark.parametrize(
    "address",
    [
        f"https://alice:{PASSWORD}/end@node.example",
        f"https://alice:{PASSWORD}?end@node.example",
        f"https://alice:{PASSWORD}[end@node.example",
        f"https://alice:{PASSWORD}#end@node.example",
        "https://ZEBRA:5052/end@node.example",
        "https://ZEBRA:5052?end@node.example",
        f"https://alice:ZEBRA/{TOKEN}@node.example",
        f"https://{PASSWORD}:port",
        f"https:///{PASSWORD}",
    ],
)
@pytest.mark.parametrize(
    "connect_to",
    [
        bf.node,
        lambda address: bf.node("http://127.0.0.1:1", execution=address),
        lambda address: bf.index(address, "unused"),
    ],
    ids=["node", "execution", "index"],
)
def test_no_part_of_an_address_that_cannot_be_parsed_is_shown(connect_to, address):
    """A special character ends the host early, so that the password looks like a host or path."""
    with pytest.raises(ConfigError, match="Percent-encode") as caught:
        connect_to(address)
    caught.value.__traceback__ = None

    assert [] == [needle for needle in (*NEEDLES, "5052") if needle in dump(caught.value)]


@pytest.mark.parametrize("sign", "/?#[")
def test_no_part_of_an_explorer_with_a_password_is_shown(sign):
    """An address of an explorer has no password, with or without special characters."""
    address = f"https://alice:{PASSWORD}{sign}end@node.example"
    for connect_to in (bf.connect, bf.Explorer):
        with pytest.raises(ConfigError) as caught:
            connect_to(address)
        shown = "".join(traceback.format_exception(caught.value))

        assert [] == [needle for needle in NEEDLES if needle in shown]


def test_api_cannot_be_pickled():
    """Credentials do not leave the process; each worker gets the address."""
    with closing(BeaconApi(NodeSession(f"https://alice:{PASSWORD}@node.example"))) as api:
        with pytest.raises(UsageError, match="address of the node in each process"):
            pickle.dumps(api)
        assert "https://node.example" == api.url


def test_percent_encoded_credentials():
    """A password may have any characters; what is sent is decoded first."""
    _, credentials = split_address("https://user:p%40ss%20w%C3%B6rd@node.example")
    words = [secret.reveal() for secret in credentials.secrets]

    assert "p@ss wörd" in words
    assert b64encode("user:p@ss wörd".encode()).decode().rstrip("=") in words


@pytest.fixture
def hidden_node(monkeypatch):
    """A stub, and the addresses of its nodes with a user, a password and a query."""
    monkeypatch.setattr(retry, "back_off", lambda _: 0.0)
    with BeaconNodeStub("capella", head=95) as stub:
        end = f"?apikey={PASSWORD}"
        address, execution = (
            f"{url.replace('://', f'://alice:{PASSWORD}@')}{end}"
            for url in (stub.url, stub.execution_url)
        )
        monkeypatch.setenv("BEACONFRAMES_NODE", address)
        monkeypatch.setenv("BEACONFRAMES_EXECUTION", execution)
        yield stub


def test_no_channel_of_a_node_shows_credentials(hidden_node, tmp_path, caplog, capsys, monkeypatch):
    """Q01: texts, plans, progress, logs, errors with their frames, the store, exports."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    shown = [repr(current())]
    with bf.node(store=tmp_path / "store", progress=True) as node:
        shown += [repr(node), str(node), node._repr_html_(), repr(vars(node))]
        shown += [repr(vars(part)) for part in (node.connection, node.index, node.source)]
        planned = bf.plan(bf.load_income_history, [1], since=3, until=3)
        shown += [repr(planned), planned._repr_html_(), repr(bf.quota()), bf.quota()._repr_html_()]
        income = bf.load_income_history([1], since=3, until=3)
        shown += [repr(income), repr(bf.store()), repr(bf.store().dataset.meta), repr(node.about)]
        hidden_node.faults.append(Refusing())
        for load in (
            lambda: bf.load_income_history([1], since=6, until=6),
            lambda: pickle.dumps(node),
        ):
            with pytest.raises(BeaconframesError) as caught:
                load()
            shown.append(dump(caught.value))
        hidden_node.faults.clear()
        loader, folder = bf.load_income_history, tmp_path / "income"
        bf.export(loader, folder, validators=[1], since=3, until=3)
    hidden_node.faults.append(Refusing())
    for connect_again in (
        lambda: bf.node(store=False),
        lambda: bf.node(os.environ["BEACONFRAMES_NODE"], store=False),
        lambda: Node(os.environ["BEACONFRAMES_NODE"], execution=os.environ["BEACONFRAMES_NODE"]),
        lambda: bf.index(os.environ["BEACONFRAMES_NODE"], tmp_path / "index"),
        lambda: bf.follow(os.environ["BEACONFRAMES_NODE"], tmp_path / "index"),
    ):
        with pytest.raises(BeaconframesError) as caught:
            connect_again()
        shown.append(dump(caught.value))
    output = capsys.readouterr()
    shown += [output.out, output.err]
    shown += [f"{record.getMessage()} {vars(record)!r}" for record in caplog.records]
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 5
    shown += [file.read_bytes().decode("latin-1") + str(file) for file in files]

    sent = hidden_node.requests[-1].headers["authorization"]
    assert f"Basic {BASIC}" == sent
    text = "\n".join(shown)
    assert [] == [needle for needle in NEEDLES if needle in text]


class Refusing(Fault):
    """The node quotes the credentials in its errors."""

    def refuse(self, node, request):
        return node.error(401, f"{request.target} {request.headers.get('authorization')}")
