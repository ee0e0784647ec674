"""V2 of the local explorer against the OpenAPI description of the public service.

Requests are generated from the description, valid ones and others; every answer must conform to it.
The description writes request bodies as `x-fields`, which generators such as schemathesis ignore.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from beaconframes.server.service_v2 import find_endpoints

from ..support.json_schemas import ANY, build_validator, generate

yaml = pytest.importorskip("yaml")

DEFAULT = Path(__file__).resolve().parents[3] / "shared" / "facts" / "v2-openapi.yaml"
FILE = Path(os.environ.get("BEACONFRAMES_OPENAPI", DEFAULT))
DESCRIPTION = yaml.safe_load(FILE.read_text()) if FILE.exists() else {"paths": {}}
SERVED = {endpoint.path: endpoint for endpoint in find_endpoints()}
OPERATIONS = {
    path: item["post"]
    for path, item in DESCRIPTION["paths"].items()
    if path in SERVED and "requestBody" in item["post"]
}
STATUSES = {200, 400, 403, 404}
TYPES = {
    "array": "array", "string": "string", "integer": "integer", "number": "number",
    "?": ["integer", "string"],
}  # fmt: skip

pytestmark = pytest.mark.skipif(not OPERATIONS, reason="the description is not on this machine")


def resolve(schema):
    """Return *schema* with its reference replaced by what it refers to."""
    while "$ref" in schema:
        found = DESCRIPTION
        for name in schema["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def to_json_schema(schema):
    """Return *schema* of the description as a JSON Schema that permits no other members."""
    schema = resolve(schema)
    if "allOf" in schema:
        parts = [resolve(part) for part in schema["allOf"]]
        schema = {"properties": {n: one for part in parts for n, one in part["properties"].items()}}
    kind = schema.get("type", "object" if "properties" in schema else None)
    found = {name: schema[name] for name in ("enum", "pattern", "required") if name in schema}
    if kind:
        kinds = kind if isinstance(kind, list) else [kind]
        found["type"] = [*kinds, "null"] if schema.get("nullable") else kinds
    if "enum" in found and schema.get("nullable"):
        found["enum"] = [*found["enum"], None]
    if "items" in schema:
        found["items"] = to_json_schema(schema["items"])
    # Likely properties are named in words, which do not say whether they can be null.
    likely = schema.get("x-properties-likely", {})
    guesses = {name: {"type": TYPES[kind], "nullable": True} for name, kind in likely.items()}
    fields = schema.get("properties", guesses)
    if fields:
        found["properties"] = {name: to_json_schema(one) for name, one in fields.items()}
        found["additionalProperties"] = bool(likely)
    if "x-fields" in schema:
        names = schema["x-fields"]
        found |= {"properties": {name: {} for name in names}, "additionalProperties": False}
    return found


def describe_answer(path):
    """Return the JSON Schema of an answer of *path* with status 200."""
    described = OPERATIONS[path]["responses"]["200"]
    data = to_json_schema(described.get("x-data", described.get("x-data-v2.1", {})))
    fields = {"data": {"type": "array", "items": data} if described["x-list"] else data}
    if described.get("x-range") is True:
        fields["range"] = to_json_schema({"$ref": "#/components/schemas/ResultRange"})
    if described.get("x-paging") is True:
        fields["paging"] = to_json_schema({"$ref": "#/components/schemas/Paging"})
    fields |= {name: {"type": "integer"} for name in described.get("x-extra-top-level", ())}
    return {
        "type": "object", "properties": fields, "required": list(fields),
        "additionalProperties": False,
    }  # fmt: skip


PUBLISHED = {
    path for path, operation in OPERATIONS.items() if "x-shape" not in operation["responses"]["200"]
}
ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string", "minLength": 1}},
    "required": ["error"],
    "additionalProperties": False,
}


@cache
def find_validator(path):
    """Return the validator of an answer of *path*; of an error without a path."""
    return build_validator(describe_answer(path) if path else ERROR)


def find_violations(path, content, status=200):
    """Return the places at which the answer *content* of *path* does not conform."""
    if status == 200 and path not in PUBLISHED:
        return []
    found = find_validator(path if status == 200 else "").iter_errors(content)
    return sorted(f"{error.json_path}: {error.message[:160]}" for error in found)


@pytest.fixture(scope="module")
def service(running):
    """The service of the local explorer."""
    return running.service


def check(service, path, body):
    """Assert that the answer to *body* conforms to the description of *path*; return it."""
    response = service.answer_v2(SERVED[path], body, "premium")
    content = json.loads(bytes(response.body))

    assert response.status_code in STATUSES, body
    assert "application/json" == response.media_type
    assert [] == find_violations(path, content, response.status_code), body
    return response.status_code, content


def examples(count):
    """Return the settings of a test with *count* random examples."""
    return settings(
        deadline=None, derandomize=True, database=None, max_examples=count,
        phases=(Phase.generate,), suppress_health_check=list(HealthCheck),
    )  # fmt: skip


def request_randomly(service, path, data):
    """Send a body of the description, or one with a field that is missing or of any other value."""
    body = data.draw(generate(OPERATIONS[path]["requestBody"], resolve))
    if body and data.draw(st.integers(0, 2)) == 0:
        name = data.draw(st.sampled_from(sorted(body)))
        if data.draw(st.booleans()):
            del body[name]
        else:
            body[name] = data.draw(ANY)
    check(service, path, json.dumps(body).encode())


@given(data=st.data())
@examples(20)
def test_answers_conform_to_the_description(service, data):
    """S02: random requests to any path have answers with the described fields and statuses."""
    request_randomly(service, data.draw(st.sampled_from(sorted(OPERATIONS))), data)


@pytest.mark.more
@pytest.mark.parametrize("path", OPERATIONS)
@given(data=st.data())
@examples(5)
def test_answers_of_each_path_conform_to_the_description(service, path, data):
    """S02: the same with more requests to each path."""
    request_randomly(service, path, data)


@pytest.fixture(scope="module")
def positions(chain):
    """Slots of every kind, and blocks, of the simulated chain."""
    blocks = chain.scan("blocks").filter(pl.col("epoch").is_between(1, 467)).collect()
    slots = [blocks.filter(status=kind)["slot"] for kind in ("missed", "orphaned")]
    return {
        "slot": [32, slots[0].min(), slots[0].max(), slots[1].max()],
        "block": [0, 1, blocks["exec_block_number"].max()],
    }


def list_bodies(path, positions):
    """Return bodies of requests to *path* whose answers have all kinds of rows."""
    fields = resolve(OPERATIONS[path]["requestBody"])["x-fields"]
    shared = {"chain": "mainnet"} if "chain" in fields else {}
    validators = {"validator_identifiers": [0, 1, *range(1002, 1010)]}
    if fields.get("validator", {}).get("required"):
        shared["validator"] = validators
    if "entity" in fields:
        shared["entity"] = "Fyrlykt"
    if "slot" in fields:
        numbers = [{"slot": {"number": number}} for number in positions["slot"]]
        views = [{"slot": {"view": "latest"}}, {"slot": {"view": "finalized"}}]
        choices = numbers + (views if "duties" not in path else [])
    elif "block" in fields:
        choices = [{"block": {"number": number}} for number in positions["block"]]
    elif "sync_committee_period" in fields:
        choices = [{"sync_committee_period": {"number": number}} for number in range(3)]
    elif "epoch" in fields:
        choices = [{"epoch": epoch} for epoch in (0, 1, 300, 467, 468)]
    elif "range" in fields and "evaluation_window" in str(resolve(fields["range"])):
        choices = [{"range": {"evaluation_window": window}} for window in ("24h",)]
    else:
        choices = [{}]
    bodies = [{**shared, **choice} for choice in choices]
    if "validator" in shared:
        # A validator without an epoch of its life and without duties.
        bodies.append({**bodies[0], "validator": {"validator_identifiers": [1008]}})
    return bodies


@pytest.mark.parametrize(
    "path",
    [
        # Only the names of their fields are likely, and they take as much time as entities.
        pytest.param(path, marks=pytest.mark.more) if "entities/o" in path else path
        for path in sorted(PUBLISHED)
    ],
)
def test_every_published_answer_is_valid(service, positions, path):
    """E13: neither null nor a member that is not documented, in old epochs and missed slots."""
    answers = [
        check(service, path, json.dumps(body).encode()) for body in list_bodies(path, positions)
    ]

    assert 200 in [status for status, _ in answers]
    assert any(content["data"] for status, content in answers if status == 200)
