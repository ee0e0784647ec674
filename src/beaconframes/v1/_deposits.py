"""The columns of a deposit, shared by two endpoints."""

from __future__ import annotations

from beaconframes.schema import Count, Flag, Gwei, Hex, Table, UnixTime


class Deposits(Table):
    """Deposits. One row per event of the deposit contract."""

    block_number = Count("Number of the execution block.", key=True)
    tx_index = Count("Position of the transaction in its execution block, from 0.", key=True)
    merkletree_index = Hex(
        "Number of the deposit, 8 bytes, little-endian: 0xe803000000000000 is 1000.", key=True
    )
    tx_hash = Hex("Transaction of the deposit; it may have several deposits.", key=True)
    time = UnixTime("Timestamp of the execution block, UTC.", wire="block_ts")
    from_address = Hex("Sender of the transaction.")
    pubkey = Hex("BLS public key of the validator.", wire=("publickey", "public_key"), size=48)
    withdrawal_credentials = Hex("Withdrawal credentials of the deposit, 32 bytes.")
    amount_gwei = Gwei("Deposited amount.", wire="amount", minimum=0)
    signature = Hex("Signature of the deposit.")
    valid_signature = Flag(
        "Whether the signature is valid; the signature of a top-up need not be. From your own node"
        " null, unless the registry proves it.",
        nullable=True,
    )
    removed = Flag("Whether a reorganization removed the block.")
    tx_input = Hex("Call data of the transaction; null if the service has none.", nullable=True)
