"""The wire of the specification on the local explorer, requested with plain HTTP."""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import time
from datetime import timedelta

import httpx
import pytest

from beaconframes.server import Server, uvicorn_server


@pytest.fixture
def get(explorer):
    """A plain HTTP client of the local explorer."""
    with httpx.Client(base_url=explorer.url) as client:
        yield client.get


@pytest.mark.parametrize("path", ["/", "/api/v1/nothing", "/api/v1/validator/1/", "/api/v1/epoch/"])
def test_an_unknown_path_is_404_in_the_envelope(get, path):
    """S16: the answer is 404 in the envelope; a path with a trailing slash is unknown."""
    answer = get(path)

    assert 404 == answer.status_code
    assert {"status": "ERROR: 404 page not found", "data": None} == answer.json()


@pytest.mark.parametrize(("kind", "shown"), [(KeyboardInterrupt, False), (RuntimeError, True)])
def test_ctrl_c_leaves_no_traceback(chain, monkeypatch, caplog, kind, shown):
    """S14: Ctrl-C in the server's thread is not logged; any other failure is."""
    with Server(chain) as server:

        def fail(*_):
            raise kind

        monkeypatch.setattr(server.service, "answer", fail)
        caplog.set_level(logging.ERROR, "uvicorn.error")
        with contextlib.suppress(httpx.HTTPError):
            assert 500 == httpx.get(f"{server.url}/api/v1/epoch/7").status_code

    assert shown == any("Exception in ASGI application" in r.message for r in caplog.records)


def test_messages_that_are_not_text_are_logged(chain, caplog):
    """Another server of the process may log an exception as its message."""
    with Server(chain):
        logging.getLogger("uvicorn.error").error(OSError("address in use"))

    assert ["address in use"] == [record.getMessage() for record in caplog.records]


def test_log_handlers_of_the_user_remain_open(chain, tmp_path):
    """A log file of the program is written to before, during and after the explorer."""
    handler = logging.FileHandler(tmp_path / "log", mode="w")
    logger = logging.getLogger("of the user")
    logger.addHandler(handler)
    try:
        logger.warning("before")
        with Server(chain) as running:
            logger.warning("meanwhile")
            assert httpx.get(f"{running.url}/api/v1/epoch/1").status_code == 200
        logger.warning("afterwards")
    finally:
        logger.removeHandler(handler)
        handler.close()
    assert (tmp_path / "log").read_text() == "before\nmeanwhile\nafterwards\n"


def test_other_methods_are_unknown(explorer):
    """DELETE is not part of the API."""
    assert 404 == httpx.delete(f"{explorer.url}/api/v1/latestState").status_code


def test_one_validator_is_an_object_and_several_are_a_list(get):
    """Shapes and field names are those of the specification."""
    one = get("/api/v1/validator/7").json()
    two = get("/api/v1/validator/8,7").json()

    assert "OK" == one["status"]
    assert 7 == one["data"]["validator_index"]
    assert [7, 8] == [record["validator_index"] for record in two["data"]]
    assert {
        "activation_eligibility_epoch", "activation_epoch", "exit_epoch", "withdrawable_epoch",
        "balance", "effective_balance", "last_attestation_slot", "name", "pubkey", "slashed",
        "status", "validator_index", "withdrawal_credentials", "total_withdrawals",
    } == set(one["data"])  # fmt: skip
    assert [] == get("/api/v1/validator/999999").json()["data"]


def test_validators_by_post(explorer, get):
    """The POST variant has the same list in its body."""
    url = f"{explorer.url}/api/v1/validator"

    answer = httpx.post(url, json={"indicesOrPubkey": "7,8"})

    assert get("/api/v1/validator/7,8").json() == answer.json()
    assert 400 == httpx.post(url, content=b"7,8").status_code


def test_a_body_of_two_megabytes_is_refused(explorer):
    """S07: a body of two megabytes is refused."""
    body = b'{"indicesOrPubkey":"' + b"7," * 2**20 + b'7"}'

    try:
        status = httpx.post(f"{explorer.url}/api/v1/validator", content=body).status_code
    except httpx.WriteError:
        # The server closed the connection before the end.
        status = 400

    assert 400 == status


