"""The judge of a response: why it really stopped, with the evidence, and which of its tool calls may run."""
