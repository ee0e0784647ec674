"""The OpenAPI document of both versions, generated from the declarations of the endpoints."""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.answers.v2 import HOURLY, RECORDS, SUNSETS, UNSENT, WITHOUT_RANGE
from beaconframes.endpoint import NATURAL, Envelope, Shape
from beaconframes.endpoint.validator_sets import describe_sets
from beaconframes.schema.encode import choose_paths
from beaconframes.server import wire as wires
from beaconframes.server.service_v2 import find_endpoints, is_paged
from beaconframes.v1 import ENDPOINTS
from beaconframes.v1._execution_requests import REQUEST_LISTS
from beaconframes.v1.chart import CHART_PATH
from beaconframes.v2.machine_metrics import ENDING, PROCESSES

if TYPE_CHECKING:
    from collections.abc import Collection

    from beaconframes.endpoint import Endpoint, JsonSchema
    from beaconframes.schema import Column, Table
    from beaconframes.server.wire import Wire

OPENAPI_PATH = "/openapi.json"
HEALTH_PATHS = ("/api/healthz", "/api/healthz-loadbalancer")
API_VERSION = "1.0.3"
"""Version of the service's own description, which the specification follows."""
SCHEMAS = "#/components/schemas/"
PLACEHOLDER = re.compile(r"\{(\w+)\}")
TEXTS: dict[Any, JsonSchema] = {
    int | str: {"type": "string", "pattern": "^(0|-?[1-9][0-9]*)$"},
    datetime: {"type": "string", "format": "date-time"},
}
"""The JSON Schema of wire types that are texts of one form."""


def require_all(fields: JsonSchema) -> JsonSchema:
    """Return the JSON Schema of an object that has all *fields*."""
    return {"type": "object", "properties": fields, "required": list(fields)}


BOUNDS: JsonSchema = {
    "description": "Both included; an end before the start stands for an empty range.",
    **require_all({"start": NATURAL, "end": {"type": "integer", "minimum": -1}}),
}
SETS = {
    "ValidatorSet": describe_sets(nullable=False),
    "OptionalValidatorSet": describe_sets(nullable=True),
}
COMPONENTS: dict[str, Any] = {
    "schemas": {
        **SETS,
        "ErrorV1": require_all({"status": {"type": "string"}, "data": {"type": "null"}}),
        "ErrorV2": require_all({"error": {"type": "string"}}),
        "Range": {
            "description": "The part of the chain that an answer covers, both ends included.",
            **require_all({"slot": BOUNDS, "epoch": BOUNDS, "timestamp": BOUNDS}),
        },
        "Paging": {
            "description": "The cursor of the next page; empty after the last one.",
            **require_all({"next_cursor": {"type": "string"}}),
        },
    },
    "securitySchemes": {
        "query": {"type": "apiKey", "in": "query", "name": "apikey"},
        "header": {"type": "apiKey", "in": "header", "name": "apikey"},
        "bearer": {"type": "http", "scheme": "bearer"},
    },
}
ERRORS_V1 = {"400": "Invalid request", "401": "No valid key", "429": "Too many requests"}
ERRORS_V2 = {
    **ERRORS_V1,
    "403": "Not allowed for the tier of the key",
    "404": "Not found",
    "500": "Internal error",
}
ASSUMED = "The service publishes no shape of this answer; this one is plausible."


@cache
def encode_openapi(wire: Wire = "spec", *, old_queues: bool = False) -> bytes:
    """Return the OpenAPI document of one *wire* as JSON."""
    return msgspec.json.encode(build_openapi(wire, old_queues=old_queues))


def build_openapi(wire: Wire = "spec", *, old_queues: bool = False) -> dict[str, Any]:
    """Return the OpenAPI document of the local explorer on one *wire*."""
    public = wire == "public"
    paths: dict[str, Any] = {}
    first, second = (*ENDPOINTS, *REQUEST_LISTS), find_endpoints(old_queues=old_queues)
    records = {name_record(e): describe_record(e, public=public) for e in (*first, *second)}
    for endpoint in first:
        extra = (endpoint.alias, wires.EXTRA_PATHS.get(endpoint.name))
        for number, path in enumerate(filter(None, (endpoint.path, *extra))):
            operation = describe_get(endpoint, path, public=public)
            # Operations of further paths need names of their own.
            operation["operationId"] += f"_{number}" * bool(number)
            paths.setdefault(path, {})["get"] = operation
        if endpoint.post is not None:
            paths.setdefault(endpoint.post.path, {})["post"] = describe_post(
                endpoint, public=public
            )
    paths[CHART_PATH] = {"get": describe_chart()}
    for path in HEALTH_PATHS:
        paths[path] = {"get": describe_health(path)}
    for endpoint in second:
        paths[endpoint.path] = {"post": describe_v2(endpoint)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Local explorer of beaconframes",
            "version": API_VERSION,
            "description": f"Both versions of the API, on the {wire} wire.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {**COMPONENTS, "schemas": {**COMPONENTS["schemas"], **records}},
    }


