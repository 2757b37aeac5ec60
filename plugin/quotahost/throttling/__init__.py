"""Kafka's own throttling arithmetic as small exact models: no I/O, and no clock of their own.

Public: ``quotahost simulate`` and anybody's tests may use them; the host and the plugins use ``quota_window`` alone.
Time is always an argument, in milliseconds, and never decreases from call to call. Rates are per second, of
whatever is recorded: bytes, mutations, percent of a thread's time.
"""

from quotahost.throttling.burst_rate import BurstRate
from quotahost.throttling.quota_window import quota_window
from quotahost.throttling.sampled_rate import SampledRate, simple_delay_s
from quotahost.throttling.token_bucket import TokenBucket

__all__ = ["BurstRate", "SampledRate", "TokenBucket", "quota_window", "simple_delay_s"]