def test_income_by_default_is_the_last_hundred_finalized_epochs(get):
    """Rows are ordered by newest epoch, then by validator; all fields are present; wei are text."""
    records = get("/api/v1/validator/9,8/incomedetailhistory").json()["data"]

    pairs = [(record["epoch"], record["validatorindex"]) for record in records]
    assert sorted(pairs, key=lambda pair: (-pair[0], pair[1])) == pairs
    assert [467] * 2 + [466] * 2 == [epoch for epoch, _ in pairs[:4]]
    assert 200 == len(pairs)
    assert {
        "attestation_head_reward", "attestation_source_penalty", "attestation_source_reward",
        "attestation_target_penalty", "attestation_target_reward", "finality_delay_penalty",
        "proposals_missed", "proposer_attestation_inclusion_reward",
        "proposer_slashing_inclusion_reward", "proposer_sync_inclusion_reward",
        "slashing_penalty", "slashing_reward", "sync_committee_penalty", "sync_committee_reward",
        "tx_fee_reward_wei",
    } == set(records[0]["income"])  # fmt: skip
    assert isinstance(records[0]["income"]["tx_fee_reward_wei"], str)
    assert {"epoch", "income", "validatorindex", "week", "week_start", "week_end"} == set(
        records[0]
    )


def test_the_week_of_a_row(get, chain):
    """Week 0 begins at genesis and ends seven days later."""
    record = get("/api/v1/validator/9/balancehistory?latest_epoch=3&limit=1").json()["data"][0]
    genesis = chain.scan("epochs").filter(epoch=0).collect()["time"][0]

    assert 0 == record["week"]
    assert f"{genesis:%Y-%m-%dT%H:%M:%SZ}" == record["week_start"]
    assert f"{genesis + timedelta(days=7):%Y-%m-%dT%H:%M:%SZ}" == record["week_end"]


def test_offset_skips_epochs_backwards(get):
    """The newest epoch is latest_epoch minus offset, and limit is the number of epochs."""
    path = "/api/v1/validator/9/balancehistory?latest_epoch=50&offset=10&limit=3"

    assert [40, 39, 38] == [record["epoch"] for record in get(path).json()["data"]]


def test_wei_sums_are_whole_numbers_of_any_size(get):
    """A day of the yield index is a list of one record, with integers beyond 64 bits."""
    answer = get("/api/v1/yieldindex/latest")

    (day,) = answer.json()["data"]
    assert day["effective_balances_sum_wei"] > 2**64
    assert b"e+" not in answer.content
    assert day["total_rewards_wei"] == day["consensus_rewards_sum_wei"] + day["tx_fees_sum_wei"]


def test_an_epoch_and_the_state_are_objects(get):
    """The running epoch can be requested by name; the state has an envelope."""
    state = get("/api/v1/latestState").json()["data"]

    assert 469 == state["currentEpoch"]
    assert 467 == state["currentFinalizedEpoch"]
    assert isinstance(state["rates"]["mainCurrencyTickerPrices"], dict)
    assert 469 == get("/api/v1/epoch/latest").json()["data"]["epoch"]
    assert 467 == get("/api/v1/epoch/finalized").json()["data"]["epoch"]
    assert {467} == {slot["epoch"] for slot in get("/api/v1/epoch/finalized/slots").json()["data"]}


def test_a_committee_has_its_seats_in_order(get, chain):
    """512 indices are in the order of the bits."""
    data = get("/api/v1/sync_committee/1").json()["data"]

    seats = chain.scan("sync_committees").filter(period=1).sort("seat").collect()
    assert seats["validator_index"].to_list() == data["validators"]
    assert (1, 256, 511) == (data["period"], data["start_epoch"], data["end_epoch"])


@pytest.mark.parametrize(
    ("send", "status"),
    [
        ({"headers": {"apikey": "right"}}, 200),
        ({"params": {"apikey": "right"}}, 200),
        ({"headers": {"apikey": "wrong"}}, 401),
        ({"params": {"apikey": "wrong"}}, 401),
        ({}, 401),
    ],
)
def test_the_api_key_is_in_the_header_or_the_query(chain, send, status):
    """The key is in the header or in the query; a wrong one is refused in the envelope."""
    with Server(chain, keys=["right"]) as server:
        answer = httpx.get(f"{server.url}/api/v1/latestState", **send)

    assert status == answer.status_code
    assert ("OK" if status == 200 else "ERROR") == answer.json()["status"][:5].rstrip(":")


