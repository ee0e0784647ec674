"""A small execution node for tests: a function for each method, and faults of real providers."""

from __future__ import annotations

import json

import httpx

from beaconframes.beacon_node.client.session import NodeSession
from beaconframes.beacon_node.execution.api import ExecutionApi

from .faults import FastClock

CLIENT = "Geth/v1.16.7-stable-b9f3a3d9/linux-amd64/go1.25.1"


class RpcError(Exception):
    """An error of a method: code and message."""


class FakeNode(httpx.BaseTransport):
    """Answers each method of *methods*, a value or a function of the parameters.

    *batches* is how it answers a batch: ``"yes"``, or the way of a provider that refuses it.
    """

    def __init__(self, methods, *, batches="yes"):
        self.methods = {"web3_clientVersion": CLIENT, **methods}
        self.batches = batches
        self.sizes = []
        """Calls in each request; 0 for a single call outside a batch."""
        self.calls = []

    def api(self, url="http://node.example:8545"):
        """Return the API of this node."""
        return ExecutionApi(NodeSession(url, transport=self, clock=FastClock()))

    def handle_request(self, request):
        """Answer a request."""
        body = json.loads(request.read())
        self.sizes.append(len(body) if isinstance(body, list) else 0)
        if isinstance(body, dict):
            return reply(200, self._answer(body))
        refusal = {"code": -32600, "message": "batch requests are not supported"}
        if self.batches == "http-400":
            return reply(400, {"jsonrpc": "2.0", "id": None, "error": refusal})
        if self.batches == "text-403":
            return reply(405, "Method Not Allowed")
        if self.batches == "object":
            return reply(200, {"jsonrpc": "2.0", "id": None, "error": refusal})
        if self.batches == "first-only":
            return reply(200, [{"jsonrpc": "2.0", "id": 0, "error": refusal}])
        return reply(200, [self._answer(call) for call in reversed(body)])

    def _answer(self, call):
        method, parameters = call["method"], call["params"]
        self.calls.append((method, parameters))
        start = {"jsonrpc": "2.0", "id": call["id"]}
        if method not in self.methods:
            message = f"the method {method} does not exist/is not available"
            return {**start, "error": {"code": -32601, "message": message}}
        found = self.methods[method]
        try:
            result = found(*parameters) if callable(found) else found
        except RpcError as error:
            code, message = error.args
            return {**start, "error": {"code": code, "message": message}}
        return {**start, "result": result}


def reply(status, body):
    """Return an HTTP response with a JSON body."""
    return httpx.Response(status, json=body)
