"""What tests of several rooms share: recorded sessions, servers on loopback, builders of bodies. No tests here."""
