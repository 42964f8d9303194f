"""What asks a provider over HTTP: addresses, requests, retries, masking, the transport. The only input and output."""
