"""How quotahost's clients log in and connect, why they can't, in a sentence, when they try again; the metric of each.

Plugins connect as ``Broker.client_config`` says, all by one :class:`Login`; :class:`Connection` is the metric of each.
Commands connect as an operator's file says. :func:`connect` waits for the first answer and, if there is none, says in a
sentence why not: librdkafka itself says only that it timed out; why each try failed it tells by its error callback.
"""

import math
import re
import threading
import time
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from quotahost.api import Context
from quotahost.base.background import Clock, LoggedOnce
from quotahost.base.errors import QuotahostError
from quotahost.kafka.listeners import no_login
from quotahost.records.topics import GROUPS

_PLUGINS: Final = {
    "log_level": 0,  # librdkafka would write to the broker's stderr at each try while the broker starts
    # A broker that is back is found within about a second; by librdkafka's defaults within up to 10 s. The first pause
    # is also the only one after each failed TLS handshake, which the broker logs: 36 a second with 50 ms, 8 with this.
    "reconnect.backoff.ms": 250,
    "reconnect.backoff.max.ms": 1000,
    # As Java's client. In a network that swallows packets a connection is tried again ever more rarely; by librdkafka's
    # default of 30 s one that is back would be noticed after up to 15 s.
    "socket.connection.setup.timeout.ms": 10_000,
    "allow.auto.create.topics": False,  # the broker would create our topics without compaction
}

Admin: TypeAlias = AdminClient


class Connection:
    """Shows as a metric whether a plugin's client reaches the cluster, each time it knows, and logs when that changes.

    Before the first success nothing is logged for ``startup.grace``: the broker's own listener may not be open yet.
    """

    def __init__(self, context: Context[object], name: str = "", clock: Clock = time.monotonic) -> None:
        """Not connected yet. ``name`` tells the clients of a plugin apart that has several; else it is the plugin's."""
        self._context, self._name = context, name or context.name
        self._clock, self._began = clock, clock()
        self._fault = LoggedOnce(context.log)
        self.ever = False  # whether it has worked
        self.fault = ""  # the end of a sentence that says what the client waits for
        self._show(0.0)

    @property
    def starting(self) -> bool:
        """Whether ``startup.grace`` has not passed yet."""
        return self._clock() - self._began < self._context.settings.startup_grace.total_seconds()

    def answers(self) -> None:
        """The cluster answers this client, which may wait for what it is to read."""
        self.fault = ""
        if self._fault.healed():
            self._context.log.warning("connected again")

    def works(self) -> None:
        self.answers()
        self.ever = True
        self._show(1.0)

    def fails(self, error: object) -> bool:
        """The client can read or write nothing; ``error`` goes to the log and must contain no secret.

        Returns whether that is a fault, and not just the broker's start.
        """
        if not self.ever and self.starting:
            return False
        why = error.str() if isinstance(error, KafkaError) else error
        self.fault = f" (not connected: {why})"
        # Each time, since a connection that comes and goes is logged once a minute only.
        self._fault.report("not connected: %s", why)
        self._show(0.0)
        return True

    def close(self) -> None:
        """Leave no metric behind; after a live change the plugin that stays shows its own again within seconds."""
        self._context.metrics.forget("Connection", self._name)

    def _show(self, connected: float) -> None:
        self._context.metrics.gauge("Connection", self._name, "Connected", connected)


#: Names with an underscore are librdkafka's own errors, the others are answers of a broker.
ABSENT: Final = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
DENIED: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}  # fmt: skip
#: As kafka-acls.sh takes them: whoever reads by a consumer needs Describe there.
OF_GROUPS: Final = f"--resource-pattern-type prefixed --group {GROUPS}"
#: Seconds until who is denied, or misses a topic, tries again: a broker logs each try, or it is a login.
SELDOM: Final = 5.0


def no_right(right: str, of: str, config: Mapping[str, Any]) -> tuple[str, str]:
    """Who lacks a right, named as in ACLs, and by what command of Kafka's it is given.

    ``of`` is the resource as that command takes it: ``--topic NAME``. ``config`` is how the client connects.
    """
    to, what = "docs/security.md", of.rpartition("--")[2]
    if str(config.get("security.protocol", "PLAINTEXT")).upper() == "PLAINTEXT":
        return f"User:ANONYMOUS may not {right} {what}", f"log in, by --client-config or a broker's kafka.* ({to})"
    # What a certificate's name becomes only the broker knows.
    name = quote(f"User:{config.get('sasl.username', 'NAME')}")
    command = f"kafka-acls.sh --add --allow-principal {name} --operation {right} {of}"
    return f"{name} may not {right} {what}", f"{command} ({to})"


