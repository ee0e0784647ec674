"""Keys, tiers, limits, faults, hosts, origins and the log of the local explorer."""

from __future__ import annotations

import contextlib
import logging
import socket
import time

import httpx
import pytest

import beaconframes as bf
from beaconframes.server import Server
from beaconframes.server.access import Limits, parse_limits
from beaconframes.server.faults import FaultPlan, parse_faults

STATE = "/api/v1/latestState"
SLOT = "/api/v2/ethereum/slot"
BODY = {"chain": "mainnet", "slot": {"number": 5000}}
KEYS = {"free-key": "free", "premium-key": "premium"}


@pytest.fixture(scope="module")
def service(chain):
    """Return a server with the limits of the public service and keys of two tiers."""
    with (
        Server(chain, wire="public", keys=KEYS, limits="service") as server,
        httpx.Client(base_url=server.url) as client,
    ):
        yield client


def test_one_key_is_a_text(chain):
    """It is not five keys of one letter."""
    with Server(chain, keys="secret") as server, httpx.Client(base_url=server.url) as client:
        answers = [send_v1(client, apikey=key).status_code for key in ("secret", "s", "e")]
    assert [200, 401, 401] == answers


def send_v1(client, **headers):
    """Return the answer of V1 to a request with these headers."""
    return client.get(STATE, headers=headers)


