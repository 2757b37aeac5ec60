"""These small exact models compute throttling as Kafka, the KIPs and quotahost's tap do, without I/O or a clock.

``SampledRate`` (PRODUCE, FETCH, REQUEST) and ``TokenBucket`` (CONTROLLER_MUTATION) are Kafka's. Some models exist only
in a document: ``simple_delay_s`` in KIP-13, ``RevisionDiffRate`` and ``Version15Rate`` in KIP-599. ``Tap`` is
quotahost's own: it makes the limits follow the factor over time. Public.

The caller always passes the time, in milliseconds; the time must never decrease from call to call. Rates are per
second, in the unit of the recorded values: bytes, mutations, percent of a thread's time.
"""

from quotahost.throttling.kip_599 import RevisionDiffRate, SpreadRate, TokenBucket, Version15Rate, samples_of_burst
from quotahost.throttling.sampled_rate import QuotaWindows, SampledRate, quota_window, quota_windows, simple_delay_s
from quotahost.throttling.tap import Tap, lowered, rise

__all__ = [
    "QuotaWindows", "RevisionDiffRate", "SampledRate", "SpreadRate", "Tap", "TokenBucket", "Version15Rate",
    "lowered", "quota_window", "quota_windows", "rise", "samples_of_burst", "simple_delay_s",
]  # fmt: skip
