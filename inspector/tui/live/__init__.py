"""Live turns on the screen: the session screen while its session is still being made, and the forms around it."""
