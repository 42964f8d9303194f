"""What-ifs: a session replayed under another budget, policy or rule, beside the original run."""
