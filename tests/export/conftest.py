"""The command line of live turns."""

from tests.live.test_run import ran as ran
