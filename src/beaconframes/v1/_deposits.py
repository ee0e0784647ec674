"""The deposit record, which two endpoints share."""

from __future__ import annotations

from beaconframes.schema import Count, Flag, Gwei, Hex, Table, UnixTime


class Deposits(Table):
    """Deposits. One row per event of the deposit contract."""

    block_number = Count("Execution block.", key=True)
    tx_index = Count("Place of the transaction in its execution block, from 0.", key=True)
    merkletree_index = Hex(
        "Number of the deposit, 8 bytes, the lowest first: 0xe803000000000000 is 1000.", key=True
    )
    tx_hash = Hex("Transaction that deposited; it may hold several deposits.", key=True)
    time = UnixTime("Timestamp of the execution block, UTC.", wire="block_ts")
    from_address = Hex("Sender of the transaction.")
    pubkey = Hex("BLS public key that was deposited for.", wire=("publickey", "public_key"))
    withdrawal_credentials = Hex("Withdrawal credentials of the deposit, 32 bytes.")
    amount_gwei = Gwei("What was deposited.", wire="amount")
    signature = Hex("Signature of the deposit.")
    valid_signature = Flag("Whether it is valid; of a top-up it need not be.")
    removed = Flag("Whether the block was dropped by a reorganisation.")
    tx_input = Hex("Call data of the transaction; null when the service has none.")
