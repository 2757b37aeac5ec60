"""How far a limit may fall in one step, so that no client is muted for longer than ``max.mute``.

``throttling.tap`` and the share book limit their steps so.

Kafka doesn't unmute a client when its limit rises again, so a long mute must not happen in the first place.
"""


def bound_after_step(q: float, window_s: float, max_mute_s: float) -> float:
    """The lowest limit after ``q`` that mutes nobody who kept to ``q`` for longer than ``max_mute_s``.

    Kafka mutes for ``(rate - bound) / bound x W`` (``QuotaUtils.throttleTime``). With the rate at ``q`` and the
    bound at ``q x W / (W + D)`` this is D. The next request adds its size divided by the bound.

    Args:
        q: the limit in force, per second.
        window_s: W, the longest that ``SampledRate.window_size_ms`` can get: (samples + 1) windows, in seconds.
            With less, such as Kafka's nominal window, the mute can be longer in proportion.
        max_mute_s: D, in seconds.

    Raises:
        ValueError: one of them is not above 0 (D may be 0).
    """
    if not q > 0 or not window_s > 0 or not max_mute_s >= 0:
        raise ValueError("q and window_s must be above 0, max_mute_s not below")
    return q * window_s / (window_s + max_mute_s)
