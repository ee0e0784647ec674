"""Make blocks at random for each fork; the executable specification computes their roots.

Run it from an environment with ``eth-consensus-specs``; the tests do not need that package::

    pip install eth-consensus-specs==1.7.0a13 ckzg
    python make_bodies.py .

Every list has elements, and lists of bits have any length. The fields have no meaning.
"""

import json
import lzma
import random
import sys
from pathlib import Path

from eth_consensus_specs.altair import mainnet as altair_mainnet
from eth_consensus_specs.altair import minimal as altair_minimal
from eth_consensus_specs.bellatrix import mainnet as bellatrix_mainnet
from eth_consensus_specs.capella import mainnet as capella_mainnet
from eth_consensus_specs.deneb import mainnet as deneb_mainnet
from eth_consensus_specs.electra import mainnet as electra_mainnet
from eth_consensus_specs.electra import minimal as electra_minimal
from eth_consensus_specs.fulu import mainnet as fulu_mainnet
from eth_consensus_specs.phase0 import mainnet as phase0_mainnet
from eth_consensus_specs.utils.ssz.ssz_impl import hash_tree_root
from eth_consensus_specs.utils.ssz.ssz_typing import (
    BitList,
    BitVector,
    ByteList,
    ByteVector,
    Container,
    List,
    Uint,
    Vector,
)

numbers = random.Random(23)


def fill(kind):
    """Return a value of an SSZ type at random."""
    if issubclass(kind, Uint):
        return kind(numbers.getrandbits(kind.type_byte_length() * 8))
    if issubclass(kind, ByteVector):
        return kind(numbers.randbytes(kind.vector_length()))
    if issubclass(kind, ByteList):
        return kind(numbers.randbytes(numbers.randrange(min(kind.limit(), 200) + 1)))
    if issubclass(kind, BitVector):
        return kind(*(numbers.random() < 0.5 for _ in range(kind.vector_length())))
    if issubclass(kind, BitList):
        length = numbers.randrange(min(kind.limit(), 600) + 1)
        return kind(*(numbers.random() < 0.5 for _ in range(length)))
    if issubclass(kind, List):
        count = numbers.randint(1, min(kind.limit(), 3))
        return kind(*(fill(kind.element_cls()) for _ in range(count)))
    if issubclass(kind, Vector):
        return kind(*(fill(kind.element_cls()) for _ in range(kind.vector_length())))
    assert issubclass(kind, Container)
    return kind(**{name: fill(each) for name, each in kind.fields().items()})


def describe(value):
    """Return a value as the JSON of the Beacon API."""
    if isinstance(value, Uint):
        return str(int(value))
    if isinstance(value, (ByteVector, ByteList)):
        return "0x" + bytes(value).hex()
    if isinstance(value, (BitList, BitVector)):
        return "0x" + value.encode_bytes().hex()
    if isinstance(value, Container):
        return {name: describe(getattr(value, name)) for name in value.fields()}
    return [describe(each) for each in value]


lines = []
for spec in (
    phase0_mainnet, altair_mainnet, altair_minimal, bellatrix_mainnet, capella_mainnet,
    deneb_mainnet, electra_mainnet, electra_minimal, fulu_mainnet,
):  # fmt: skip
    block = fill(spec.BeaconBlock)
    block.slot = 0
    row = {"fork": spec.fork, "preset": spec.config.PRESET_BASE}
    lines.append(
        row | {"message": describe(block), "root": "0x" + bytes(hash_tree_root(block)).hex()}
    )
text = "\n".join(json.dumps(line) for line in lines).encode()
(Path(sys.argv[1]) / "bodies.jsonl.xz").write_bytes(lzma.compress(text, preset=9))
