"""One request: transport, retries, rate limit, response."""
