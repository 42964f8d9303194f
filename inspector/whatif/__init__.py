"""What-ifs: replays of a session under another budget, policy or seam rule, compared with the original run."""
