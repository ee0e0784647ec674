"""The answers of an execution node to calls of JSON-RPC: results, or what an error means."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec

from beaconframes.errors import (
    BadRequest,
    BeaconframesError,
    NotFound,
    NotServed,
    ProtocolError,
    RateLimited,
    ServerError,
    ServiceError,
)
from beaconframes.http.status_errors import NOT_JSON
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EXECUTION_HINT = (
    "Check that the address is that of the JSON-RPC of an execution node, usually port 8545; port "
    "8551 is the Engine API, for the consensus client only"
)
NO_METHOD = re.compile(r"\bmethod\b.{0,80}\bnot (found|supported|available|allowed)", re.IGNORECASE)
PRUNED = re.compile(r"\b(pruned|history (is )?unavailable)", re.IGNORECASE)
PRUNED_HISTORY: Final = 4444
"""The code of EIP-4444: the node has deleted the blocks of this time."""
RATE_LIMIT = re.compile(r"rate.?limit|too many requests|requests? per second", re.IGNORECASE)


def parse_results(
    data: bytes,
    calls: Sequence[tuple[str, Sequence[Any]]],
    names: str,
    redact: Callable[[str], str],
) -> list[Any] | BeaconframesError:
    """Return the results of JSON-RPC *calls* in their order, or the error to raise."""
    try:
        answers = msgspec.json.decode(data)
    except NOT_JSON as error:
        return ProtocolError(
            f"the answer is not JSON: {error}", hint=EXECUTION_HINT, endpoint=names
        )
    if isinstance(answers, dict):
        if len(calls) > 1 and answers.get("error") is not None:
            return _build_rpc_error(answers["error"], names, redact, is_batch=True)
        answers = [answers]
    found = (
        {str(one.get("id")): one for one in answers if isinstance(one, dict)}
        if isinstance(answers, list)
        else {}
    )
    results = []
    for number, (method, _) in enumerate(calls):
        answer = found.get(str(number), found.get("None") if len(calls) == 1 else None)
        if answer is None or not {"result", "error"} & answer.keys():
            return ProtocolError(
                "the answer is not that of a JSON-RPC call", hint=EXECUTION_HINT, endpoint=names
            )
        if (failure := answer.get("error")) is not None:
            return _build_rpc_error(failure, method, redact)
        results.append(answer.get("result"))
    return results


def _build_rpc_error(
    failure: Any, method: str, redact: Callable[[str], str], *, is_batch: bool = False
) -> ServiceError:
    """Return the error that the error object of a JSON-RPC response means.

    Codes are those of JSON-RPC, EIP-1474 and EIP-4444; some providers use texts only.
    """
    members = failure if isinstance(failure, dict) else {"message": failure}
    code, text = members.get("code"), str(members.get("message"))
    kind: type[ServiceError] = ServerError
    if is_batch or code in (-32600, -32003):
        kind = BadRequest
    elif code in (-32601, -32004) or NO_METHOD.search(text):
        kind = NotServed
    elif code == PRUNED_HISTORY or PRUNED.search(text):
        kind = NotFound
    elif code == HTTPStatus.TOO_MANY_REQUESTS or RATE_LIMIT.search(text):
        kind = RateLimited
    quoted = visible(redact(text), 200)
    return kind(f"the execution node reported: {quoted}", endpoint=method)
