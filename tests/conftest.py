"""Settings for all tests: a test may fail because of a change, not by chance or on a busy machine.

Hypothesis tries the same examples each time; ``pytest --hypothesis-profile=searching`` looks for new ones.

With ``--dist loadgroup`` one worker runs all tests of a file, which share a broker, and one runs those of the pipeline,
which share a Spark: a second one would cost the start and the compiling of a second JVM.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

PIPELINE = Path(__file__).parent / "pipeline"

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("searching", UNHURRIED)
settings.register_profile("same", UNHURRIED, derandomize=True)
settings.load_profile("same")


def pytest_itemcollected(item: pytest.Item) -> None:
    group = "spark" if item.path.is_relative_to(PIPELINE) else item.path.stem
    item.add_marker(pytest.mark.xdist_group(group))
