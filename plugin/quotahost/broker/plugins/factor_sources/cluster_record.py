"""What follows for one broker from the pipeline's record of the cluster: the volumes that matter, and what it lacks.

The record is the same for all brokers. This broker knows better which brokers are registered and fenced (``liveness``
has the rule), which disks are its own, and for how long something has been unknown. The factor source
``cluster-volumes`` asks at each read, on the host thread.
"""

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping

from quotahost.base.background import Clock
from quotahost.broker.plugins.factor_sources.liveness import UNLISTED, ExpectedBrokers, Heard, View
from quotahost.model import Volume
from quotahost.records.cluster_volumes import ClusterRecord
from quotahost.settings.broker import Settings


class ClusterState:
    """Holds which brokers are registered, since when each gap has been there, and the volumes without any gap.

    Brokers that aren't registered are ignored, and so is how many entries a truncated list of the record omits.
    """

    def __init__(self, node: str, clock: Clock) -> None:
        self._node, self._clock = node, clock
        self._expected = ExpectedBrokers(clock)
        self._since: dict[str, float] = {}  # when a silent broker was first missed
        self._hidden_since: float | None = None
        self._complete: tuple[Volume, ...] = ()  # the volumes of the last complete view

    def register(self, brokers: Mapping[str, bool]) -> None:
        self._expected.register(brokers)

    def view(self, record: ClusterRecord | None, settings: Settings) -> View:
        if record is None:
            return View()
        registered = self._expected.brokers
        if registered is None:
            # Who is missing is not known yet; a volume that is known must not wait for that.
            return View([v for v in record.volumes if v.broker != self._node], waiting=UNLISTED, complete=False)
        others = registered.keys() - {self._node}
        # The brokers without a fresh snapshot that the record names; None for one that has none. It lists the volumes
        # of a silent broker for as long as the broker is registered, but not for ever its name.
        stale = (*record.stale_brokers, *(trend.volume.broker for trend in record.silent))
        silent: dict[str, bool | None] = {**dict.fromkeys(record.missing_brokers), **dict.fromkeys(stale, False)}
        # Who is no longer silent is forgotten, and waited for again later.
        now = self._clock()
        self._since = {broker: self._since.get(broker, now) for broker in silent.keys() & registered.keys()}
        view = self._expected.view(self._heard(record, silent, others), settings, "its newest snapshot is stale")
        view.volumes[:0] = _volumes(record, others)
        self._add_hidden(view, record, silent, settings)
        if view.complete:
            self._complete = tuple(view.volumes)
        else:
            # A new pipeline has not read all snapshots yet: full disks of the brokers that it lacks must not be
            # forgotten.
            listed = {(volume.broker, volume.name) for volume in view.volumes}
            view.volumes += [v for v in self._complete if (v.broker, v.name) not in listed]
        return view

    def _heard(self, record: ClusterRecord, silent: Mapping[str, bool | None], others: set[str]) -> Iterator[Heard]:
        """What the record says of other brokers: it names no healthy one but for its directories."""
        last: dict[str, list[Volume]] = defaultdict(list)
        for trend in record.silent:
            last[trend.volume.broker].append(trend.volume)
        for broker in (broker for broker in silent if broker in others):
            yield Heard(broker, silent[broker], tuple(last[broker]), since=self._since[broker])
        for lost in record.offline_dirs:
            if lost.broker in others:
                # Not awaited: a directory is listed only because its broker has reported it as offline.
                yield Heard(lost.broker, True, offline=(lost.log_dir,))

    def _add_hidden(self, view: View, record: ClusterRecord, silent: Container[str], settings: Settings) -> None:
        """Add the brokers that are in service, and of which the record says nothing: it names no healthy broker.

        So its size doesn't grow with the cluster, and only numbers can be compared. Brokers that aren't in service are
        in none of them, so that none can stand for one that should report.
        """
        in_service, now = self._expected.in_service_since, self._clock()
        hidden = len(in_service) - record.reporting - sum(broker in silent for broker in in_service)
        if hidden <= 0:
            self._hidden_since = None
            return
        self._hidden_since = now if self._hidden_since is None else self._hidden_since
        view.missing += hidden
        if now - self._hidden_since <= settings.startup_grace.total_seconds():
            view.complete = False
        else:
            view.unknown.append(f"{hidden} brokers run, of which the pipeline has no snapshot")


def _volumes(record: ClusterRecord, others: set[str]) -> Iterator[Volume]:
    listed = record.volumes
    whole = len({(volume.broker, volume.name) for volume in listed}) >= record.volume_count
    # In a truncated list a volume of this broker or a stranger stays: it may have taken the place of others that
    # are not fuller, and so it stands for them.
    return (volume for volume in listed if not whole or volume.broker in others)
