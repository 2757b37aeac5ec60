"""The tap makes limits follow the factor over time, downwards and upwards.

Kafka doesn't compare a client's present rate with the limit, but the mean over its windows. If a limit followed the
factor immediately, Kafka would mute the client until the mean fits; or, if the windows are empty, as after a PAUSE, the
client could send a whole window's bytes at once. So the tap follows the mean of the factor over about the time that
Kafka looks back: then a client at its limit sends the quota times the present factor. docs/adr/0017-a-tap-not-a-ramp.md
has the figures. ``Tap.java`` is the same in the broker; tests/throttling/test_tap.py compares the two bit by bit, so
both must do their operations in the same order.
"""

from collections import deque
from typing import Final

#: Below this value the limits of all quotas except absurdly high ones are at the floor, so the tap goes to 0 directly.
NEGLIGIBLE: Final = 1e-5
#: The smallest step, as a share of the value, because each step makes Kafka scan all its sensors.
STEP: Final = 0.02
#: The delay of the rise after a held PAUSE, in ms: clients that were turned back wait before each retry, longer each
#: time, up to a second (``retry.backoff.max.ms`` of librdkafka and Java).
RETRY_MS: Final = 750
#: The most changes of the factor in the mean; if there are more, the time of the oldest factor counts for the next.
MOST: Final = 512


def lowered(whole: float, factor: float, floor: float) -> float:
    """A rate after a factor of 0 to 1, which never lowers the rate below the floor (``org.quotahost.table.Rule``)."""
    return max(min(whole, floor), whole * factor)


def _looks_back_ms(windows: int, window_ms: int) -> tuple[int, int]:
    """The mean time in ms over which Kafka measures: if the windows were empty, and if they are full.

    With empty windows, ``Rate.windowSize`` is windows - 1 to windows of them. A full oldest window counts whole.
    """
    return windows * window_ms - window_ms // 2, windows * window_ms + window_ms // 2


def rise(since_ms: int, windows: int, window_ms: int) -> float:
    """The share of its limit (0..1) that a client gets ``since_ms`` ms after it began with empty windows."""
    time, _ = _looks_back_ms(windows, window_ms)
    return 1.0 if since_ms >= time else max(1.0 / windows, since_ms / time)


class Tap:
    """The tap's ``value`` multiplies quotas and moves towards the factor. It begins as after a long factor of 1."""

    def __init__(self, windows: int = 11, window_ms: int = 1000, max_mute_ms: int = 30_000) -> None:
        """The arguments are those of ``configure``."""
        self.value = 1.0
        self._held, self._held_since_ms, self._clients_wait_until_ms = False, 0, -(2**63)
        self._factor = 1.0  # the present factor in the mean
        # Both deques have pairs of a number and the time (ms) when it ended, the oldest first: the factors that still
        # count in the mean, and the tap's higher values in the time that Kafka looks back (the first is the highest).
        self._factors: deque[tuple[float, int]] = deque()
        self._past: deque[tuple[float, int]] = deque()
        self.configure(windows, window_ms, max_mute_ms)

    def configure(self, windows: int, window_ms: int, max_mute_ms: int) -> None:
        """Set the pace by Kafka's windows and ``max.mute``, in ms. If ``window_ms`` is 0, the tap moves immediately."""
        self._kafka_ms = (windows + 1) * window_ms
        self._empty_ms, self._full_ms = _looks_back_ms(windows, window_ms)
        # The share of the factor at which a limit begins if the windows are empty. At the end of the first window Kafka
        # divides by all ``windows``, so in its first second the client gets its quota for one second. A smaller share
        # would mute clients with large batches for longer: Kafka mutes for excess / limit x window.
        self._least = 1.0 / windows
        self._step_share = self._kafka_ms / (self._kafka_ms + max_mute_ms)

    def step(self, factor: float, held: bool, now_ms: int) -> bool:
        """Move towards a factor (0..1) as far as allowed at ``now_ms`` (monotonic). Return True if the value changes.

        ``held``: a fence turns back the requests that the limits would slow. The mean then counts 0, because Kafka
        records nothing. For clients that pass the fence, the value doesn't fall below 1 / windows, where the rise after
        the release begins.
        """
        self._remember(self._counted(factor, held, now_ms), now_ms)
        least = min(self.value, self._least) if held else self._least * factor
        # The tap doesn't know how full a client's windows are. The larger mean delays no client for unsent bytes.
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
        """The lowest value that mutes no client for longer than ``max.mute`` (``tests/throttling/test_tap.py``)."""
        while self._past and now_ms - self._past[0][1] >= self._kafka_ms:
            self._past.popleft()
        highest = max(self.value, self._past[0][0]) if self._past else self.value
        lowest = highest * self._step_share
        return 0.0 if lowest < NEGLIGIBLE else lowest
