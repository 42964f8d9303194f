"""A session beside its other runs: what another budget, policy or rule would have made of it."""
