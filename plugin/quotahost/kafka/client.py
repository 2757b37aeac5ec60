"""How a client of quotahost connects to the cluster, and how it shows whether it is connected.

Plugins connect as ``Broker.client_config`` says, all by one :class:`Login`; :class:`Connection` is the metric of each.
Commands connect as an operator's file says. :func:`reach` waits for the first answer and, if there is none, says in a
sentence why not: librdkafka itself says only that it timed out; why each try failed it tells by its error callback.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from quotahost.api import Context
from quotahost.background import Clock, LoggedOnce
from quotahost.errors import QuotahostError

_PLUGINS: Final = {
    "log_level": 0,  # librdkafka would write to the broker's stderr at each try while the broker starts
    # A broker that is back is found within about a second; by librdkafka's defaults within up to 10 s. The first pause
    # is also the only one after each failed TLS handshake, which the broker logs: 36 a second with 50 ms, 8 with this.
    "reconnect.backoff.ms": 250,
    "reconnect.backoff.max.ms": 1000,
    "allow.auto.create.topics": False,  # the broker would create our topics without compaction
}


class Connection:
    """Shows as a metric whether a plugin's client reaches the cluster, and logs when that changes.

    Before the first success nothing is logged for ``startup.grace``: the broker's own listener may not be open yet.
    """

    def __init__(self, context: Context[object], name: str = "", clock: Clock = time.monotonic) -> None:
        """Not connected yet. ``name`` tells the clients of a plugin apart that has several; else it is the plugin's."""
        self._context, self._name = context, name or context.name
        self._clock, self._began = clock, clock()
        self._fault = LoggedOnce(context.log)
        self._connected: bool | None = None  # None until the first success
        _open[self._name].append(self)
        self._show()

    @property
    def ever(self) -> bool:
        return self._connected is not None

    @property
    def starting(self) -> bool:
        """Whether ``startup.grace`` has not passed yet."""
        return self._clock() - self._began < self._context.settings.startup_grace.total_seconds()

    def answers(self) -> None:
        """The cluster answers this client, which may wait for what it is to read."""
        if self._fault.healed():
            self._context.log.warning("connected again")

    def works(self) -> None:
        self.answers()
        if not self._connected:
            self._connected = True
            self._show()

    def fails(self, error: object) -> bool:
        """The client can read or write nothing; ``error`` goes to the log and must contain no secret.

        Returns whether that is a fault, and not just the broker's start.
        """
        if self._connected is None and self.starting:
            return False
        # Each time, since a connection that comes and goes is logged once a minute only.
        self._fault.report("not connected: %s", error)
        if self._connected:
            self._connected = False
            self._show()
        return True

    def close(self) -> None:
        """Leave no metric behind."""
        same = _open[self._name] = [each for each in _open[self._name] if each is not self]
        if same:
            same[-1]._show()
        else:
            self._context.metrics.forget("Connection", self._name)

    def _show(self) -> None:
        if _open[self._name][-1:] == [self]:
            self._context.metrics.gauge("Connection", self._name, "Connected", float(bool(self._connected)))


#: By name, in the order in which they were made: the last one shows its state. A live change builds a plugin before it
#: closes the one in whose place that comes, or the new one if the change is not applied.
_open: defaultdict[str, list[Connection]] = defaultdict(list)


#: Names with an underscore are librdkafka's own errors, the others are answers of a broker.
ABSENT: Final = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
DENIED: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}  # fmt: skip
#: Seconds until who is denied tries again: the broker's authorizer logs each try.
DENIED_REST: Final = 5.0


def partitions(client: AdminClient | Consumer, topic: str, wait: float) -> list[int]:
    """The numbers of a topic's partitions. Raises KafkaException without the topic, or an answer in ``wait`` s."""
    metadata = client.list_topics(topic, timeout=wait).topics[topic]
    if metadata.error is not None:  # librdkafka reports an absent topic so, and raises nothing
        raise KafkaException(metadata.error)
    return list(metadata.partitions)


def answer(future: Any, wait: float) -> Any:
    """What a request of an AdminClient has brought. Raises KafkaException, or TimeoutError after ``wait`` s."""
    try:
        return future.result(wait)
    except KafkaException as failure:
        # confluent_kafka's futures and this error keep each other, and by its traceback our frames and their client,
        # which would go on to log in until the garbage is collected.
        raise KafkaException(*failure.with_traceback(None).args) from None


# ---- the first answer ----

_ASKING: Final = {"log_level": 0, "socket.connection.setup.timeout.ms": 5000}
_MOMENT: Final = 3.0  # seconds, in which a broker that is there answers even when it is busy
#: The first reason that a try gave wins; its words say what to mend.
_WORDS: Final = {
    KafkaError._AUTHENTICATION: "it refuses the user, the password or the mechanism",
    KafkaError._SSL: "TLS fails: either its listener has no TLS, or a certificate is not trusted or has expired",
    KafkaError._RESOLVE: "its name can't be resolved",
}
#: By TLS 1.3 a broker judges a client's certificate after the client has ended its handshake; what is received then is
#: an alert.
_ALERT: Final = "SSL alert number"
#: librdkafka has no code of its own for these; they stand in its texts.
_TEXTS: Final = {
    "SSL_HANDSHAKE": _WORDS[KafkaError._SSL],
    _ALERT: _WORDS[KafkaError._SSL],
    "Connection refused": "nobody listens there",
}
#: Of a connection that was made and then closed without a word librdkafka tells nothing but that all brokers are down.
_CLOSED: Final = "it closes the connection: its listener asks for another security.protocol or sasl.mechanism"