HOSTS = (
    "evil.example", "127.0.0.1.evil.example", "localhost.", "localhost.:{port}", "",
    "user@127.0.0.1:{port}", "2130706433:{port}", "0x7f.1:{port}", "127.1:{port}", "0.0.0.0:{port}",
    "127.0.0.1:{port}/x", "127.0.0.1:", "localhost:x", "127.0.0.1:123456",
    "evil.example:{port}", "127.0.0.1:{port}:{port}", "127.0.0.1:{port} evil.example",
)  # fmt: skip


@pytest.mark.parametrize("path", ["/api/v1/latestState", "/api/v2/ethereum/slot", "/"])
@pytest.mark.parametrize("host", [*HOSTS, None])
def test_other_hosts_are_not_served(explorer, host, path):
    """S04: a page in a browser cannot use another host name that resolves to loopback."""
    port = int(explorer.url.rpartition(":")[2])
    hosts = ["localhost:{port}", "evil.example"] if host is None else [host]
    lines = "".join(f"Host: {name.format(port=port)}\r\n" for name in hosts)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
        answer = connection.makefile("rb").read()

    assert answer.split()[1] in (b"421", b"400")
    assert b"currentEpoch" not in answer
    if answer.split()[1] == b"421":
        assert b"application/json" in answer
        assert b"nosniff" in answer


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "{url}"}, 200),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_cross_site_posts_are_refused(explorer, headers, status):
    """S05: no answer has headers that permit another site to read it."""
    sent = {name: text.format(url=explorer.url) for name, text in headers.items()}
    body = b'{"indicesOrPubkey":"1"}'
    posted = httpx.post(f"{explorer.url}/api/v1/validator", content=body, headers=sent)
    fetched = httpx.get(f"{explorer.url}/api/v1/validator/1", headers=sent)
    options = httpx.options(f"{explorer.url}/api/v1/validator", headers=sent)

    assert status == posted.status_code
    assert 200 == fetched.status_code
    headers = [*posted.headers, *fetched.headers, *options.headers]
    assert [] == [name for name in headers if name.startswith("access-control-")]


@pytest.mark.parametrize("begun", [b"", b"GET /api/v1/ep", b"POST /api/v1/validator HTTP/1.1\r\n"])
@pytest.mark.parametrize("body", [b"", b"Host: {host}\r\nContent-Length: 1000\r\n\r\n{"])
def test_incomplete_requests_are_closed(explorer, monkeypatch, begun, body):
    """S03: a connection is closed after the deadline, even if it sends a byte now and then."""
    monkeypatch.setattr(uvicorn_server, "REQUEST_SECONDS", 0.2)
    host = explorer.url.removeprefix("http://")
    name, port = host.split(":")
    with socket.create_connection((name, int(port)), timeout=30) as connection:
        connection.sendall(begun + body.replace(b"{host}", host.encode()))
        end = time.monotonic() + 60
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while not (select.select([connection], [], [], 0.05)[0] and connection.recv(9) == b""):
                assert time.monotonic() < end, "the connection stays open"
                connection.sendall(b"a")


def test_complete_requests_stay_connected(explorer, monkeypatch):
    """A connection may be idle between requests."""
    with httpx.Client(base_url=explorer.url) as client:
        opened = set()
        for _ in range(3):
            answer = client.get("/api/v1/validator/1")
            assert 200 == answer.status_code
            opened.add(answer.extensions["network_stream"].get_extra_info("client_addr"))
            # Only now: on a busy machine the first request may come later than that. The next ones
            # arrive as a whole.
            monkeypatch.setattr(uvicorn_server, "REQUEST_SECONDS", 0.1)
            time.sleep(0.2)
    assert 1 == len(opened)


def test_port_in_use(explorer):
    """S14: the error names the port."""
    port = int(explorer.url.rpartition(":")[2])

    with pytest.raises(ValueError, match=str(port)):
        Server(explorer.service.dataset, port=port)
