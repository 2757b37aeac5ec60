"""These settings of Hypothesis make tests fail because of a change, and not by chance or on a busy machine.

Hypothesis tries the same examples each time; ``pytest --hypothesis-profile=searching`` looks for new ones.
"""

from hypothesis import HealthCheck, settings

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("searching", UNHURRIED)
settings.register_profile("same", UNHURRIED, derandomize=True)
settings.load_profile("same")
