"""The Spark pipeline: from the snapshots and the usage of all brokers to one small record of each cluster, and shares.

It runs on a machine of its own with the extra ``spark``; brokers only read its records. ``main`` starts it. Only the
command line imports it, of ``options`` at its import and of the rest when the command runs.
"""

import logging
from typing import Final

log: Final = logging.getLogger("quotahost.pipeline")