class NoAnswer(QuotahostError):
    """The cluster doesn't answer this client, or refuses it: then ``refused`` tells that it was the login."""

    def __init__(self, text: str, *, refused: bool = False) -> None:
        super().__init__(text)
        self.refused = refused


def reach(config: Mapping[str, Any], wait: float, topic: str | None = None, moment: float = _MOMENT) -> AdminClient:
    """A client that has had its first answer within ``wait`` seconds; else NoAnswer, which shows no secret.

    The answer is about one topic, or about all. After a ``moment`` it is enough to know why none comes.
    """
    errors: list[KafkaError] = []
    options: dict[str, Any] = {**_ASKING, **config, "error_cb": errors.append}
    try:
        admin = AdminClient(options)
    except (KafkaException, TypeError, ValueError) as failure:
        reason = failure.args[0] if failure.args else failure
        raise NoAnswer(str(reason.str() if isinstance(reason, KafkaError) else reason)) from None
    for seconds in (min(moment, wait), wait):
        try:
            admin.list_topics(topic, timeout=seconds)
            break
        except KafkaException as failure:
            admin.poll(0)
            if seconds == wait or why(errors):
                refused = any(map(_refuses, errors))
                raise NoAnswer(why(errors) or str(failure.args[0].str()), refused=refused) from None
    return admin


def _refuses(error: KafkaError) -> bool:
    """Whether a broker refuses a login by this: for its password, or for its certificate."""
    return error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL) or _ALERT in error.str()


def why(errors: Sequence[KafkaError]) -> str:
    """What kept a client from connecting, in words; "" if none of these errors is known."""
    texts = " ".join(str(error.str()) for error in errors)
    known = [_WORDS[error.code()] for error in errors if error.code() in _WORDS]
    known += [words for text, words in _TEXTS.items() if text in texts]
    known += [_CLOSED for error in errors if error.code() == KafkaError._ALL_BROKERS_DOWN]
    return known[0] if known else ""


# ---- the plugins' login ----

_LONGEST_REST: Final = 10.0  # seconds
_SOON: Final = 0.5  # seconds, after which it is known of most clusters that they refuse a login
#: librdkafka tries a broker once in that time: its pauses are longer, of which only the first counts after TLS failed.
_ONE_TRY: Final = {"reconnect.backoff.ms": 60_000, "reconnect.backoff.max.ms": 60_000}


class Login:
    """The login of one configuration, for all clients of this process that have it. Any thread may call.

    A broker logs each login that it refuses. So no plugin makes a client before the cluster has answered one that all
    share (``admin``); while the login is refused that one tries alone, after pauses of up to 10 s, and clients that
    were connected before leave (``stands``).
    """

    def __init__(self, config: dict[str, Any]) -> None:
        """Nothing is connected yet. ``config`` is librdkafka's, with secrets."""
        self._given = config
        self._lock = threading.Lock()
        self._admin: AdminClient | None = None
        self._refused = False  # for some client by one broker, at some time; others may let it in
        self._all_down = False  # likewise; librdkafka says it once, until a broker is up again
        self._rest, self._again_at = 0.0, 0.0  # seconds
        self._why = ""

    @property
    def config(self) -> dict[str, Any]:
        """That of the clients. It keeps this login, which so ends with the last of them and must not keep it."""
        return {**self._given, "error_cb": self._hear}

    def admin(self, topic: str) -> AdminClient:
        """A client, after an answer about this topic. Raises NoAnswer; at once before the next try is due."""
        with self._lock:
            if self._admin is None:
                self._admin = self._reach(topic)
            return self._admin

    def stands(self, admin: AdminClient | None) -> bool:
        """Whether the login was not refused since ``admin`` returned this client."""
        return self._admin is admin

    def _reach(self, topic: str) -> AdminClient:
        if time.monotonic() < self._again_at:
            raise NoAnswer(self._why)
        try:
            reach({**self._given, **(_ONE_TRY if self._rest else {})}, _MOMENT, topic, _SOON)
        except NoAnswer as problem:
            # Whoever waits for an answer meanwhile gets this one, too.
            self._why = str(problem)
            if problem.refused:
                self._rest = min(max(1.0, 2 * self._rest), _LONGEST_REST)
            self._again_at = time.monotonic() + (self._rest if problem.refused else _SOON)
            raise
        self._rest, self._refused, self._all_down = 0.0, False, False
        # Another one: librdkafka goes on to ask for a topic that was absent or denied, twice a second.
        return AdminClient(self._given)

    def _hear(self, error: KafkaError) -> None:
        """A client's error, on the thread that polls it."""
        self._refused |= _refuses(error)
        self._all_down |= error.code() == KafkaError._ALL_BROKERS_DOWN
        if self._refused and self._all_down:
            # Whether it is refused, or the cluster is gone, the next try tells.
            self._admin, self._refused, self._all_down = None, False, False


#: By configuration, as long as a plugin needs it.
_logins: WeakValueDictionary[frozenset[tuple[str, Any]], Login] = WeakValueDictionary()
_making: Final = threading.Lock()  # followers start at the same moment


def login(context: Context[object]) -> Login:
    """How plugins connect now; the operator's ``kafka.*`` override quotahost's own options."""
    config = {**_PLUGINS, **context.broker.client_config()}
    with _making:
        return _logins.setdefault(frozenset(config.items()), Login(config))
