"""The HTTP client of the engine: addresses, requests, retries, masking of secrets, the transport. The only input and
output."""
