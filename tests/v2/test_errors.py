"""Errors of V2, and endpoints without a published response shape."""

from __future__ import annotations

import json
import traceback

import polars as pl
import pytest

import beaconframes as bf
from beaconframes import errors, v2
from beaconframes.calendar import MAINNET
from beaconframes.endpoint import Envelope, Request
from beaconframes.http.response import HttpResponse, parse_page
from beaconframes.http.retry import AttemptFailed

from ..support.replay import replaying

KEY = "secret-key-0123456789abcdef"
LATER = {"Retry-After": "3600"}

# Section 7.1 of the specification: the status, what the service says, and what a user must see.
REFUSALS = [
    (400, "Bad request. Please check your input and try again.", errors.BadRequest),
    (401, "Unauthorized. Please provide a valid API key.", errors.Unauthorized),
    (403, "this endpoint is not allowed for your subscription tier", errors.TierTooLow),
    (404, "The requested resource was not found.", errors.NotFound),
    (405, "method not allowed: GET. all public API endpoints use POST.", errors.NotServed),
    (429, "Rate limit exceeded. Please try again later.", errors.RateLimited),
    (500, "internal server error. please try again later.", errors.ServerError),
]


@pytest.mark.parametrize(("status", "said", "kind"), REFUSALS)
def test_an_error_has_its_category_and_the_words_of_the_service(status, said, kind):
    """The API key is in no message and no traceback, even if the service repeats it."""
    body = json.dumps({"error": f"{said} ({KEY})"}).encode()

    with (
        replaying({"*": (status, LATER, body)}) as server,
        bf.Explorer(server.url, api_key=KEY, chain="mainnet", rate=1000) as explorer,
        pytest.raises(errors.ServiceError) as caught,
    ):
        bf.v2.load_validators(1, explorer=explorer)

    error = caught.value
    assert type(error) is kind
    assert "POST /api/v2/ethereum/validators" == error.endpoint
    assert said in str(error)
    shown = "".join(traceback.format_exception(error)) + repr(vars(error))
    assert KEY not in shown
    assert KEY[:12] not in shown
    assert 1 == len(server.posted)


def test_no_two_errors_share_a_category():
    """Programs can distinguish them by category."""
    assert len(REFUSALS) == len({kind.category for _, _, kind in REFUSALS})