def describe_get(endpoint: Endpoint, path: str, *, public: bool) -> dict[str, Any]:
    """Return the operation of a V1 endpoint on one of its paths."""
    in_path = set(PLACEHOLDER.findall(path))
    required = {name for p in endpoint.all_parameters for name in p.required_fields} | in_path
    fields = wires.describe_fields(endpoint, "public" if public else "spec")
    return {
        **describe_operation(endpoint, endpoint.name),
        "security": [{}, {"query": []}, {"header": []}],
        "parameters": [
            {
                "name": name,
                "in": "path" if name in in_path else "query",
                "required": name in required,
                "schema": schema,
            }
            for name, schema in fields.items()
        ],
        "responses": describe_responses(
            describe_answer(endpoint, public=public), ERRORS_V1, "ErrorV1"
        ),
    }


def describe_post(endpoint: Endpoint, *, public: bool) -> dict[str, Any]:
    """Return the operation of the POST form of a V1 endpoint."""
    post, operation = endpoint.post, describe_get(endpoint, "", public=public)
    assert post is not None
    schema = wires.describe_fields(endpoint, "public" if public else "spec")[post.arg]
    del operation["parameters"]
    return {
        **operation,
        "operationId": f"{endpoint.name}_post",
        "requestBody": wrap_json(require_all({post.field: schema})),
    }


def describe_v2(endpoint: Endpoint) -> dict[str, Any]:
    """Return the operation of a V2 endpoint."""
    parameters = endpoint.all_parameters
    fields = {n: schema for p in parameters for n, schema in p.field_schemas.items()}
    for name, schema in SETS.items():
        if fields.get("validator") == schema:
            fields["validator"] = {"$ref": f"{SCHEMAS}{name}"}
    required = [name for p in parameters for name in p.required_fields]
    body: JsonSchema = {"type": "object", "properties": fields}
    return {
        **describe_operation(endpoint, f"v2_{endpoint.name}"),
        **({"deprecated": True} if endpoint.name in SUNSETS else {}),
        "security": [{"bearer": []}],
        "requestBody": wrap_json(body | ({"required": required} if required else {})),
        "responses": describe_responses(describe_answer_v2(endpoint), ERRORS_V2, "ErrorV2"),
    }


def describe_operation(endpoint: Endpoint, name: str) -> dict[str, Any]:
    """Return name and description of an operation; the first line of the table is its grain."""
    summary = (find_table(endpoint).__doc__ or "").partition("\n")[0]
    is_assumed = endpoint.envelope is Envelope.V2 and endpoint.name in RECORDS
    return {
        "operationId": name,
        "summary": summary,
        **({"description": ASSUMED} if is_assumed else {}),
    }


def find_table(endpoint: Endpoint) -> type[Table]:
    """Return the table of the records of an endpoint, as the local explorer sends them."""
    is_v2 = endpoint.envelope is Envelope.V2
    return RECORDS.get(endpoint.name, endpoint.table) if is_v2 else endpoint.table


def name_record(endpoint: Endpoint) -> str:
    """Return the name of the schema of an endpoint's records."""
    prefix = "V2" if endpoint.envelope is Envelope.V2 else ""
    return f"{prefix}{find_table(endpoint).__name__}"


def describe_responses(answer: JsonSchema, errors: dict[str, str], schema: str) -> dict[str, Any]:
    """Return the responses of an operation: its answer, and errors of one schema."""
    error = wrap_json({"$ref": f"{SCHEMAS}{schema}"})
    return {
        "200": {"description": "OK", **wrap_json(answer)},
        **{status: {"description": text, **error} for status, text in sorted(errors.items())},
    }


def wrap_json(schema: JsonSchema) -> dict[str, Any]:
    """Return *schema* as the content of a body."""
    return {"content": {"application/json": {"schema": schema}}}


