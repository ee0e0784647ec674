"""Development chains of real EVM implementations: blocks are made by them, not written by hand.

`EthTester` is py-evm in this process. It has no JSON-RPC, so `FakeNode` answers with what it
returns, with the names and the hexadecimal numbers of JSON-RPC. `Anvil` is a JSON-RPC server, whose
program the environment variable ANVIL names.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter

import httpx

from beaconframes.beacon_node.client.session import NodeSession
from beaconframes.beacon_node.execution.api import ExecutionApi

from .execution_node import FakeNode

NAMES = {"coinbase": "miner", "data": "input"}
"""Names of eth-tester that JSON-RPC spells otherwise."""


class EthTester:
    """The chain of eth-tester."""

    def __init__(self):
        from eth_tester import EthereumTester, PyEVMBackend

        self.chain = EthereumTester(PyEVMBackend())
        self.accounts = self.chain.get_accounts()
        self.pending, self.sent = [], Counter()
        self.chain.disable_auto_mine_transactions()
        self.node = FakeNode(
            {
                "web3_clientVersion": "EthereumTester/py-evm",
                "eth_getBlockByNumber": lambda number, full: self._block(
                    self.chain.get_block_by_number(to_int(number)), full
                ),
                "eth_getBlockByHash": lambda block_hash, full: self._block(
                    self.chain.get_block_by_hash(block_hash), full
                ),
                "eth_getBlockReceipts": lambda number: [
                    to_rpc(self.chain.get_transaction_receipt(tx_hash))
                    for tx_hash in self.chain.get_block_by_number(to_int(number))["transactions"]
                ],
                "eth_getTransactionByBlockHashAndIndex": self._transaction,
                "eth_getLogs": self._logs,
                "eth_getBalance": lambda address, block: hex(
                    self.chain.get_balance(address, to_int(block))
                ),
                "eth_call": self._call,
                "eth_feeHistory": lambda count, block, percentiles: to_rpc(
                    self.chain.get_fee_history(to_int(count), block, percentiles)
                ),
            }
        )
        self.api = self.node.api()

    def send(self, **transaction):
        """Send a transaction, to be part of the next block."""
        sender = transaction["from"]
        self.pending.append({"gas": 200_000, "nonce": self.sent[sender], **transaction})
        self.sent[sender] += 1

    def mine(self, coinbase):
        """Make a block; return its number, and the addresses of the contracts in it."""
        # The pending block of eth-tester has one transaction of a sender, and no fee recipient.
        evm = self.chain.backend.chain
        evm.header = evm.header.copy(coinbase=bytes.fromhex(coinbase[2:]))
        for transaction in self.pending:
            self.chain._add_transaction_to_pending_block(transaction)
        self.pending.clear()
        block = self.chain.get_block_by_hash(self.chain.mine_block(coinbase=coinbase))
        receipts = [self.chain.get_transaction_receipt(each) for each in block["transactions"]]
        return block["number"], [each["contract_address"] for each in receipts]

    def close(self):
        """Close the connection."""
        self.api.close()

    def _block(self, block, full):
        transactions = [
            to_rpc(self.chain.get_transaction_by_hash(each)) if full else each
            for each in block["transactions"]
        ]
        return {**to_rpc(block), "transactions": transactions}

    def _transaction(self, block_hash, index):
        hashes = self.chain.get_block_by_hash(block_hash)["transactions"]
        return to_rpc(self.chain.get_transaction_by_hash(hashes[to_int(index)]))

    def _logs(self, chosen):
        first, last = to_int(chosen["fromBlock"]), to_int(chosen["toBlock"])
        return to_rpc(
            self.chain.get_logs(first, last, address=chosen["address"], topics=chosen["topics"])
        )

    def _call(self, call, block):
        sender = {"from": self.accounts[0], "gas": 100_000}
        return self.chain.call({**sender, **call}, block_number=to_int(block))


class Anvil:
    """The chain of an Anvil process."""

    def __init__(self):
        arguments = ["--port", "0", "--order", "fifo", "--no-mining"]
        self.process = subprocess.Popen(
            [os.environ["ANVIL"], *arguments], stdout=subprocess.PIPE, text=True
        )
        line = next(line for line in self.process.stdout if line.startswith("Listening on "))
        self.url = f"http://{line.split()[-1]}"
        self.api = ExecutionApi(NodeSession(self.url))
        self.accounts = self.rpc("eth_accounts")

    def rpc(self, method, *parameters):
        """Return the result of a method."""
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        return httpx.post(self.url, json=call, timeout=60).json()["result"]

    def send(self, **transaction):
        """Send a transaction, to be part of the next block."""
        names = {to_camel(name): value for name, value in transaction.items()}
        fields = {
            name: hex(value) if isinstance(value, int) else value for name, value in names.items()
        }
        self.rpc("eth_sendTransaction", {"gas": hex(200_000), **fields})

    def mine(self, coinbase):
        """Make a block; return its number, and the addresses of the contracts in it."""
        self.rpc("anvil_setCoinbase", coinbase)
        self.rpc("evm_mine")
        number = self.rpc("eth_blockNumber")
        receipts = self.rpc("eth_getBlockReceipts", number)
        return to_int(number), [each["contractAddress"] for each in receipts]

    def close(self):
        """End the process."""
        self.api.close()
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def to_int(quantity):
    """Return the number of a quantity; the name of a block remains."""
    return int(quantity, 16) if quantity.startswith("0x") else quantity


def to_camel(name):
    """Return the name of JSON-RPC for one of Python."""
    first, *others = NAMES.get(name, name).split("_")
    return first + "".join(word.capitalize() for word in others)


def to_rpc(value):
    """Return a value of eth-tester as JSON-RPC has it."""
    if isinstance(value, dict):
        is_log = "log_index" in value
        return {
            "data" if is_log and name == "data" else to_camel(name): to_rpc(each)
            for name, each in value.items()
        } | ({"gasUsedRatio": value["gas_used_ratio"]} if "gas_used_ratio" in value else {})
    if isinstance(value, (list, tuple)):
        return [to_rpc(each) for each in value]
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, int) and not isinstance(value, bool):
        return hex(value)
    return value or None if value == "" else value
