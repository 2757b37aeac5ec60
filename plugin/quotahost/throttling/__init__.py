"""Throttling arithmetic as small exact models: Kafka's, the KIPs' and quotahost's tap; no I/O, no clock of their own.

Kafka's are ``SampledRate`` (PRODUCE, FETCH, REQUEST) and ``TokenBucket`` (CONTROLLER_MUTATION). Those that only a
document has bear its name: ``simple_delay_s`` is KIP-13's, ``RevisionDiffRate`` and ``Version15Rate`` are KIP-599's.
``Tap`` is quotahost's own: how a factor moves limits. Public.

Time is always an argument, in milliseconds, and never decreases from call to call. Rates are per second, of
whatever is recorded: bytes, mutations, percent of a thread's time.
"""

from quotahost.throttling.kip_599 import RevisionDiffRate, SpreadRate, TokenBucket, Version15Rate, samples_of_burst
from quotahost.throttling.sampled_rate import QuotaWindows, SampledRate, quota_window, quota_windows, simple_delay_s
from quotahost.throttling.tap import Tap, lowered, rise

__all__ = [
    "QuotaWindows", "RevisionDiffRate", "SampledRate", "SpreadRate", "Tap", "TokenBucket", "Version15Rate",
    "lowered", "quota_window", "quota_windows", "rise", "samples_of_burst", "simple_delay_s",
]  # fmt: skip