def lacked(error: KafkaError, right: str, topic: str, config: Mapping[str, Any]) -> tuple[str, str] | None:
    """:func:`no_right`, if the error is that; ``right`` is the one that the use of the topic needs."""
    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return no_right("Describe", OF_GROUPS, config)
    return no_right(right, f"--topic {topic}", config) if error.code() in DENIED else None


def partitions(client: AdminClient | Consumer, topic: str, wait: float) -> list[int]:
    """The numbers of a topic's partitions. Raises KafkaException without the topic, or an answer in ``wait`` s."""
    metadata = client.list_topics(topic, timeout=wait).topics[topic]
    if metadata.error is not None:  # librdkafka reports an absent topic so, and raises nothing
        raise KafkaException(metadata.error)
    return list(metadata.partitions)


def consumer(config: Mapping[str, Any], group: str, reset: str = "error") -> Consumer:
    """A client to which partitions are assigned. It joins no group, whose name librdkafka demands, and commits nothing.

    ``config`` is how it connects, ``reset`` what becomes of a place that is lost: an error is reported, where after a
    silent reset a part would pass for all, or old records for new.
    """
    return Consumer({
        **config,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": reset,
        # The only sign that all has been read: compaction leaves gaps between the offsets.
        "enable.partition.eof": True,
        # An open transaction, of whomever, would hide all records after its first one. Nobody here writes in
        # transactions, so what is aborted is a stranger's.
        "isolation.level": "read_uncommitted",
    })  # fmt: skip


def answer(future: Any, wait: float) -> Any:
    """What a request of an AdminClient has brought. Raises KafkaException, also after ``wait`` s (_TIMED_OUT)."""
    try:
        return future.result(wait)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None
    except KafkaException as failure:
        # confluent_kafka's futures and this error keep each other, and by its traceback our frames and their client,
        # which would go on to log in until the garbage is collected.
        raise KafkaException(*failure.with_traceback(None).args) from None


# ---- the first answer ----

#: librdkafka quotes what it can't use: maybe a password that stands in a wrong line.
_QUOTED: Final = re.compile('(?<=Invalid value) ".*"(?= for )|(?<=mechanisms"): .*|(?<=mechanism): .*', re.DOTALL)
#: Of a name with several addresses each is tried in turn: by librdkafka's defaults it is looked up anew after each
#: failure, and any of its addresses is taken. A command waits long enough for two tries, each of 4 s.
ASKING: Final = {
    "log_level": 0, "socket.connection.setup.timeout.ms": 4000, "broker.address.ttl": 60_000,
    "metadata.recovery.strategy": "none",
}  # fmt: skip
_STEP: Final = 0.5  # seconds
_MOMENT: Final = 3.0  # seconds, in which a broker that is there answers even when it is busy
#: By TLS 1.3 a broker judges a client's certificate after the client has ended its handshake; what is received then is
#: an alert.
_ALERT: Final = "SSL alert number"
#: The first reason that a try gave wins, of that the first sign, which stands in librdkafka's text or is its code; the
#: words say what to mend. Why it doesn't trust a certificate librdkafka doesn't tell.
_WORDS: Final[Mapping[str | int, str]] = {
    "certificate verify failed": "TLS fails: its certificate is not trusted (ssl.ca.location; in the names of Java's "
    "client ssl.truststore.location), has expired, or is another host's (ssl.endpoint.identification.algorithm)",
    _ALERT: "TLS fails: it refuses this client's certificate or misses one (ssl.certificate.location and "
    "ssl.key.location; in the names of Java's client ssl.keystore.location), or takes other versions",
    "SSL_HANDSHAKE": "TLS fails: its listener has none (security.protocol)",
    KafkaError._SSL: "TLS fails",
    "OAUTHBEARER token": "no token comes from sasl.oauthbearer.token.endpoint.url: it doesn't answer, or refuses the "
    "client's id or secret",
    "current SASL state": "its listener has no SASL (security.protocol)",
    "supported mechanisms": "its listener has another sasl.mechanism",
    KafkaError._AUTHENTICATION: "it refuses the user, the password or the mechanism",
    KafkaError._RESOLVE: "its name can't be resolved",
    "Connection refused": "nobody listens there",
}
#: Of a connection that was made and then closed without a word librdkafka tells nothing but that all brokers are down.
_CLOSED: Final = "it closes the connection: its listener asks for another security.protocol or sasl.mechanism"
_SWALLOWED: Final = "nothing came back: see whether the broker hangs, or the network, or a firewall, swallows packets"


