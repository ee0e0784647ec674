"""The Beacon API of a node: requests, and what their answers hold, each checked by itself."""
