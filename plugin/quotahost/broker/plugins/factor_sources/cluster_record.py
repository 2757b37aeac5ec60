"""What one broker makes of the pipeline's record of the cluster: reads or refuses it, and finds out what it lacks.

1. ``RecordReader`` follows the topic of the clusters' volumes on a thread of its own and keeps the newest record of
   this broker's cluster. The pipeline writes one record for each cluster, with the cluster's id as its key.
2. ``ClusterState`` turns that record into a ``View``: the volumes that matter to this broker, and what is unknown. The
   record is the same for all brokers. This broker knows better which brokers are registered and fenced (``liveness``
   has the rule), which disks are its own, and for how long something has been unknown.

The factor source ``cluster-volumes`` asks both at each read, on the host thread.
"""

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from typing import Final

from quotahost.api import Context
from quotahost.base.background import Clock
from quotahost.broker.plugins.factor_sources.liveness import ExpectedBrokers, Heard, View
from quotahost.kafka.follower import Follower
from quotahost.kafka.latest_record import LatestRecord
from quotahost.model import Volume
from quotahost.records.cluster_volumes import ClusterRecord, decode
from quotahost.records.codec import Refused
from quotahost.settings.broker import Settings

_SILENCE: Final = 30.0  # seconds without any record after which the topic is read again; one is due every few seconds
#: What to say of a record that ``LatestRecord`` refuses, by the reason; ``%d`` is its run.
_REFUSED: Final = {
    "other-pipeline": "two pipelines run for this cluster: those of run %d are refused, those of a newer run are taken",
    "ahead": "records of run %d are refused: a run is a time of launch in ms, and that one is still to come",
    "late": "a newer one of run %d was there before",
}


class RecordReader:
    """Reads the whole topic at the start and then follows it; records of other clusters are passed over."""

    def __init__(self, context: Context[object], clock: Clock, wall: Clock) -> None:
        self._context = context
        self._newest: LatestRecord[ClusterRecord] = LatestRecord(clock, wall)
        self._key = b""
        self._follower: Follower | None = None
        self.topic_read = False  # whether all that was in the topic has been read, or the topic doesn't exist

    def follow(self, cluster_id: str) -> None:
        if self._follower is None and cluster_id:
            self._key = cluster_id.encode()
            self._follower = Follower(self._context, self._topic, self.record, _SILENCE, self.caught_up, self.absent)

    def known(self) -> tuple[ClusterRecord | None, float]:
        return self._newest.known()

    def waits_for(self) -> str:
        """A sentence about what is still missing before the reader knows a record, "" if nothing is."""
        if self._follower is None:
            return "the cluster's id is not read from the log directories yet"
        if not self.topic_read:
            return f"topic {self._topic} is not read yet{self._follower.fault}"
        return "" if self._newest.known()[0] else f"topic {self._topic} holds no record of this cluster yet"

    # ---- the follower's thread ----

    def record(self, key: bytes | None, value: bytes | None, live: bool, written_ms: int | None = None) -> None:
        if key != self._key:
            return
        if value is None:
            self._newest.remove()
            return
        record, validity = decode(key, value), self._context.settings.validity.total_seconds()
        # A pipeline that has lost its place reads all snapshots again, and meanwhile publishes how the disks once were.
        # Judged before LatestRecord sees it: kept, it would count as fresh by its arrival.
        newest = record.newest_snapshot_at if record.reporting else None
        if newest is None or (record.computed_at - newest).total_seconds() <= validity:
            if reason := self._newest.take(record, live, validity, written_ms):
                raise Refused(reason, _REFUSED[reason] % record.run)
        elif live:
            text = f"the pipeline is behind: the newest snapshot in its records is older than validity ({validity:g} s)"
            raise Refused("behind", text)

    def caught_up(self) -> None:
        if not self.topic_read:
            self._context.log.info("topic %s is read", self._topic)
        self.topic_read = True

    def absent(self) -> None:
        # Nothing can be read, so the standby needn't wait for it.
        self.topic_read = True

    @property
    def _topic(self) -> str:
        return self._context.settings.cluster_volumes_topic


class ClusterState:
    """Holds which brokers are registered, since when each gap has been there, and the last complete view.

    Brokers that aren't registered are ignored, and so is how many entries a truncated list of the record omits.
    """

    def __init__(self, node: str, clock: Clock) -> None:
        self._node, self._clock = node, clock
        self._expected = ExpectedBrokers(clock)
        self._since: dict[str, float] = {}  # when a silent broker was first missed
        self._hidden_since: float | None = None
        self._complete = View()

    def register(self, brokers: Mapping[str, bool]) -> None:
        self._expected.register(brokers)

    def view(self, record: ClusterRecord | None, settings: Settings) -> View:
        if record is None:
            return View()
        registered = self._expected.brokers
        if registered is None:
            # Who is missing is not known yet; a volume that is known must not wait for that.
            return View(tuple(v for v in record.volumes if v.broker != self._node), complete=False)
        others = registered.keys() - {self._node}
        # The brokers without a fresh snapshot that the record names; None for one that has none. It lists the volumes
        # of a silent broker for as long as the broker is registered, but not for ever its name.
        stale = (*record.stale_brokers, *(trend.volume.broker for trend in record.silent))
        silent: dict[str, bool | None] = {**dict.fromkeys(record.missing_brokers), **dict.fromkeys(stale, False)}
        # Who is no longer silent is forgotten, and waited for again later.
        now = self._clock()
        self._since = {broker: self._since.get(broker, now) for broker in silent.keys() & registered.keys()}
        view = self._expected.view(self._heard(record, silent, others), settings, "its newest snapshot is stale")
        view = replace(view, volumes=(*_volumes(record, others), *view.volumes))
        return self._completed(self._with_hidden(view, record, silent, settings))

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

    def _with_hidden(self, view: View, record: ClusterRecord, silent: Container[str], settings: Settings) -> View:
        """With the brokers that are in service, and of which the record says nothing: it names no healthy broker.

        So its size doesn't grow with the cluster, and only numbers can be compared. Brokers that aren't in service are
        in none of them, so that none can stand for one that should report.
        """
        in_service = self._expected.in_service_since
        hidden = len(in_service) - record.reporting - sum(broker in silent for broker in in_service)
        if hidden <= 0:
            self._hidden_since = None
            return view
        now, missing = self._clock(), view.missing + hidden
        self._hidden_since = now if self._hidden_since is None else self._hidden_since
        if now - self._hidden_since <= settings.startup_grace.total_seconds():
            return replace(view, missing=missing, complete=False)
        text = f"{hidden} brokers run, of which the pipeline has no snapshot"
        return replace(view, missing=missing, unknown=(*view.unknown, text))

    def _completed(self, view: View) -> View:
        """While brokers are left out of which a snapshot is still awaited, their last volumes hold."""
        if view.complete:
            self._complete = view
            return view
        # A new pipeline has not read all snapshots yet: full disks of the brokers that it lacks must not be forgotten.
        listed = {(volume.broker, volume.name) for volume in view.volumes}
        last = (v for v in self._complete.volumes if (v.broker, v.name) not in listed)
        return replace(view, volumes=(*view.volumes, *last))


def _volumes(record: ClusterRecord, others: set[str]) -> Iterator[Volume]:
    listed = record.volumes
    whole = len({(volume.broker, volume.name) for volume in listed}) >= record.volume_count
    # In a truncated list a volume of this broker or a stranger stays: it may have taken the place of others that
    # are not fuller, and so it stands for them.
    return (volume for volume in listed if not whole or volume.broker in others)