@pytest.mark.parametrize("status", [409, 418])
def test_other_statuses_are_errors_of_the_request(status):
    """The message has the words of the service."""
    body = b'{"error": "An unexpected error occurred."}'

    with (
        replaying({"*": (status, {}, body)}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
        pytest.raises(errors.BadRequest, match=r"An unexpected error occurred"),
    ):
        bf.v2.load_validators(1, explorer=explorer)


CHAIN = {"chain": "mainnet"}
FIRST_PAGE = {"page_size": 10, "cursor": ""}
ME = {"validator": {"validator_identifiers": [7]}}
UNDESCRIBED = [
    (bf.v2.load_state, {}, "state", CHAIN),
    (bf.v2.load_config, {}, "config", CHAIN),
    (
        bf.v2.load_slot_deposits,
        {"slots": 5},
        "slot/deposits",
        {**CHAIN, "slot": {"number": 5}, **FIRST_PAGE},
    ),
    (
        bf.v2.load_slot_deposits,
        {"slots": "AB" * 32, "validators": 7},
        "slot/deposits",
        {**CHAIN, "slot": {"root": "0x" + "ab" * 32}, **ME, **FIRST_PAGE},
    ),
    (
        bf.v2.load_sync_committee_validators,
        {"periods": 9, "validators": [7]},
        "sync-committee/validators",
        {**CHAIN, "sync_committee_period": {"number": 9}, **ME},
    ),
    (
        bf.v2.load_sync_committee_validators,
        {},
        "sync-committee/validators",
        {**CHAIN, "sync_committee_period": {"view": "latest"}},
    ),
    *(
        (
            load,
            {"validators": 7, "since": 12_771_000, "until": 12_771_167},
            f"validators/{path}",
            # Genesis and twelve seconds for each slot; the last second of the last one.
            {
                **CHAIN,
                **ME,
                "range": {"timestamp": {"start": 1_760_076_023, "end": 1_760_078_038}},
                **FIRST_PAGE,
            },
        )
        for load, path in (
            (bf.v2.load_attestation_slots, "attestation-slots"),
            (bf.v2.load_deposit_slots, "deposit-slots"),
            (bf.v2.load_withdrawal_slots, "withdrawal-slots"),
        )
    ),
    (
        bf.v2.load_upcoming_duty_slots,
        {"validators": [7]},
        "validators/upcoming-duty-slots",
        {**CHAIN, **ME, **FIRST_PAGE},
    ),
    (
        bf.v2.load_sync_committee_periods,
        {"validators": bf.v2.dashboard(4)},
        "validators/sync-committee-periods",
        {**CHAIN, "validator": {"dashboard_id": 4}, **FIRST_PAGE},
    ),
    (
        bf.v2.load_owners,
        {"window": "90d", "search": "li", "operator": "csm/a"},
        "entities/owners",
        {
            **CHAIN,
            "range": {"evaluation_window": "90d"},
            "sort_by": "validator_count",
            "sort_order": "desc",
            "search": "li",
            "operator": {"path": "csm/a"},
            **FIRST_PAGE,
        },
    ),
    (
        bf.v2.load_operators,
        {"sort_by": "beaconscore", "sort_order": "asc", "owner": 5},
        "entities/operators",
        {
            **CHAIN,
            "range": {"evaluation_window": "30d"},
            "sort_by": "beaconscore",
            "sort_order": "asc",
            "owner": {"id": 5},
            **FIRST_PAGE,
        },
    ),
    (bf.v2.load_validator_queues, {"validators": 7}, "validators/queues", {**CHAIN, **ME}),
]


@pytest.mark.parametrize("name", ["validators", "metadata", "balances", "rewards", "performance"])
def test_a_validator_with_two_public_keys_is_an_error(name):
    """The key of these tables has the public key, so both rows would be in the frame."""
    table = next(each.table for each in v2.ENDPOINTS if each.name == name)
    rows = pl.concat(
        [
            table.empty(),
            pl.DataFrame(
                {"validator_index": [5, 5, None, None], "pubkey": ["0x" + n * 96 for n in "abcd"]}
            ),
        ],
        how="diagonal",
    )
    with pytest.raises(errors.IntegrityError, match="validator_index 5 has more than one pubkey"):
        table.check(rows, MAINNET)
    table.check(rows[1:], MAINNET)


@pytest.mark.parametrize(("load", "arguments", "path", "body"), UNDESCRIBED)
def test_undocumented_responses_keep_every_field(load, arguments, path, body):
    """Every field of every page is a column; a second page is requested only if there is one."""
    alone = load in (bf.v2.load_state, bf.v2.load_config)
    records = [{"amount": "5", "deep": {"er": 1}}, {"amount": "-7", "new": "x"}]
    pages = [{"data": [record], "paging": {"next_cursor": "n"}} for record in records]
    pages[-1]["paging"] = {}
    if alone:
        pages = [{"data": records[0]}]

    def reply(body):
        return json.dumps(pages["cursor" in body and body["cursor"] == "n"]).encode()

    with (
        replaying({"*": reply}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
    ):
        frame = load(**arguments, explorer=explorer)

    following = [] if alone else [{**body, "cursor": "n"}]
    assert {f"POST /api/v2/ethereum/{path}"} == set(server.arrived)
    assert [body, *following] == [json.loads(sent) for sent in server.posted]
    assert [5] + [-7] * (not alone) == frame["amount_wei"].to_list()
    assert [1] + [None] * (not alone) == frame["deep_er"].to_list()


@pytest.mark.parametrize("status", [404, 405, 410])
@pytest.mark.parametrize(("load", "arguments", "path", "body"), UNDESCRIBED[:3])
def test_an_endpoint_that_does_not_exist_yet_raises_not_served(status, load, arguments, path, body):
    """The error is NotServed, not a missing row."""
    refusal = b'{"error": "The requested resource was not found."}'

    with (
        replaying({"*": (status, {}, refusal)}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
        pytest.raises(errors.NotServed, match=r"The requested resource was not found"),
    ):
        load(**arguments, explorer=explorer)

    assert [f"POST /api/v2/ethereum/{path}"] == server.arrived
    assert [body] == [json.loads(sent) for sent in server.posted]


@pytest.mark.parametrize("data", ["7", '"text"', "true", "NaN"])
def test_data_that_is_no_list_and_no_object_is_refused(data):
    """B03: before pages or rows are decoded, which would need a list or an object."""
    request = Request("POST", "/api/v2/x", body=b"{}", endpoint="/x", envelope=Envelope.V2)
    response = HttpResponse(200, {}, b'{"data": %b}' % data.encode())

    with pytest.raises(AttemptFailed) as caught:
        parse_page(response, request)

    assert errors.ProtocolError is caught.value.kind


@pytest.mark.parametrize("load", [bf.v2.load_apy_roi, bf.v2.load_queues])
def test_a_number_of_any_length_is_an_error_of_the_response(load):
    """B08: also in tables that convert an older shape before rows are decoded."""
    body = b'{"data": {"balance": %b}, "paging": {}}' % (b"9" * 5000)
    arguments = {"validators": 7} if load is bf.v2.load_apy_roi else {}

    with (
        replaying({"*": body}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
        pytest.raises(errors.ResponseError),
    ):
        load(**arguments, explorer=explorer)


def test_no_rows_of_a_table_without_a_key_are_missing_rows():
    """Rows of the second request are compared with those of the first: no column is a key."""
    with (
        replaying({"*": b'{"data": [], "paging": {}}'}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
        pytest.raises(bf.MissingRows, match="period 3"),
    ):
        bf.v2.load_sync_committee_validators(3, explorer=explorer, strict=True)


def test_rows_of_a_second_request_may_have_more_columns_than_no_rows():
    """G15: the first response has no rows; columns are inferred from the second one."""
    answers = iter([b'{"data": [], "paging": {}}', b'{"data": [{"index": 5}], "paging": {}}'])
    with (
        replaying({"*": lambda _: next(answers)}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
    ):
        rows = bf.v2.load_sync_committee_validators(3, explorer=explorer)

    assert [5] == rows["index"].to_list()


def test_the_name_of_an_unknown_field_does_not_show_the_key():
    """B15: the error quotes the field, in which the service repeats the key."""
    body = json.dumps({"data": [{KEY: 1}], "paging": {}}).encode()

    with (
        replaying({"*": body}) as server,
        bf.Explorer(server.url, api_key=KEY, chain="mainnet", rate=1000) as explorer,
        pytest.raises(errors.SchemaError) as caught,
    ):
        bf.v2.load_metadata(1, explorer=explorer)

    assert "***" in str(caught.value)
    assert KEY not in "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))
