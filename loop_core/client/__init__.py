"""The HTTP client of the engine: addresses, requests, retries, masking of secrets, the transport. No other package of
the engine does I/O."""
