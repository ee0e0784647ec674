"""The execution node beside a beacon node: its JSON-RPC, payments of blocks, deposits."""
