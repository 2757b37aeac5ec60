"""The Spark pipeline turns the snapshots and usage of all brokers into one small record for each cluster, and shares.

The pipeline runs on a machine of its own with the extra ``spark``; brokers only read its records. ``main`` starts it.
Only the command line imports this package: ``options`` at its own import, the other modules when the command runs.
"""

import logging
from typing import Final

log: Final = logging.getLogger("quotahost.pipeline")