class NoAnswer(QuotahostError):
    """The cluster doesn't answer this client, or refuses it: ``refused`` tells that its login, or a right, was why."""

    def __init__(self, text: str, *, refused: bool = False) -> None:
        super().__init__(text)
        self.refused = refused

    @property
    def lets_others_in(self) -> bool:
        """Whether a broker is there, which turns this client away as one without the right login."""
        return self.refused or _CLOSED in str(self)


def connect(config: Mapping[str, Any], wait: float, topic: str | None = None, moment: float = _MOMENT) -> Admin:
    """A client that has had its first answer within ``wait`` seconds; else NoAnswer, which shows no secret.

    The answer is about one topic, or about all. After a ``moment`` it is enough to know why none comes.
    """
    if problem := no_login(config) or _no_address(config):
        raise NoAnswer(problem)
    errors: list[KafkaError] = []
    options: dict[str, Any] = {**ASKING, **config, "error_cb": errors.append}
    try:
        admin = AdminClient(options)
    except KafkaException as failure:
        text = failure.args[0].str()
        hint = "; is ssl.key.password right, and a key in the file?" if "ssl.key.location failed" in text else ""
        raise NoAnswer(_QUOTED.sub("", text) + hint) from None
    setup = int(options["socket.connection.setup.timeout.ms"]) / 1000
    # In steps, since a command hears Ctrl-C between them.
    began, passed, step, connected = time.monotonic(), 0.0, min(_STEP, moment), False
    while True:
        try:
            admin.list_topics(topic, timeout=min(step, wait - passed))
            return admin
        except KafkaException as failure:
            error = failure.args[0]
        passed = time.monotonic() - began
        admin.poll(0)
        connected = connected or error.code() != KafkaError._TRANSPORT
        # From then on brokers are down, too, to which no connection could be made in time.
        if passed > setup and not connected:
            errors[:] = [each for each in errors if each.code() != KafkaError._ALL_BROKERS_DOWN]
        if passed >= wait or (passed >= moment and why(errors)):
            silent = _SWALLOWED if error.code() == KafkaError._TRANSPORT else str(error.str())
            raise NoAnswer(why(errors) or silent, refused=any(map(_refuses, errors)))
        if connected:
            step = wait  # an answer may be on its way


def who_answers(client: Admin, wait: float) -> tuple[int, str] | None:
    """Id and address of a broker that answers, within ``wait`` s; None where a balancer hides it. Raises NoAnswer."""
    try:
        heard = client.list_topics(timeout=wait)
    except KafkaException as failure:
        raise NoAnswer(failure.args[0].str()) from None
    if (broker := heard.brokers.get(heard.orig_broker_id)) is None:
        return None
    host = str(broker.host)
    return broker.id, f"[{host}]:{broker.port}" if ":" in host else f"{host}:{broker.port}"


def _no_address(config: Mapping[str, Any]) -> str:
    """Why librdkafka would try none of the addresses, of which it tells nothing; "" if it tries them."""
    servers = str(config.get("bootstrap.servers", "unknown"))
    schemes = {address.strip().lower().partition("://")[0] for address in servers.split(",") if "://" in address}
    if schemes - {str(config.get("security.protocol", "plaintext")).lower()}:
        return "its address is HOST:PORT, with commas between several, and no URL; security.protocol says the rest"
    return "" if servers.strip(", ") else "no address is given"


def _refuses(error: KafkaError) -> bool:
    """Whether a broker refuses a login by this: for its password, or for its certificate."""
    return error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL) or _ALERT in error.str()


def why(errors: Sequence[KafkaError]) -> str:
    """What kept a client from connecting, in words; "" if none of these errors is known."""
    known = [
        words for error in errors for sign, words in _WORDS.items()
        if sign == error.code() or (isinstance(sign, str) and sign in error.str())
    ]  # fmt: skip
    known += [_CLOSED for error in errors if error.code() == KafkaError._ALL_BROKERS_DOWN]
    return known[0] if known else ""


# ---- the plugins' login ----

_LONGEST_REST: Final = 10.0  # seconds
_SOON: Final = 0.5  # seconds, after which it is known of most clusters that they refuse a login
#: Both are the same: only the first pause counts after TLS failed.
_CAREFUL: Final = {"reconnect.backoff.ms": 10_000, "reconnect.backoff.max.ms": 10_000}
_CAREFUL_FOR: Final = 60.0  # seconds


