"""The Beacon API and the JSON-RPC of a synthetic chain, on loopback."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .chain import (
    CONFIG,
    FIRST_BLOCK,
    GENESIS,
    SIGNATURE,
    SPEC,
    SyntheticChain,
    build_hash,
    encode_hex,
    encode_state,
)

EVENT = "0x649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5"
"""The topic of the deposit contract's events."""
SENDER = "0x" + "5e" * 20


class Writer:
    """A folder with a chain: parts of states by their hash, blocks and payments by number."""

    def __init__(self, folder: Path) -> None:
        """Write into *folder*."""
        self.folder = folder
        for name in ("parts", "states", "blocks", "execution"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.proposers: dict[int, list[int]] = {}
        self.deposits: list[dict[str, Any]] = []
        self.headers: dict[int, dict[str, str]] = {}

    def write_state(self, name: int | str, values: dict[str, bytes]) -> None:
        """Write a state; parts that an earlier state has are stored once."""
        parts = {}
        for field, value in values.items():
            parts[field] = hashlib.sha256(value).hexdigest()
            path = self.folder / "parts" / parts[field]
            if not path.exists():
                path.write_bytes(value)
        (self.folder / "states" / str(name)).write_text(json.dumps(parts))

    def write_block(self, slot: int, root: str, block: dict[str, Any]) -> None:
        """Write a signed block with its *root*."""
        (self.folder / "blocks" / str(slot)).write_text(
            json.dumps({"version": "electra", "data": block})
        )
        message = block["message"]
        names = ("slot", "proposer_index", "parent_root", "state_root")
        header = {name: message[name] for name in names} | {"body_root": "0x" + "00" * 32}
        self.headers[slot] = {"root": root, "message": header}

    def write_proposers(self, epoch: int, proposers: list[int]) -> None:
        """Note the proposers of an epoch."""
        self.proposers[epoch] = proposers

    def write_execution_block(
        self, number: int, block: dict[str, Any], receipts: list[dict[str, Any]]
    ) -> None:
        """Write an execution block and its receipts."""
        (self.folder / "execution" / str(number)).write_text(
            json.dumps({"block": block, "receipts": receipts})
        )

    def write_deposit(self, block: int, time: int, number: int, fields: tuple[bytes, ...]) -> None:
        """Note the event of a deposit: five byte strings, each after its length."""
        head, tail = b"", b""
        for value in fields:
            head += (32 * len(fields) + len(tail)).to_bytes(32)
            tail += len(value).to_bytes(32) + value.ljust(-(-len(value) // 32) * 32, b"\0")
        self.deposits.append(
            {
                "address": CONFIG["DEPOSIT_CONTRACT_ADDRESS"],
                "topics": [EVENT],
                "data": encode_hex(head + tail),
                "blockNumber": hex(block),
                "blockHash": encode_hex(build_hash("execution", block)),
                "transactionHash": encode_hex(build_hash("deposit", number)),
                "transactionIndex": hex(number),
                "logIndex": hex(number),
                "blockTimestamp": hex(time),
            }
        )

    def finish(self, head_slot: int, finalized: int, validators: int) -> None:
        """Write what is known at the end: the head, proposers, deposits and headers."""
        facts = {
            "validators": validators,
            "head": max(self.headers),
            "head_slot": head_slot,
            "finalized": finalized,
            "proposers": self.proposers,
            "deposits": self.deposits,
            "headers": self.headers,
        }
        (self.folder / "chain.json").write_text(json.dumps(facts))


class SyntheticNode:
    """The answers of a beacon node and of its execution node."""

    def __init__(self, folder: Path, seconds: float = 0) -> None:
        """Read a folder that `Writer` has filled; a state takes *seconds*, one at a time."""
        self.folder, self.seconds = folder, seconds
        self._lock = threading.Lock()
        facts = json.loads((folder / "chain.json").read_text())
        self.head, self.finalized = facts["head"], facts["finalized"]
        self.head_slot, self.count = facts["head_slot"], facts["validators"]
        self.proposers, self.deposits = facts["proposers"], facts["deposits"]
        self.headers = {int(slot): header for slot, header in facts["headers"].items()}
        self.counts: Counter[str] = Counter()
        self._parts: dict[str, bytes] = {}

    def answer(self, path: str, body: Any) -> bytes | dict[str, Any] | None:
        """Return SSZ bytes, a document, or None for what the node does not have."""
        names = path.strip("/").split("/")[2:]
        facts = self._facts.get("/".join(names))
        if facts is not None:
            return {"data": facts}
        match names:
            case ["beacon", "headers", block]:
                return self._answer_header(block)
            case ["beacon", "blocks", block]:
                path_of_block = self.folder / "blocks" / str(self._find_slot(block))
                return path_of_block.read_bytes() if path_of_block.exists() else None
            case ["beacon", "states", _, "finality_checkpoints"]:
                checkpoint = {"epoch": str(self.finalized), "root": self._build_root()}
                kinds = ("previous_justified", "current_justified", "finalized")
                return {"data": dict.fromkeys(kinds, checkpoint)}
            case ["beacon", "states", _, "validators"]:
                return {"data": self._find_validators(body)}
            case ["beacon", "states", _, "pending_deposits"]:
                return {"data": []}  # All of them have been applied before the head.
            case ["debug", "beacon", "states", state]:
                return self._read_state(state)
            case ["validator", "duties", "proposer", epoch] if epoch in self.proposers:
                return {"data": self._list_proposers(epoch)}
        return None

    @property
    def _facts(self) -> dict[str, Any]:
        """Return what the node says of itself and of its chain, by route."""
        return {
            "node/version": {"version": "Lighthouse/v8.0.1-synthetic"},
            "node/syncing": {"is_syncing": False, "head_slot": str(self.head_slot)},
            "config/spec": CONFIG,
            "beacon/genesis": GENESIS,
        }

    def _list_proposers(self, epoch: str) -> list[dict[str, str]]:
        first = SPEC.first_slot_of(int(epoch))
        return [
            {
                "slot": str(first + place),
                "validator_index": str(index),
                "pubkey": "0x" + "00" * 48,
            }
            for place, index in enumerate(self.proposers[epoch])
        ]

    def _find_validators(self, body: Any) -> list[dict[str, Any]]:
        """Return validators of the head, which a probe requests to learn how many there are."""
        ids = (int(each) for each in (body or {}).get("ids", ()))
        return [self._build_validator(each) for each in ids if each < self.count]

    def _build_validator(self, index: int) -> dict[str, Any]:
        record = {
            "pubkey": "0x" + f"{index:096x}",
            "withdrawal_credentials": "0x" + "01" * 32,
            "effective_balance": "32000000000",
            "slashed": False,
            "activation_eligibility_epoch": "0",
            "activation_epoch": "0",
            "exit_epoch": str(2**64 - 1),
            "withdrawable_epoch": str(2**64 - 1),
        }
        return {
            "index": str(index), "balance": "32000000000", "status": "active_ongoing",
            "validator": record,
        }  # fmt: skip

    def _find_slot(self, block: str) -> int:
        if block == "head":
            return self.head
        if block == "finalized":
            last = SPEC.first_slot_of(self.finalized)
            return max(slot for slot in self.headers if slot <= last)
        return int(block)

    def _build_root(self) -> str:
        last = SPEC.first_slot_of(self.finalized)
        slot = max((slot for slot in self.headers if slot <= last), default=0)
        return self.headers[slot]["root"] if slot in self.headers else "0x" + "00" * 32

    def _answer_header(self, block: str) -> dict[str, Any] | None:
        slot = self._find_slot(block)
        if slot not in self.headers:
            return None
        header = self.headers[slot]
        return {
            "data": {
                "root": header["root"],
                "canonical": True,
                "header": {"message": header["message"], "signature": SIGNATURE},
            }
        }

    def _read_state(self, state: str) -> bytes | None:
        path = self.folder / "states" / state
        if not path.exists():
            return None
        with self._lock:
            time.sleep(self.seconds)
        parts = json.loads(path.read_text())
        return bytes(encode_state({name: self._read_part(part) for name, part in parts.items()}))

    def _read_part(self, part: str) -> bytes:
        if part not in self._parts:
            value = (self.folder / "parts" / part).read_bytes()
            if len(value) < 2**20:
                return value
            self._parts[part] = value
        return self._parts[part]

    # JSON-RPC.

    def call(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one call."""
        method, parameters = request["method"], request["params"]
        self.counts[method] += 1
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        match method, parameters:
            case "web3_clientVersion", _:
                return answer | {"result": "Geth/v1.16.7-synthetic"}
            case "eth_blockNumber", _:
                return answer | {"result": hex(FIRST_BLOCK + self.head)}
            case "eth_getBlockByNumber", [number, *_]:
                return answer | {"result": self._read_execution(number, "block")}
            case "eth_getBlockReceipts", [number]:
                return answer | {"result": self._read_execution(number, "receipts")}
            case "eth_getLogs", [chosen]:
                first, last = (int(chosen[name], 16) for name in ("fromBlock", "toBlock"))
                return answer | {"result": [
                    log for log in self.deposits if first <= int(log["blockNumber"], 16) <= last
                ]}  # fmt: skip
            case "eth_getTransactionByBlockHashAndIndex", [_, number]:
                log = self.deposits[int(number, 16)]
                return answer | {"result": {
                    "hash": log["transactionHash"], "from": SENDER, "to": log["address"],
                    "value": "0x0", "input": "0x",
                }}  # fmt: skip
        return answer | {"error": {"code": -32601, "message": f"no method {method}"}}

    def _read_execution(self, number: str, name: str) -> Any:
        path = self.folder / "execution" / str(int(number, 16))
        return json.loads(path.read_text())[name] if path.exists() else None


class Server(ThreadingHTTPServer):
    """A server whose clients may close connections at any time."""

    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Print nothing."""


class Handler(BaseHTTPRequestHandler):
    """Answers requests of one connection."""

    protocol_version = "HTTP/1.1"
    node: SyntheticNode

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        """Answer a request of the Beacon API."""
        self._send(self.node.answer(urlsplit(self.path).path, None))

    def do_POST(self) -> None:
        """Answer a request of the Beacon API with a body, or one of the JSON-RPC."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = urlsplit(self.path).path
        if path.strip("/"):
            self._send(self.node.answer(path, body))
        elif isinstance(body, list):
            self._write(200, json.dumps([self.node.call(each) for each in body]).encode())
        else:
            self._send(self.node.call(body))

    def _send(self, answer: bytes | dict[str, Any] | None) -> None:
        if answer is None:
            self._write(404, b'{"code": 404, "message": "not found"}')
        elif isinstance(answer, dict):
            self._write(200, json.dumps(answer).encode())
        else:
            self._write(200, answer, is_ssz=answer[:1] != b"{")

    def _write(self, status: int, body: bytes, *, is_ssz: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"application/{'octet-stream' if is_ssz else 'json'}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def make_chain(folder: Path, validators: int, epochs: int) -> None:
    """Write a synthetic chain into *folder*."""
    SyntheticChain(validators, epochs, Writer(folder)).grow()


def start(folder: Path, seconds: float = 0) -> Server:
    """Return a server of the chain of *folder*, on a free port; `serve_forever` runs it."""
    handler = type("ChainHandler", (Handler,), {"node": SyntheticNode(folder, seconds)})
    return Server(("127.0.0.1", 0), handler)


def serve(folder: Path, seconds: float) -> None:
    """Serve the chain of *folder* until the process ends; print the port first."""
    server = start(folder, seconds)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make_chain(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        serve(Path(sys.argv[2]), float(sys.argv[3]))
