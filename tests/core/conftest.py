"""Makes the shared scenes importable: test modules stand alone under pytest's importlib mode."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("core", deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
settings.load_profile("core")