def send_v2(client, key=None):
    """Return the answer of V2 to a request with this key."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return client.post(SLOT, json=BODY, headers=headers)


def test_three_plans_in_one_server(service):
    """E4: no key, a free key and a premium key have their own limits and their own counters."""
    shown = {}
    for name, headers in {
        "nokey": {}, "free": {"apikey": "free-key"}, "premium": {"apikey": "premium-key"}
    }.items():  # fmt: skip
        sent = send_v1(service, **headers).headers
        units = ("second", "hour", "month")
        shown[name] = [sent[f"x-ratelimit-limit-{unit}"] for unit in units]
        assert sent["ratelimit-validapikey"] == str(name != "nokey").lower()

    assert ["2", "1000"] == shown["nokey"][:2]
    # As recorded: with a free key every window but the second shows the limit of the month.
    assert ["1", "1000", "1000"] == shown["free"]
    assert "5" == shown["premium"][0]


@pytest.mark.usefixtures("endless_second")
def test_each_key_has_a_counter(chain):
    """E4: an exhausted key does not block another one of the same tier."""
    keys = {"a": "free", "b": "free"}
    with Server(chain, keys=keys, limits="second=1,month=3") as server:
        url = server.url + STATE
        statuses = [httpx.get(url, headers={"apikey": k}).status_code for k in ("a", "b", "a")]

    assert [200, 200, 429] == statuses


def test_month_of_a_free_key(chain):
    """E4: the quota of a month can be rehearsed; the loader reports the date of its reset."""
    with bf.local(chain, keys={"k": "free"}, limits="free:second=50,month=2") as local:
        bf.load_latest_state()
        bf.load_latest_state()
        with pytest.raises(bf.errors.RateLimited, match=r"month|quota"):
            bf.load_latest_state()
        assert 2 == local.requests


@pytest.mark.parametrize("scheme", ["", "Bearer "])
def test_v1_of_the_public_wire_ignores_authorization(service, scheme):
    """E5: V1 reads `apikey` and `X-API-KEY`; another header is answered as without a key."""
    answer = send_v1(service, Authorization=f"{scheme}premium-key")

    assert answer.status_code in (200, 429)
    assert "false" == answer.headers["ratelimit-validapikey"]
    assert "2" == answer.headers["x-ratelimit-limit-second"]


@pytest.mark.parametrize("wire", ["spec", "public"])
def test_refused_requests_have_no_valid_key(chain, wire):
    """E5: no 401 states a valid key, also if the key is in the place of the other version."""
    with Server(chain, wire=wire, keys=["k"], rate=99) as server:
        answers = [
            httpx.post(server.url + SLOT, json=BODY, headers=headers)
            for headers in ({}, {"apikey": "k"}, {"Authorization": "Bearer x"})
        ]

    assert [401] * 3 == [answer.status_code for answer in answers]
    assert {"false"} == {answer.headers["ratelimit-validapikey"] for answer in answers}


@pytest.mark.parametrize(
    ("options", "v1", "v2"),
    [
        ({"wire": "public"}, 200, 401),
        ({"wire": "spec"}, 200, 200),
        ({"wire": "spec", "require_key": True}, 401, 401),
        ({"wire": "public", "require_key": True}, 401, 401),
        ({"wire": "spec", "keys": ["k"]}, 401, 401),
        ({"wire": "public", "keys": ["k"]}, 200, 401),
    ],
)
def test_requests_without_a_key(chain, options, v1, v2):
    """E6: V2 of the public wire needs a key, and accepts any if none is configured."""
    with Server(chain, **options) as server, httpx.Client(base_url=server.url) as client:
        assert (v1, v2) == (send_v1(client).status_code, send_v2(client).status_code)
        assert 200 == send_v2(client, "k").status_code
        assert 200 == send_v1(client, apikey="k").status_code


def test_local_public_wire(chain):
    """The loaders of both versions work on the public wire, without a key of the user."""
    with bf.local(chain, wire="public"):
        state = bf.load_latest_state()
        assert 1 == state.height
        # The captions of charts need it.
        assert {"simulated": True} == state.attrs == bf.to_pandas(state).attrs
        assert 1 == bf.v2.load_slot(5000).height


@pytest.mark.parametrize(
    "request_text",
    [
        "GET {path} HTTP/1.1\r\nHost: localhost:9\r\n",
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        "GET {path} HTTP/1.1\r\nHost: [::1]:1234\r\n",
        "GET {path} HTTP/1.0\r\n",
    ],
)
def test_loopback_names_with_any_port(service, request_text):
    """E7: a tunnel, a proxy and HTTP/1.0 without Host reach the server."""
    url = service.base_url
    text = request_text.format(path="/api/v1/epoch/x")
    with socket.create_connection((url.host, url.port)) as connection:
        connection.sendall(f"{text}Connection: close\r\n\r\n".encode())
        status = connection.makefile("rb").read().split()[1]

    assert status in (b"400", b"429")


def test_refused_host_is_named(service):
    """E7: the refusal names the host."""
    answer = service.get(STATE, headers={"Host": "evil.example"})

    assert 421 == answer.status_code
    assert "not for 'evil.example'" in answer.json()["status"]


def test_only_a_permitted_origin_may_read_answers(chain):
    """E8: pages of a permitted origin may read answers and send POST; others may not."""
    page, other = "http://localhost:3000", "http://localhost:3001"
    ask = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "apikey"}
    with Server(chain, origins=[page]) as server, httpx.Client(base_url=server.url) as client:
        found = {}
        for origin in (page, other):
            options = client.options("/api/v1/validator", headers={"Origin": origin, **ask})
            posted = client.post(
                "/api/v1/validator",
                json={"indicesOrPubkey": "1"},
                headers={"Origin": origin, "Sec-Fetch-Site": "cross-site"},
            )
            got = client.get(STATE, headers={"Origin": origin})
            permitted = got.headers.get("access-control-allow-origin")
            found[origin] = (options.status_code, posted.status_code, permitted)

    assert {page: (200, 200, page), other: (400, 403, None)} == found


@pytest.mark.parametrize("origin", ["*", "localhost", "http://localhost:3000/", "file://x", "null"])
def test_only_an_exact_origin_can_be_permitted(chain, origin):
    """E8: only an exact origin can be permitted."""
    with pytest.raises(bf.errors.UsageError, match="is not an origin"):
        Server(chain, origins=[origin])


def test_log_names_the_refused_member(chain, caplog):
    """E14: the answer has the service's words, and the log the reason; no key is in the log."""
    caplog.set_level(logging.INFO, "beaconframes.server")
    with Server(chain, keys=["secret-key"]) as server, httpx.Client(base_url=server.url) as client:
        body = {**BODY, "page_size": 11}
        answer = client.post(
            "/api/v2/ethereum/slot/withdrawals",
            json=body,
            headers={"Authorization": "Bearer secret-key"},
        )
        client.get(STATE, params={"apikey": "secret-key"})

    assert {"error": "Bad request. Please check your input and try again."} == answer.json()
    assert "page_size must be 1 to 10" in caplog.text
    assert f"GET {STATE} 200" in caplog.text
    assert "secret-key" not in caplog.text