def describe_chart() -> dict[str, Any]:
    """Return the operation of the charts."""
    (name,) = PLACEHOLDER.findall(CHART_PATH)
    path = {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    error = wrap_json({"$ref": f"{SCHEMAS}ErrorV1"})
    return {
        "operationId": "chart",
        "summary": "A chart of the chain. One picture.",
        "parameters": [path],
        "responses": {
            "200": {"description": "OK", "content": {"image/png": {}}},
            "400": {"description": "Unknown chart", **error},
        },
    }


def describe_health(path: str) -> dict[str, Any]:
    """Return the operation of a health check."""
    return {
        "operationId": path.rpartition("/")[2].replace("-", "_"),
        "summary": "Whether the service is up. One text.",
        "responses": {"200": {"description": "OK", "content": {"text/plain": {}}}},
    }


def describe_answer(endpoint: Endpoint, *, public: bool) -> JsonSchema:
    """Return the JSON Schema of an answer of a V1 endpoint."""
    record = {"$ref": f"{SCHEMAS}{name_record(endpoint)}"}
    shape = wires.SHAPES.get(endpoint.name, endpoint.shape) if public else endpoint.shape
    data: JsonSchema = {"type": "array", "items": record}
    if shape is not Shape.LIST:
        # Without exactly one record, the data is a list.
        data = {"anyOf": [record, data]}
    if endpoint.envelope is Envelope.BARE and public:
        return data
    is_coded = endpoint.envelope is Envelope.CODE
    state = {"code": {"const": 200}} if is_coded else {"status": {"const": "OK"}}
    return require_all({**state, "data": data})


def describe_answer_v2(endpoint: Endpoint) -> JsonSchema:
    """Return the JSON Schema of an answer of a V2 endpoint."""
    record: JsonSchema = {"$ref": f"{SCHEMAS}{name_record(endpoint)}"}
    if endpoint.name == "machine_metrics":
        readings = {"type": "array", "items": record}
        record = require_all({f"{process}{ENDING}": readings for process in PROCESSES})
    if endpoint.name == "machine_names":
        record = {"type": "string"}
    is_object = endpoint.shape is Shape.OBJECT
    fields: JsonSchema = {"data": record if is_object else {"type": "array", "items": record}}
    if endpoint.name not in WITHOUT_RANGE:
        fields["range"] = {"$ref": f"{SCHEMAS}Range"}
    if is_paged(endpoint):
        fields["paging"] = {"$ref": f"{SCHEMAS}Paging"}
    if endpoint.name in HOURLY:
        fields["last_updated"] = NATURAL
    return require_all(fields)


def describe_record(endpoint: Endpoint, *, public: bool) -> JsonSchema:
    """Return the JSON Schema of a record of an endpoint."""
    is_v2 = endpoint.envelope is Envelope.V2
    unsent = {*UNSENT.get(endpoint.name, ())} if is_v2 else set()
    if endpoint.name == "machine_metrics":
        # The process is in the name of the list.
        unsent.add("process")
    root: dict[str, Any] = {}
    public = public and not is_v2
    for column, path in choose_paths(find_table(endpoint).spec, public=public).items():
        if column.wire_paths[0] in unsent:
            continue
        *parents, last = path.split(".")
        node = root
        for step in parents:
            node = node.setdefault(step, {})
        node[last] = column
    return describe_node(root, find_table(endpoint).filled_objects)


def describe_node(fields: dict[str, Any], filled_objects: Collection[str] = ()) -> JsonSchema:
    """Return the JSON Schema of an object: columns and other objects by the name of the field.

    An object without a field that always has a value can be null, unless it is one of the
    *filled_objects*. A field with a default can be absent.
    """
    properties, required = {}, []
    for name, field in fields.items():
        if isinstance(field, dict):
            schema = describe_node(field)
            is_certain = "required" in schema or name in filled_objects
        else:
            schema = describe_column(field)
            is_certain = not field.may_be_null and field.default is None
        if name.endswith("[]"):
            schema = {"type": ["array", "null"], "items": schema}
        elif not is_certain and "type" in schema:
            schema = {**schema, "type": [schema["type"], "null"]}
        properties[name.removesuffix("[]")] = schema
        if is_certain:
            required.append(name.removesuffix("[]"))
    certain = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **certain}


def describe_column(column: Column) -> JsonSchema:
    """Return the JSON Schema of a column."""
    kind = column.wire_type()
    return {**(TEXTS.get(kind) or msgspec.json.schema(kind)), "description": column.doc}
