"""How limits follow the factor over time, downwards and upwards: the tap.

Kafka doesn't hold a client to its limit at each moment, but to the mean over its windows. So a limit that follows the
factor at once shuts a client off until the past fits, or lets it send a whole window's bytes at once when the past is
empty, as after a PAUSE. The tap moves by the mean of the factor over about the time that Kafka looks back: then what
a client at its limit sends is the quota times the factor, now. docs/adr/0017-a-tap-not-a-ramp.md has the figures.

``Tap.java`` is the same in the broker; tests/throttling/test_tap.py holds the two equal to the bit. So operations stand
here in the same order as there.
"""

from collections import deque
from typing import Final

#: Below this value the limits of all but absurdly high quotas are at the floor: the tap goes to 0 at once.
NEGLIGIBLE: Final = 1e-5
#: A smaller part of the value isn't worth a step: each makes Kafka scan all its sensors.
STEP: Final = 0.02
#: How much later the rise begins after a PAUSE that was held, in ms: clients that were turned back wait before they try
#: again, for longer each time, up to a second (``retry.backoff.max.ms`` of librdkafka and Java).
RETRY_MS: Final = 750
#: How many changes of the factor the mean takes into account at most; of more, the oldest counts as the next.
MOST: Final = 512


def lowered(whole: float, factor: float, floor: float) -> float:
    """What a factor of 0 to 1 makes of a rate: no factor takes it below the floor (``org.quotahost.table.Rule``)."""
    return max(min(whole, floor), whole * factor)


def _looks_back_ms(windows: int, window_ms: int) -> tuple[int, int]:
    """How far back Kafka looks in ms, in the mean, where the windows were empty, and where they are full.

    Empty, ``Rate.windowSize`` is from (windows - 1) to windows. Full, the oldest one counts whole while it overlaps.
    """
    return windows * window_ms - window_ms // 2, windows * window_ms + window_ms // 2


def rise(since_ms: int, windows: int, window_ms: int) -> float:
    """The share of its limit (0..1) that a client gets so many ms after it began with empty windows."""
    time, _ = _looks_back_ms(windows, window_ms)
    return 1.0 if since_ms >= time else max(1.0 / windows, since_ms / time)


class Tap:
    """The ``value`` that quotas are multiplied by, on its way to a factor; it begins at 1, as if it had always been."""

    def __init__(self, windows: int = 11, window_ms: int = 1000, max_mute_ms: int = 30_000) -> None:
        """The arguments are those of ``configure``."""
        self.value = 1.0
        self._held, self._held_since_ms, self._clients_wait_until_ms = False, 0, -(2**63)
        self._factor = 1.0  # as it counts for the mean
        # Each with when it was left, in ms, the oldest first: the factors that the mean still reaches back to, and the
        # higher values of Kafka's time, of which the first is the highest.
        self._factors: deque[tuple[float, int]] = deque()
        self._past: deque[tuple[float, int]] = deque()
        self.configure(windows, window_ms, max_mute_ms)

    def configure(self, windows: int, window_ms: int, max_mute_ms: int) -> None:
        """Set the pace: Kafka's windows and ``max.mute``, in ms. With ``window_ms`` 0 every step is taken at once."""
        self._kafka_ms = (windows + 1) * window_ms
        self._empty_ms, self._full_ms = _looks_back_ms(windows, window_ms)
        # The share of the factor with which a limit begins, where the windows are empty. Kafka divides by that many
        # windows at the end of a client's first one, so it gets in its first second what its quota gives in a second. A
        # smaller one would mute those who send large batches for longer: Kafka mutes for excess / limit x window.
        self._least = 1.0 / windows
        self._step_share = self._kafka_ms / (self._kafka_ms + max_mute_ms)

    def step(self, factor: float, held: bool, now_ms: int) -> bool:
        """Move as far towards a factor (0..1) as is allowed now (monotonic); whether the value has changed.

        ``held``: a fence turns back what the limits would slow. The mean then counts 0, since nothing is recorded; for
        those who pass the fence the value goes no lower than where it begins after the release.
        """
        self._remember(self._counted(factor, held, now_ms), now_ms)
        least = min(self.value, self._least) if held else self._least * factor
        # How full a client's windows are isn't known here: the larger mean delays nobody for what it hasn't sent.
        target = max(self._mean(self._full_ms, now_ms), self._mean(self._empty_ms, now_ms), least)
        value = max(target, min(self.value, self._lowest(now_ms)))
        settled = value == target and (value == self._factor or not self._factors)
        if value == self.value or not (settled or abs(value - self.value) >= STEP * self.value):
            return False
        while self._past and self._past[-1][0] <= self.value:
            self._past.pop()
        self._past.append((self.value, now_ms))
        self.value = value
        return True

    def _counted(self, factor: float, held: bool, now_ms: int) -> float:
        if self._held and not held:
            self._clients_wait_until_ms = now_ms + min(RETRY_MS, now_ms - self._held_since_ms)
        if held and not self._held:
            self._held_since_ms = now_ms
        self._held = held
        return 0.0 if held or now_ms < self._clients_wait_until_ms else factor

    def _remember(self, factor: float, now_ms: int) -> None:
        if factor != self._factor:
            self._factors.append((self._factor, now_ms))
            self._factor = factor
        while self._factors and (now_ms - self._factors[0][1] >= self._full_ms or len(self._factors) > MOST):
            self._factors.popleft()

    def _mean(self, span_ms: int, now_ms: int) -> float:
        begin, total = now_ms - span_ms, 0.0
        if not self._factors or self._factors[-1][1] <= begin:
            return self._factor
        for factor, left in self._factors:
            if left > begin:
                total += factor * (left - begin)
                begin = left
        return (total + self._factor * (now_ms - begin)) / span_ms

    def _lowest(self, now_ms: int) -> float:
        """The lowest value that mutes nobody for longer than ``max.mute`` (``tests/throttling/test_tap.py``)."""
        while self._past and now_ms - self._past[0][1] >= self._kafka_ms:
            self._past.popleft()
        highest = max(self.value, self._past[0][0]) if self._past else self.value
        lowest = highest * self._step_share
        return 0.0 if lowest < NEGLIGIBLE else lowest