def test_every_kind_of_fault_occurs(chain):
    """E4: an outage can be rehearsed: every kind of fault is seen, and the loader survives it."""
    faults = ["503@30%", "truncate@10%", "html@10%"]
    with Server(chain, faults=faults) as server, httpx.Client(base_url=server.url) as client:
        kinds = {"200": 0, "503": 0, "html": 0, "cut": 0}
        for _ in range(60):
            try:
                answer = client.get(STATE)
            except httpx.RemoteProtocolError:
                kinds["cut"] += 1
                continue
            is_html = answer.headers["content-type"] == "text/html"
            kinds["html" if is_html else str(answer.status_code)] += 1

    assert 60 == sum(kinds.values())
    assert min(kinds.values()) > 0
    assert 10 < kinds["503"] < 28


def test_hang_and_latency(chain):
    """E4: a request without an answer, and a slow one."""
    with Server(chain, faults="hang") as server, pytest.raises(httpx.ReadTimeout):
        httpx.get(server.url + STATE, timeout=httpx.Timeout(60, read=0.1))
    with Server(chain, faults="latency=80ms") as server:
        start = time.monotonic()
        assert 200 == httpx.get(server.url + STATE).status_code
        assert time.monotonic() - start >= 0.08


def test_parsed_limits_and_faults():
    """E4: a text without a tier sets all tiers; a later text wins."""
    parsed = parse_limits(["second=5,hour=7", "free:second=1,month=9"])

    assert {"nokey", "free", "premium"} == set(parsed)
    assert Limits(second=5, hour=7) == parsed["nokey"] == parsed["premium"]
    assert Limits(second=1, month=9) == parsed["free"]
    plan = parse_faults(["503@2.5%", "latency=1.5s", "latency=80ms"])
    assert FaultPlan((("503", 0.025),), 1.58) == plan


@pytest.mark.parametrize(
    "bad",
    [
        {"limits": "second=0"}, {"limits": "seconds=1"}, {"limits": "gold:second=1"},
        {"limits": "second=1,second=2"}, {"limits": ""}, {"faults": "200"}, {"faults": "503@x%"},
        {"faults": "503@1.1.1%"}, {"faults": "latency=80"}, {"faults": ["503@60%", "500@60%"]},
        {"keys": {"k": "gold"}},
    ],
)  # fmt: skip
def test_invalid_options_are_named_before_the_start(chain, bad):
    """E4: an invalid value is named before the server starts."""
    with pytest.raises(bf.errors.UsageError), contextlib.closing(Server(chain, **bad)):
        pass


@pytest.mark.parametrize("missing", ["slot", "chain"])
def test_slot_withdrawals_require_slot_and_chain(chain, missing):
    """E12: the specification requires slot and chain of slot/withdrawals."""
    body = {name: value for name, value in BODY.items() if name != missing}
    path = "/api/v2/ethereum/slot/withdrawals"
    for wire, status in (("spec", 400), ("public", 200)):
        with Server(chain, wire=wire) as server:
            headers = {"Authorization": "Bearer k"}
            answer = httpx.post(server.url + path, json=body, headers=headers)
        assert status == answer.status_code


def test_premium_keys_look_up_more_validators(chain):
    """E12: the specification permits premium users more than 100 validators in the lookup."""
    counts = {}
    with Server(chain, keys=KEYS) as server, httpx.Client(base_url=server.url) as client:
        for key in KEYS:
            for count in (100, 150, 301):
                names = ",".join(map(str, range(count)))
                answer = client.get(f"/api/v1/validator/{names}", headers={"apikey": key})
                counts[key, count] = answer.status_code

    assert [200, 400, 400] == [counts["free-key", count] for count in (100, 150, 301)]
    assert [200, 200, 400] == [counts["premium-key", count] for count in (100, 150, 301)]


def test_short_public_keys_of_the_public_wire(chain):
    """E15: the public service takes hex of any length for a public key, and finds none."""
    message = "invalid validator argument, pubkey(s) did not resolve to a validator index"
    with Server(chain, wire="public") as server:
        answer = httpx.get(f"{server.url}/api/v1/validator/0xab")
        among = httpx.get(f"{server.url}/api/v1/validator/0xab,5/performance")

    assert (400, f"ERROR: {message}") == (answer.status_code, answer.json()["status"])
    assert 200 == among.status_code
