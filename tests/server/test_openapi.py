"""V2 of the local explorer against the OpenAPI description of the public service.

Requests are generated from the description, valid ones and others; every answer must conform to it.
The description writes request bodies as `x-fields`, which generators such as schemathesis ignore.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from beaconframes.server.service import Service
from beaconframes.server.v2 import find_endpoints

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
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
    "number": (int, float),
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


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip


def generate(schema):
    """Return a strategy for values that conform to *schema*."""
    schema = resolve(schema)
    if schema.get("nullable"):
        return st.none() | generate({**schema, "nullable": False})
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "oneOf" in schema:
        known = [one for one in schema["oneOf"] if {"type", "properties"} & set(resolve(one))]
        return st.one_of([generate(one) for one in known])
    fields = schema.get("x-fields", schema.get("properties"))
    if fields is not None:
        # The fields of a body say themselves whether they are required.
        names = schema.get("required", [])
        names = set(names if isinstance(names, list) else [])
        names |= {name for name, one in fields.items() if one.get("required") is True}
        return st.fixed_dictionaries(
            {name: generate(one) for name, one in fields.items() if name in names},
            optional={name: generate(one) for name, one in fields.items() if name not in names},
        )
    kind = schema.get("type")
    if kind == "integer":
        least = schema.get("minimum", -5)
        return st.integers(least, schema.get("maximum", 2**40)) | st.integers(
            least, min(schema.get("maximum", 20_000), 20_000)
        )
    if kind == "array":
        return st.lists(generate(schema["items"]), min_size=schema.get("minItems", 0), max_size=3)
    if kind == "string" and "pattern" in schema:
        return st.from_regex(re.compile(schema["pattern"], re.ASCII), fullmatch=True)
    return {"string": st.text(max_size=8), "boolean": st.booleans()}.get(kind, ANY)


def find_violations(value, schema, place="data"):
    """Return the places at which *value* does not conform to *schema*."""
    schema = resolve(schema)
    if value is None:
        # Which fields can be null is a guess of the description.
        return []
    kind = schema.get("type", "object" if "properties" in schema else None)
    if kind and (not isinstance(value, TYPES[kind]) or (kind != "boolean" and value is True)):
        return [f"{place} is {value!r}, not of type {kind}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{place} is {value!r}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{place} is {value!r}")
    for one in schema.get("allOf", ()):
        found += find_violations(value, one, place)
    required = schema.get("required", ())
    found += [f"{place}.{name} is missing" for name in required if value.get(name) is None]
    for name, one in schema.get("properties", {}).items():
        if name in value:
            found += find_violations(value[name], one, f"{place}.{name}")
    if kind == "array" and "items" in schema:
        for number, item in enumerate(value):
            found += find_violations(item, schema["items"], f"{place}[{number}]")
    return found


@pytest.fixture(scope="module")
def service(chain):
    """The local explorer without a server."""
    return Service(chain)


def check(service, path, body):
    """Assert that the answer to *body* conforms to the description of *path*."""
    response = service.answer_v2(SERVED[path], body, "premium")
    content = json.loads(bytes(response.body))

    assert response.status_code in STATUSES, body
    assert "application/json" == response.media_type
    if response.status_code != 200:
        assert ["error"] == list(content), body
        assert isinstance(content["error"], str)
        assert content["error"]
        return
    described = OPERATIONS[path]["responses"]["200"]
    data = content["data"]
    assert isinstance(data, list) == described["x-list"], body
    if described.get("x-range") is True:
        assert [] == find_violations(
            content["range"], {"$ref": "#/components/schemas/ResultRange"}, "range"
        )
    if described.get("x-paging") is True:
        assert isinstance(content["paging"]["next_cursor"], str | None)
    if "x-data" in described:
        for row in data if described["x-list"] else [data]:
            assert [] == find_violations(row, described["x-data"]), body


def examples(count):
    """Return the settings of a test with *count* random examples."""
    return settings(
        deadline=None, derandomize=True, database=None, max_examples=count,
        phases=(Phase.generate,), suppress_health_check=list(HealthCheck),
    )  # fmt: skip


def request_randomly(service, path, data):
    """Send a body of the description, or one with a field that is missing or of any other value."""
    body = data.draw(generate(OPERATIONS[path]["requestBody"]))
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
@examples(10)
def test_answers_of_each_path_conform_to_the_description(service, path, data):
    """S02: the same with more requests to each path."""
    request_randomly(service, path, data)
