"""The OpenAPI document that is generated from the declarations."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from beaconframes import v2
from beaconframes.server import Server
from beaconframes.server.access import Access
from beaconframes.server.app import build_app
from beaconframes.server.openapi import build_openapi
from beaconframes.server.service import Service
from beaconframes.v1 import ENDPOINTS
from beaconframes.v1._execution_requests import REQUEST_LISTS

from ..support.json_schemas import ANY, build_validator, generate

ROOT = Path(__file__).parents[2]
PLACEHOLDER = re.compile(r"\{(\w+)\}")
JSON = "application/json"
WIRES = ("spec", "public")
DOCUMENTS = {wire: build_openapi(wire) for wire in WIRES}
SPEC = DOCUMENTS["spec"]


def validate(value, schema, document=SPEC):
    """Return the first places at which *value* is not valid."""
    whole = {"components": document["components"], **schema}
    errors = islice(build_validator(whole).iter_errors(value), 3)
    return [f"{error.json_path}: {error.message[:200]}" for error in errors]


def answer_schema(operation):
    """Return the JSON Schema of an answer with status 200."""
    return operation["responses"]["200"]["content"]["application/json"]["schema"]


def find_operation(method, path):
    """Return the operation of a request, with its path: one without placeholders comes first."""
    for known in sorted(SPEC["paths"], key=lambda known: known.count("{")):
        pattern = PLACEHOLDER.sub("([^/]+)", known)
        match = re.fullmatch(pattern, path)
        if match and method.lower() in SPEC["paths"][known]:
            texts = map(unquote, match.groups())
            values = dict(zip(PLACEHOLDER.findall(known), texts, strict=True))
            return SPEC["paths"][known][method.lower()], values
    pytest.fail(f"{method} {path} is not documented")


def is_valid_text(text, schema):
    """Return whether a value of a path or a query is valid: as text, or as number or boolean."""
    values = [text]
    if re.fullmatch("-?[0-9]+", text):
        values.append(int(text))
    if text in ("true", "false"):
        values.append(text == "true")
    return any(not validate(value, schema) for value in values)


def iterate_samples(folder):
    """Yield name, kind and content of the hand-written wire samples."""
    for file in sorted((ROOT / "tests" / "wire" / folder).glob("*.json")):
        for kind, sample in json.loads(file.read_text()).items():
            yield file.stem, kind, sample


def test_the_document_has_every_route(chain):
    """Those of both versions, and the charts."""
    routes = {route.path for route in build_app(Service(chain), Access()).routes}
    assert {"/openapi.json", *SPEC["paths"]} == routes


@pytest.mark.parametrize("wire", WIRES)
def test_names_are_unique_and_references_resolve(wire):
    """Each placeholder of a path is a parameter, and each schema of the components is used."""
    document = DOCUMENTS[wire]
    operations = [
        (path, operation) for path, item in document["paths"].items() for operation in item.values()
    ]
    names = [operation["operationId"] for _, operation in operations]

    assert len(names) == len(set(names))
    for path, operation in operations:
        found = [p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"]
        assert set(PLACEHOLDER.findall(path)) == set(found)
    used = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert set(document["components"]["schemas"]) >= used


@pytest.mark.more
@pytest.mark.parametrize("wire", WIRES)
def test_schemas_are_valid(wire):
    """Every schema of the components is a JSON Schema."""
    for schema in DOCUMENTS[wire]["components"]["schemas"].values():
        build_validator(schema).check_schema(schema)


def test_the_samples_of_v1_conform():
    """Requests and replies that are written by hand from the specification are valid."""
    names = set()
    for name, kind, sample in iterate_samples("."):
        if kind != "spec":
            continue
        for request, reply in zip(sample["requests"], sample["replies"], strict=True):
            method, _, target = (request if isinstance(request, str) else request[0]).partition(" ")
            url = urlsplit(target)
            operation, values = find_operation(method, url.path)
            if method == "GET":
                values |= dict(parse_qsl(url.query, keep_blank_values=True))
                schemas = {p["name"]: p["schema"] for p in operation["parameters"]}
                for field, text in values.items():
                    assert is_valid_text(text, schemas[field]), (name, field)
            if operation["operationId"] == name:
                assert [] == validate(reply, answer_schema(operation)), name
                names.add(name)
    assert {endpoint.name for endpoint in ENDPOINTS} == names


def test_the_samples_of_v2_conform():
    """The same for V2, whose requests are JSON bodies."""
    names = set()
    for name, kind, sample in iterate_samples("v2"):
        if kind != "spec":
            continue
        for (route, body), reply in zip(sample["requests"], sample["replies"], strict=True):
            operation = SPEC["paths"][route.removeprefix("POST ")]["post"]
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            assert [] == validate(body, schema), name
            assert set(body) <= set(schema["properties"]), name
            data = answer_schema(operation)["properties"]["data"]
            # In this sample, lists are null and texts are numbers: only loaders have to read it.
            assert [] == validate(reply["data"], data) or name == "machine_metrics", name
        names.add(name)
    assert {e.name for e in v2.ENDPOINTS if not e.table.keeps_every_field} == names


FIELDS = {
    "validators": "1,2,1005", "validator": "0", "producers": "5", "blocks": "5,6", "epoch": "10",
    "slot": "100", "period": "1", "day": "0",
}  # fmt: skip
SUBJECTS = {
    "eth1address": ("deposit_origin", "from_address"),
    "txhash": ("deposits", "tx_hash"),
    "address": ("address_balances", "address"),
    "domain": ("names", "requested"),
    "withdrawalCredentialsOrEth1address": ("withdrawal_credentials", "credentials"),
}


@pytest.fixture(scope="module")
def subjects(chain):
    """A subject of each kind that the chain has, by the name of its field."""
    return {
        name: chain.scan(table).select(pl.col(column).drop_nulls().first()).collect().item()
        for name, (table, column) in SUBJECTS.items()
    }


TEXTS = (
    "0", "-1", "-58800", "01", "1.5", "99999", "latest", "head", "finalized", "next", "zzz", "asc",
    "", "true", "T", "1,2", "1,,2", "1,zzz", "0x12", "0x1", "0X" + "ab" * 20, "ab" * 20, "ab" * 32,
    "0X" + "ab" * 32, "ab" * 48, "ab.eth",
)  # fmt: skip
KNOWN_TO_THE_CHAIN = re.compile(r"[0-9]+(,[0-9]+)*|(0[xX])?[0-9a-f]{2,}|.+\.eth|next", re.ASCII)
"""Numbers, identifiers and names: whether the chain has them, no schema can say."""


@pytest.mark.more
@pytest.mark.parametrize("wire", ["spec", "public"])
def test_the_document_states_what_the_wire_accepts(wire, chain, subjects):
    """Every accepted text is valid, and no other word or form is."""
    service = Service(chain, wire)
    for endpoint in (*ENDPOINTS, *REQUEST_LISTS):
        parameters = DOCUMENTS[wire]["paths"][endpoint.path]["get"]["parameters"]
        usual = {p["name"]: {**FIELDS, **subjects}[p["name"]] for p in parameters if p["required"]}
        for parameter in parameters:
            name, in_path = parameter["name"], parameter["in"] == "path"
            if not in_path:
                others = {field: text for field, text in usual.items() if field != name}
                status = service.answer(endpoint, others).status_code
                assert parameter["required"] == (status == 400), (endpoint.name, name)
            # No path has an empty part.
            for text in filter(None, TEXTS) if in_path else TEXTS:
                status = service.answer(endpoint, {**usual, name: text}).status_code
                is_valid = is_valid_text(text, parameter["schema"])
                case = endpoint.name, name, text, status

                assert is_valid or status == 400, case
                assert not is_valid or status == 200 or KNOWN_TO_THE_CHAIN.fullmatch(text), case


@pytest.mark.more
@pytest.mark.parametrize("wire", ["spec", pytest.param("public", marks=pytest.mark.more)])
def test_answers_of_v1_conform(wire, chain, running, subjects):
    """On both wires; the public one leaves out zeros and has other names."""
    service = running.service if wire == "spec" else Service(chain, wire)
    for endpoint in ENDPOINTS:
        names = PLACEHOLDER.findall(endpoint.path)
        fields = {name: {**FIELDS, **subjects}[name] for name in names}
        if endpoint.name == "proposal_luck":
            fields["validators"] = "1,2"
        response = service.answer(endpoint, fields)
        operation = DOCUMENTS[wire]["paths"][endpoint.path]["get"]
        schema = answer_schema(operation)
        content = json.loads(bytes(response.body))

        assert 200 == response.status_code, (endpoint.name, content)
        if isinstance(content.get("data"), list):
            content["data"] = content["data"][:3]
        assert [] == validate(content, schema, DOCUMENTS[wire]), endpoint.name


BODIES = {
    "validator": {"validator_identifiers": [0, 1, 1005, 1009]},
    "block": {"view": "latest"},
    "sync_committee_period": {"view": "latest"},
    "epoch": 460,
    "entity": "Fyrlykt",
    "range": {"evaluation_window": "24h"},
    "chain": "mainnet",
}


@pytest.mark.more
def test_answers_of_v2_conform(chain, running):
    """E2, E13: also those of the paths whose shape is not published."""
    service = running.service
    deposits = chain.scan("slot_deposits").select(pl.col("block_slot").max()).collect()
    bodies = {**BODIES, "slot": {"number": deposits.item()}}
    for endpoint in v2.ENDPOINTS:
        if endpoint.name in ("sub_entities", "owners", "operators"):
            # The same columns as entities take as much time again.
            continue
        operation = SPEC["paths"][endpoint.path]["post"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        body = {name: bodies[name] for name in schema.get("required", ())}
        response = service.answer_v2(endpoint, json.dumps(body).encode(), "premium")
        content = json.loads(bytes(response.body))

        assert [] == validate(body, schema)
        assert 200 == response.status_code, (endpoint.name, content)
        assert [] == validate(content, answer_schema(operation)), endpoint.name
        assert content["data"], endpoint.name


@pytest.mark.parametrize(
    "validators",
    [
        {"validator_identifiers": ["0X" + "ab" * 48]},
        {"withdrawal": "0X" + "ab" * 20},
        {"withdrawal": "0X01" + "00" * 11 + "ab" * 20},
        {"deposit_address": "0X" + "ab" * 20},
    ],
)
def test_hexadecimal_digits_of_sets_may_follow_a_capital_x(running, validators):
    """V2 accepts hexadecimal digits as V1 does."""
    endpoint = v2.VALIDATORS
    operation = SPEC["paths"][endpoint.path]["post"]
    body = {"chain": "mainnet", "validator": validators}
    response = running.service.answer_v2(endpoint, json.dumps(body).encode(), "premium")

    assert 200 == response.status_code
    assert [] == validate(body, operation["requestBody"]["content"][JSON]["schema"])


@pytest.mark.parametrize("wire", WIRES)
def test_the_document_is_served_without_a_key(wire, chain):
    """It describes the wire of the server."""
    with Server(chain, wire=wire, keys={"a-key": "free"}, require_key=True) as server:
        reply = httpx.get(f"{server.url}/openapi.json")

    assert (200, DOCUMENTS[wire]) == (reply.status_code, reply.json())


def test_the_document_of_the_docs_is_that_of_the_specification():
    """`make docs` writes it."""
    assert SPEC == json.loads((ROOT / "docs" / "openapi.json").read_text())


def resolve(schema):
    """Return *schema*, or the schema of the components to which it refers."""
    if "$ref" not in schema:
        return schema
    return SPEC["components"]["schemas"][schema["$ref"].rpartition("/")[2]]


def examples(count):
    """Return the settings of a test with *count* random examples."""
    return settings(
        deadline=None, derandomize=True, database=None, max_examples=count,
        phases=(Phase.generate,), suppress_health_check=list(HealthCheck),
    )  # fmt: skip


def request_randomly(service, endpoint, data):
    """Send a valid body, or one with a field that is missing or has any other value."""
    operation = SPEC["paths"][endpoint.path]["post"]
    body = data.draw(generate(operation["requestBody"]["content"][JSON]["schema"], resolve))
    # Any text is a chain or a cursor by its schema, but hardly one that exists.
    body |= {
        name: text for name, text in {"chain": "mainnet", "cursor": ""}.items() if name in body
    }
    if body and data.draw(st.integers(0, 2)) == 0:
        name = data.draw(st.sampled_from(sorted(body)))
        body[name] = data.draw(ANY)
    response = service.answer_v2(endpoint, json.dumps(body).encode(), "premium")
    content = json.loads(bytes(response.body))
    status = str(response.status_code)

    assert status in operation["responses"], body
    schema = operation["responses"][status]["content"][JSON]["schema"]
    assert [] == validate(content, schema), body


@pytest.mark.more
@pytest.mark.parametrize("endpoint", v2.ENDPOINTS, ids=lambda endpoint: endpoint.name)
@given(data=st.data())
@examples(8)
def test_random_requests_have_documented_answers(running, endpoint, data):
    """S02: every status and body is that of the document, also without a published shape."""
    request_randomly(running.service, endpoint, data)


@pytest.mark.more
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
@given(data=st.data())
@examples(8)
def test_random_queries_of_v1_have_documented_answers(running, public, wire, endpoint, data):
    """S02: the same for V1, whose fields are texts in a path and a query."""
    service = (running if wire == "spec" else public).service
    operation = DOCUMENTS[wire]["paths"][endpoint.path]["get"]
    fields = {}
    for parameter in operation["parameters"]:
        if parameter["required"] or data.draw(st.booleans()):
            value = data.draw(generate(parameter["schema"], resolve) | st.text(max_size=6))
            fields[parameter["name"]] = str(value)
    response = service.answer(endpoint, fields)
    status, content = str(response.status_code), json.loads(bytes(response.body))

    assert status in operation["responses"], fields
    if status == "200" and isinstance(content.get("data"), list):
        content["data"] = content["data"][:3]
    schema = operation["responses"][status]["content"][JSON]["schema"]
    assert [] == validate(content, schema, DOCUMENTS[wire]), fields
