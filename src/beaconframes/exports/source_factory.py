"""Creation of sources from frames, datasets, stores and loader calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes.client import Store
from beaconframes.client.connection import get_explorer
from beaconframes.dataset import Dataset
from beaconframes.endpoint.cache_policy import CachePolicy
from beaconframes.errors import UsageError
from beaconframes.exports.chunked_load import ChunkedLoad
from beaconframes.exports.dataset_sources import create_dataset_sources
from beaconframes.exports.loader_calls import (
    LoaderCall,
    bind_arguments,
    find_endpoint,
    get_function_name,
)
from beaconframes.exports.sources import (
    TableSource,
    create_frame_source,
    is_frame,
)
from beaconframes.exports.table_descriptions import (
    add_finality,
    add_undeclared_columns,
    check_name,
    describe_endpoint,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.client import Explorer


def create_sources(
    what: Any,
    *,
    table: str | None,
    explorer: Explorer | None,
    arguments: dict[str, Any],
    unfinalized: bool = False,
) -> list[TableSource]:
    """Return the sources of the rows of *what*, one per table."""
    if table is not None:
        check_name(table)
    if callable(what) and not is_frame(what):
        return [create_call_source(what, table, explorer, arguments, unfinalized=unfinalized)]
    if unfinalized:
        raise UsageError(
            "unfinalized=True is for loaders", hint="A frame is exported with all its rows"
        )
    if arguments:
        raise UsageError(
            f"export() has no argument {min(arguments)!r}",
            hint="Only loaders accept other arguments: bf.export(bf.load_..., target, ...)",
        )
    if isinstance(what, Store):
        if what.dataset is None:
            raise UsageError(
                f"the store {what.path} is empty", hint="Load rows first: bf.load_...(...)"
            )
        what = what.dataset
    if isinstance(what, Dataset):
        return create_dataset_sources(what, table)
    if is_frame(what):
        return [create_frame_source(what, table)]
    raise UsageError(
        f"a value of type {type(what).__name__} cannot be exported",
        hint="Give a frame, a loader and its arguments, a Dataset or bf.store()",
    )


def create_call_source(
    function: Callable[..., Any],
    table: str | None,
    explorer: Explorer | None,
    arguments: dict[str, Any],
    *,
    unfinalized: bool,
) -> TableSource:
    """Return a source for a loader with its arguments, or for a function that returns a frame."""
    function, bound = bind_arguments(function, arguments)
    endpoint = find_endpoint(function)
    if endpoint is None:
        frame = function(*bound.args, **bound.kwargs)
        if not is_frame(frame):
            raise UsageError(
                f"{get_function_name(function)}() does not return a frame",
                hint="Give a frame, a function that returns one, or a loader and its arguments",
            )
        return create_frame_source(frame, table)
    used_explorer = get_explorer(explorer or bound.arguments.get("explorer"))
    call = LoaderCall(
        function, endpoint, used_explorer, dict(bound.arguments), unfinalized=unfinalized
    )
    source = TableSource(
        describe_endpoint(endpoint, table),
        call.load_all,
        used_explorer.chain,
        call.describe_service(),
        request={"loader": function.__name__, **call.describe_arguments()},
    )
    if endpoint.table.keeps_every_field:
        # The columns are unknown before the response.
        frames = [*call.load_all()]
        source.table = add_undeclared_columns(source.table, frames[0].schema)
        source.frames, source.gaps = lambda: iter(frames), call.gaps
        return source
    policy = CachePolicy.of(endpoint)
    if unfinalized and (policy is not None or "slot" in source.table.schema):
        source.table = add_finality(source.table)
    requested = policy.cache_range(call.values, call.chain_head) if policy else None
    if policy is None or requested is None or not requested.intervals or not policy.unit_name:
        source.gaps = call.gaps
        return source
    return ChunkedLoad.create(source, call, policy, requested).source
