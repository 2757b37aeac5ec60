"""Kafka's own throttling arithmetic, and that of the KIPs, as small exact models: no I/O, and no clock of their own.

Kafka's are ``SampledRate`` (PRODUCE, FETCH, REQUEST) and ``TokenBucket`` (CONTROLLER_MUTATION). Those that only a
document has bear its name: ``simple_delay_s`` is KIP-13's, ``RevisionDiffRate`` and ``Version15Rate`` are KIP-599's.
``Tap`` is quotahost's own: how a factor moves limits.

Public: ``quotahost simulate quota`` and anybody's tests may use them; the host and the plugins use
``quota_window`` alone.
Time is always an argument, in milliseconds, and never decreases from call to call. Rates are per second, of
whatever is recorded: bytes, mutations, percent of a thread's time.
"""

from quotahost.throttling.kip_13 import simple_delay_s
from quotahost.throttling.kip_599_diff import RevisionDiffRate
from quotahost.throttling.kip_599_v15 import Version15Rate, samples_of_burst
from quotahost.throttling.quota_window import QuotaWindows, quota_window, quota_windows
from quotahost.throttling.sampled_rate import SampledRate
from quotahost.throttling.tap import Tap, rise
from quotahost.throttling.token_bucket import TokenBucket

__all__ = [
    "QuotaWindows",
    "RevisionDiffRate",
    "SampledRate",
    "Tap",
    "TokenBucket",
    "Version15Rate",
    "quota_window",
    "quota_windows",
    "rise",
    "samples_of_burst",
    "simple_delay_s",
]