class Login:
    """The login of one configuration, for all clients of this process that have it. Any thread may call.

    A broker logs each login that it refuses. So:

    1. No plugin makes a client before the cluster has answered one that all share (``admin``). While the login is
       refused that one tries alone, after pauses of up to 10 s.
    2. A client that a broker refuses leaves, and another one comes (:class:`Session`). All others stay connected.
    3. Who comes within a minute after the last refusal is *careful*: other brokers may let it in, and it tries each
       every 10 s only. So it finds a broker that has restarted within 10 s, where others need 1 s. After the minute
       it leaves once more.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        """Nothing is connected yet. ``config`` is librdkafka's, with secrets."""
        self._given = config
        self._lock = threading.Lock()
        self._admin: AdminClient | None = None
        self._careful_until = -math.inf  # monotonic seconds, as is _again_at
        self._rest, self._again_at = 0.0, 0.0  # seconds
        self._why = ""

    def enter(self, topic: str) -> "Session":
        """How one client connects now, after an answer about its topic. Raises NoAnswer as ``admin``."""
        self.admin(topic)
        return Session(self, self.careful)

    def admin(self, topic: str) -> AdminClient:
        """A client, after an answer about this topic. Raises NoAnswer; at once before the next try is due."""
        with self._lock:
            if self._admin is None:
                self._admin = self._connect(topic)
            return self._admin

    @property
    def careful(self) -> bool:
        """Whether a broker has refused a client within the last minute."""
        return time.monotonic() < self._careful_until

    def config(self, *, careful: bool) -> dict[str, Any]:
        return {**self._given, **(_CAREFUL if careful else {})}

    def explained(self, error: KafkaError, right: str, topic: str) -> KafkaError:
        """The error; for want of a right, with words that say of which."""
        words = lacked(error, right, topic, self._given)
        return KafkaError(error.code(), "; ".join(words)) if words else error

    def refuses(self) -> None:
        """By a broker a client was refused just now."""
        self._careful_until = time.monotonic() + _CAREFUL_FOR

    def doubt(self) -> None:
        """A client leaves; whether the login is refused, or the cluster is gone, the next try tells."""
        self._admin = None

    def _connect(self, topic: str) -> AdminClient:
        if time.monotonic() < self._again_at:
            raise NoAnswer(self._why)
        try:
            connect(self.config(careful=self.careful or self._rest > 0), _MOMENT, topic, _SOON)
        except NoAnswer as problem:
            # Whoever waits for an answer meanwhile gets this one, too.
            self._why = str(problem)
            if problem.refused:
                self._rest = min(max(1.0, 2 * self._rest), _LONGEST_REST)
            self._again_at = time.monotonic() + (self._rest if problem.refused else _SOON)
            raise
        self._rest = 0.0
        # Another one: librdkafka goes on to ask for a topic that was absent or denied, twice a second.
        return AdminClient(self.config(careful=self.careful))


class Session:
    """How one client is connected by a login, and whether it must leave. Only its own thread may call."""

    def __init__(self, login: Login, careful: bool) -> None:
        self.refusal = ""  # why a broker refuses this client, in words
        self.login, self._careful = login, careful
        self._lost = False

    @property
    def config(self) -> dict[str, Any]:
        """The client's. It keeps this session, which so ends with its client and must not keep it."""
        return {**self.login.config(careful=self._careful), "error_cb": self._hear}

    def stands(self) -> bool:
        """Whether the client may stay, by what it has heard each time it was polled."""
        if self._careful and not self.login.careful:
            self._leave()
        return not self._lost

    @property
    def rest(self) -> float:
        """Seconds until the next client: that would at once try the broker which this one tries every 10 s."""
        return _LONGEST_REST if self.refusal and not self._lost else 0.0

    def _hear(self, error: KafkaError) -> None:
        refused = _refuses(error)
        if refused:
            self.refusal = why([error])
            self.login.refuses()
        # A careful one stays as long as some broker lets it in.
        if error.code() == KafkaError._ALL_BROKERS_DOWN if self._careful else refused:
            self._leave()

    def _leave(self) -> None:
        self._lost = True
        self.login.doubt()


#: By configuration, as long as a plugin needs it.
_logins: WeakValueDictionary[frozenset[tuple[str, Any]], Login] = WeakValueDictionary()
_making: Final = threading.Lock()  # followers start at the same moment


def login(context: Context[object]) -> Login:
    """How plugins connect now; the operator's ``kafka.*`` override quotahost's own options."""
    config = {**_PLUGINS, **context.broker.client_config()}
    with _making:
        return _logins.setdefault(frozenset(config.items()), Login(config))
