"""Validation by JSON Schema, and random values that conform to one."""

from __future__ import annotations

import re
import sys
from functools import cache
from unittest import mock

from hypothesis import strategies as st


@cache
def import_jsonschema():
    """Return the library without its check of IRIs, which takes two seconds to import."""
    with mock.patch.dict(sys.modules, {"rfc3987_syntax": None}):
        import jsonschema
    return jsonschema


def build_validator(schema):
    """Return a validator of values by *schema*."""
    return import_jsonschema().Draft202012Validator(schema)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip


def generate(schema, resolve):
    """Return a strategy for values that conform to *schema*; *resolve* replaces references."""

    def inner(part):
        return generate(part, resolve)

    schema = resolve(schema)
    kind = schema.get("type")
    if schema.get("nullable") or (isinstance(kind, list) and "null" in kind):
        kinds = [one for one in kind if one != "null"] if isinstance(kind, list) else [kind]
        return st.none() | inner({**schema, "nullable": False, "type": kinds[0]})
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for choice in ("oneOf", "anyOf"):
        if choice in schema:
            known = [one for one in schema[choice] if {"type", "properties"} & set(resolve(one))]
            return st.one_of([inner(one) for one in known])
    fields = schema.get("x-fields", schema.get("properties"))
    if fields is not None:
        # The fields of a body say themselves whether they are required.
        names = schema.get("required", [])
        names = set(names if isinstance(names, list) else [])
        names |= {name for name, one in fields.items() if one.get("required") is True}
        return st.fixed_dictionaries(
            {name: inner(one) for name, one in fields.items() if name in names},
            optional={name: inner(one) for name, one in fields.items() if name not in names},
        )
    if kind == "integer":
        least = schema.get("minimum", -5)
        return st.integers(least, schema.get("maximum", 2**40)) | st.integers(
            least, min(schema.get("maximum", 20_000), 20_000)
        )
    if kind == "array":
        return st.lists(inner(schema["items"]), min_size=schema.get("minItems", 0), max_size=3)
    if kind == "string" and "pattern" in schema:
        return st.from_regex(re.compile(schema["pattern"], re.ASCII), fullmatch=True)
    return {
        "string": st.text(max_size=8), "boolean": st.booleans(), "null": st.none()
    }.get(kind, ANY)  # fmt: skip
