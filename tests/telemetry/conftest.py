"""The server and the command line of live turns."""

from tests.live.conftest import fake as fake
from tests.live.test_run import ran as ran
