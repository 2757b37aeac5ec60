"""Connects quotahost's Kafka clients: login, first answer, retries, a sentence that explains a failure, and a metric.

- A command connects with an operator's file. :func:`connect` waits for the first answer, and raises NoAnswer with the
  reason if there is none: librdkafka itself raises only a time-out, and gives the reasons to its error callback.
- A plugin connects with ``Broker.client_config``, through a shared :class:`Login`; :class:`Connection` is its metric.
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
    "log_level": 0,  # librdkafka would write each failed try to the broker's stderr while the broker starts
    # A client finds a restarted broker within about 1 s; librdkafka's defaults need up to 10 s. After a failed TLS
    # handshake librdkafka uses only the first pause, and the broker logs each failure: 36/s with 50 ms, 8/s with 250.
    "reconnect.backoff.ms": 250,
    "reconnect.backoff.max.ms": 1000,
    # The value of Java's client. While a network drops packets, a connection retries less and less often. With
    # librdkafka's default of 30 s, a client would need up to 15 s to notice that the network works again.
    "socket.connection.setup.timeout.ms": 10_000,
    "allow.auto.create.topics": False,  # otherwise the broker creates our topics without compaction
}

Admin: TypeAlias = AdminClient


class Connection:
    """Shows in a metric whether a plugin's client reaches the cluster, and logs when that changes.

    Before the first success, failures within ``startup.grace`` are ignored: the broker's listener may not be open yet.
    """

    def __init__(self, context: Context[object], name: str = "", clock: Clock = time.monotonic) -> None:
        """Show "not connected". ``name`` is the metric's name if a plugin has several clients; "" is the plugin's."""
        self._context, self._name = context, name or context.name
        self._clock, self._began = clock, clock()
        self._fault = LoggedOnce(context.log)
        self.ever = False  # whether it has worked
        self.fault = ""  # the end of a sentence that says what the client waits for
        self._show(0.0)

    @property
    def starting(self) -> bool:
        """Whether ``startup.grace`` is still running."""
        return self._clock() - self._began < self._context.settings.startup_grace.total_seconds()

    def answers(self) -> None:
        """End the fault: the cluster answers this client, although the topic to read may still be absent."""
        self.fault = ""
        self._fault.healed("connected again")

    def works(self) -> None:
        self.answers()
        self.ever = True
        self._show(1.0)

    def fails(self, error: object) -> bool:
        """Report that the client can't read or write; ``error`` is logged, so it must contain no secret.

        Returns False if the broker is only starting, which is no fault.
        """
        if not self.ever and self.starting:
            return False
        why = error.str() if isinstance(error, KafkaError) else error
        self.fault = f" (not connected: {why})"
        # Each failure is reported: if an earlier line had to wait for the limit of one a minute, this one is logged.
        self._fault.report("not connected: %s", why)
        self._show(0.0)
        return True

    def close(self) -> None:
        """Remove the metric. If a plugin stays after a live change, it shows its metric again within seconds."""
        self._context.metrics.forget("Connection", self._name)

    def _show(self, connected: float) -> None:
        self._context.metrics.gauge("Connection", self._name, "Connected", connected)


#: Errors whose names begin with an underscore come from librdkafka itself, the others from a broker.
ABSENT: Final = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
DENIED: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}  # fmt: skip
#: The consumers' groups as arguments of kafka-acls.sh: a consumer needs Describe on its group.
OF_GROUPS: Final = f"--resource-pattern-type prefixed --group {GROUPS}"
#: Seconds between retries if a right or the topic is missing: the broker logs denied tries, and each try is a login.
SELDOM: Final = 5.0


def no_right(right: str, of: str, config: Mapping[str, Any]) -> tuple[str, str]:
    """The principal that lacks a right (an operation's name in ACLs), and the Kafka command that grants the right.

    ``of`` is the resource as an argument of this command: ``--topic NAME``. ``config`` is the client's configuration.
    """
    to, what = "docs/security.md", of.rpartition("--")[2]
    if str(config.get("security.protocol", "PLAINTEXT")).upper() == "PLAINTEXT":
        return f"User:ANONYMOUS may not {right} {what}", f"log in with --client-config or a broker's kafka.* ({to})"
    # The name is unknown if the client logs in with a certificate: the broker maps it to a principal.
    name = quote(f"User:{config.get('sasl.username', 'NAME')}")
    command = f"kafka-acls.sh --add --allow-principal {name} --operation {right} {of}"
    return f"{name} may not {right} {what}", f"{command} ({to})"


def lacked(error: KafkaError, right: str, topic: str, config: Mapping[str, Any]) -> tuple[str, str] | None:
    """The texts of :func:`no_right` if the error means a missing right, else None; the topic's use needs ``right``."""
    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return no_right("Describe", OF_GROUPS, config)
    return no_right(right, f"--topic {topic}", config) if error.code() in DENIED else None


def partitions(client: AdminClient | Consumer, topic: str, wait: float) -> list[int]:
    """The numbers of a topic's partitions. Raises KafkaException if it is absent, or no answer comes in ``wait`` s."""
    metadata = client.list_topics(topic, timeout=wait).topics[topic]
    if metadata.error is not None:  # librdkafka reports an absent topic here and raises nothing
        raise KafkaException(metadata.error)
    return list(metadata.partitions)


def consumer(config: Mapping[str, Any], group: str, reset: str = "error") -> Consumer:
    """A consumer for assigned partitions. It joins no group, although librdkafka demands a name, and commits nothing.

    ``config`` is the client's configuration. ``reset`` is ``auto.offset.reset``: "error" reports a lost position. After
    a silent reset, a reader would take some of the records for all, or old records for new ones.
    """
    return Consumer({
        **config,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": reset,
        # This event is the only sign that all records are read: compaction leaves gaps between the offsets.
        "enable.partition.eof": True,
        # With read_committed, any client's open transaction would hide all records after its first one. quotahost
        # writes no transactions, so an aborted record was written by another client.
        "isolation.level": "read_uncommitted",
    })  # fmt: skip


def answer(future: Any, wait: float) -> Any:
    """The result of an AdminClient's request. Raises KafkaException if it fails, or after ``wait`` s (_TIMED_OUT)."""
    try:
        return future.result(wait)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None
    except KafkaException as failure:
        # confluent_kafka's future and this error refer to each other, and the error's traceback to our frames and their
        # client. With the traceback, the client would go on to log in until the garbage is collected.
        raise KafkaException(*failure.with_traceback(None).args) from None


# ---- the first answer ----

#: The value that librdkafka quotes in an error; it may be a password that stands in a wrong line.
_QUOTED: Final = re.compile('(?<=Invalid value) ".*"(?= for )|(?<=mechanisms"): .*|(?<=mechanism): .*', re.DOTALL)
#: If a host name has several addresses, a command tries each in turn; librdkafka's defaults would resolve the name
#: again after each failure, and take any address. A command waits long enough for two tries, each of 4 s.
ASKING: Final = {
    "log_level": 0, "socket.connection.setup.timeout.ms": 4000, "broker.address.ttl": 60_000,
    "metadata.recovery.strategy": "none",
}  # fmt: skip
_STEP: Final = 0.5  # seconds
_MOMENT: Final = 3.0  # seconds, within which even a busy broker answers
#: With TLS 1.3, a broker checks a client's certificate after the client has finished its handshake. If the broker
#: rejects it, the client receives an alert.
_ALERT: Final = "SSL alert number"
_NO_TOKEN: Final = "OAUTHBEARER token"
#: The reason and its remedy, by a sign in an error: a part of librdkafka's text, or its code. The first error with a
#: sign wins, and its first sign in this order. librdkafka doesn't say why it doesn't trust a certificate.
_WORDS: Final[Mapping[str | int, str]] = {
    "certificate verify failed": "TLS fails: the broker's certificate is not trusted (ssl.ca.location; in Java's names "
    "ssl.truststore.location), has expired, or is for another host (ssl.endpoint.identification.algorithm)",
    _ALERT: "TLS fails: the broker refuses this client's certificate or requires one (ssl.certificate.location and "
    "ssl.key.location; in Java's names ssl.keystore.location), or uses other TLS versions",
    "SSL_HANDSHAKE": "TLS fails: the broker's listener doesn't use TLS; check security.protocol",
    KafkaError._SSL: "TLS fails",
    _NO_TOKEN: "no token comes from sasl.oauthbearer.token.endpoint.url: it doesn't answer, or refuses the "
    "client's id or secret",
    "current SASL state": "the listener doesn't use SASL (check security.protocol), or this client's token has expired",
    "supported mechanisms": "the broker's listener uses another sasl.mechanism",
    KafkaError._AUTHENTICATION: "the broker refuses the user, the password or the mechanism",
    KafkaError._RESOLVE: "the host name can't be resolved",
    "Connection refused": "no process listens on this address",
}
#: If a broker closes a new connection without an error, librdkafka reports only that all brokers are down.
_CLOSED: Final = (
    "the broker closes the connection: it requires another security.protocol, sasl.mechanism or certificate"
)
_SWALLOWED: Final = "no answer: the broker may hang, or the network or a firewall may drop packets"


class NoAnswer(QuotahostError):
    """The cluster doesn't answer this client, or refuses its login or denies it a right (then ``refused`` is true)."""

    def __init__(self, text: str, *, refused: bool = False) -> None:
        super().__init__(text)
        self.refused = refused

    @property
    def lets_others_in(self) -> bool:
        """Whether a broker is there and rejects only this client, because of its login or its protocol."""
        return self.refused or _CLOSED in str(self)


def unconnected(config: Mapping[str, Any], **more: Any) -> Admin:
    """Return a client that has no answer yet. Raises NoAnswer if librdkafka can't use its configuration."""
    if problem := no_login(config) or _no_address(config):
        raise NoAnswer(problem)
    try:
        return AdminClient({**config, **more})
    except KafkaException as failure:
        text = failure.args[0].str()
        hint = "; check the file's key and ssl.key.password" if "ssl.key.location failed" in text else ""
        raise NoAnswer(_QUOTED.sub("", text) + hint) from None


def connect(config: Mapping[str, Any], wait: float, topic: str | None = None, moment: float = _MOMENT) -> Admin:
    """Return a client after its first answer. Raises NoAnswer after ``wait`` seconds; its text shows no secret.

    The client asks for one topic, or for all. After ``moment`` seconds, a known reason for the silence ends the wait.
    """
    errors: list[KafkaError] = []
    options: dict[str, Any] = {**ASKING, **config}
    admin = unconnected(options, error_cb=errors.append)
    setup = int(options["socket.connection.setup.timeout.ms"]) / 1000
    # Each step is short, because Python handles Ctrl-C only between two steps.
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
        # From then on, brokers also count as down because a connection timed out, so the error no longer means _CLOSED.
        if passed > setup and not connected:
            errors[:] = [each for each in errors if each.code() != KafkaError._ALL_BROKERS_DOWN]
        if passed >= wait or (passed >= moment and why(errors)):
            silent = _SWALLOWED if error.code() == KafkaError._TRANSPORT else str(error.str())
            raise NoAnswer(why(errors) or silent, refused=any(map(_refuses, errors)))
        if connected:
            step = wait  # a connection exists, and its answer may be on the way


def who_answers(client: Admin, wait: float) -> tuple[int, str] | None:
    """Id and address of the broker that answers within ``wait`` s; None if a balancer hides it. Raises NoAnswer."""
    try:
        heard = client.list_topics(timeout=wait)
    except KafkaException as failure:
        raise NoAnswer(failure.args[0].str()) from None
    if (broker := heard.brokers.get(heard.orig_broker_id)) is None:
        return None
    host = str(broker.host)
    return broker.id, f"[{host}]:{broker.port}" if ":" in host else f"{host}:{broker.port}"


def _no_address(config: Mapping[str, Any]) -> str:
    """The reason why librdkafka would silently try none of the addresses; "" if it tries them."""
    servers = str(config.get("bootstrap.servers", "unknown"))
    schemes = {address.strip().lower().partition("://")[0] for address in servers.split(",") if "://" in address}
    if schemes - {str(config.get("security.protocol", "plaintext")).lower()}:
        return "write HOST:PORT, separated by commas, without ://; set security.protocol instead"
    return "" if servers.strip(", ") else "no address is given"


def _refuses(error: KafkaError) -> bool:
    """Whether the error means that a broker refuses a login because of its password or its certificate."""
    return error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL) or _ALERT in error.str()


def why(errors: Sequence[KafkaError]) -> str:
    """The reason why a client can't connect, in words; "" if none of these errors is known."""
    reasons = [
        words for error in errors for sign, words in _WORDS.items()
        if sign == error.code() or (isinstance(sign, str) and sign in error.str())
    ]  # fmt: skip
    reasons += [_CLOSED for error in errors if error.code() == KafkaError._ALL_BROKERS_DOWN]
    return reasons[0] if reasons else ""


# ---- the plugins' login ----

_LONGEST_REST: Final = 10.0  # seconds
_SOON: Final = 0.5  # seconds, within which most clusters refuse a wrong login
#: Both have the same value, because librdkafka uses only the first one after a failed TLS handshake.
_CAREFUL: Final = {"reconnect.backoff.ms": 10_000, "reconnect.backoff.max.ms": 10_000}
_CAREFUL_FOR: Final = 60.0  # seconds


class Login:
    """The login that all clients of this process with the same configuration share. Any thread may call.

    A broker logs each login that it refuses, and most connections that it closes. So:

    1. Plugins create clients only after the cluster has answered a client that all share (``admin``). While the cluster
       refuses the login, only the shared client retries, with pauses of up to 10 s.
    2. If a broker refuses a plugin's client, the plugin replaces it (:class:`Session`). All others stay connected.
    3. A client that is created within a minute after the last refusal is *careful*: other brokers may accept it, and it
       retries each broker only every 10 s. So it finds a restarted broker within 10 s; other clients need 1 s. When the
       minute has passed, the plugin replaces the careful client.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        """Connect nothing yet. ``config`` is librdkafka's configuration, with secrets."""
        self._given = config
        self._lock = threading.Lock()
        self._admin: AdminClient | None = None
        self._careful_until = -math.inf  # monotonic seconds, as is _again_at
        self._rest, self._again_at = 0.0, 0.0  # seconds
        self._why = ""

    def enter(self, topic: str) -> "Session":
        """Return a new client's session after an answer about its topic. Raises NoAnswer as ``admin`` does."""
        self.admin(topic)
        return Session(self, self.careful)

    def admin(self, topic: str) -> AdminClient:
        """The shared client, after an answer about the topic. Raises NoAnswer, at once before the next try is due."""
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
        """The error; if it means a missing right, its text names the right and its remedy."""
        words = lacked(error, right, topic, self._given)
        return KafkaError(error.code(), "; ".join(words)) if words else error

    def refuses(self) -> None:
        """Note that a broker has just refused a client."""
        self._careful_until = time.monotonic() + _CAREFUL_FOR

    def doubt(self) -> None:
        """Drop the shared client, as another fails; the next try shows whether the login or the cluster fails."""
        self._admin = None

    def _connect(self, topic: str) -> AdminClient:
        if time.monotonic() < self._again_at:
            raise NoAnswer(self._why)
        try:
            connect(self.config(careful=self.careful or self._rest > 0), _MOMENT, topic, _SOON)
        except NoAnswer as problem:
            # Until the next try, every caller gets this reason.
            self._why = str(problem)
            if problem.lets_others_in:
                self._rest = min(max(1.0, 2 * self._rest), _LONGEST_REST)
            self._again_at = time.monotonic() + (self._rest if problem.lets_others_in else _SOON)
            raise
        self._rest = 0.0
        # A new client: if the topic was absent or denied, connect's client would ask for it twice a second for good.
        return AdminClient(self.config(careful=self.careful))


class Session:
    """One client's configuration by a login, and whether the client must close. Only its own thread may call."""

    def __init__(self, login: Login, careful: bool) -> None:
        self.refusal = ""  # the reason why a broker refuses this client, in words
        self.login, self._careful = login, careful
        self._lost = False

    @property
    def config(self) -> dict[str, Any]:
        """The client's configuration. It refers to this session, so the session must not refer to the client."""
        return {**self.login.config(careful=self._careful), "error_cb": self._hear}

    def stands(self) -> bool:
        """Whether the client may stay. The errors of its polls decide, and the end of its careful minute."""
        if self._careful and not self.login.careful:
            self._leave()
        return not self._lost

    @property
    def rest(self) -> float:
        """Seconds until the next client may start: it would at once retry the broker that refused this client."""
        return _LONGEST_REST if self.refusal and not self._lost else 0.0

    def _hear(self, error: KafkaError) -> None:
        # librdkafka asks for a new token at four fifths of the old one's life. So this client stays, and the next one
        # learns whether a token comes. A broker refuses this client when its token has expired.
        if _NO_TOKEN in error.str():
            self.login.doubt()
            return
        refused = _refuses(error)
        if refused:
            self.refusal = why([error])
            self.login.refuses()
        # A careful client stays as long as any broker accepts it.
        if error.code() == KafkaError._ALL_BROKERS_DOWN if self._careful else refused:
            self._leave()

    def _leave(self) -> None:
        self._lost = True
        self.login.doubt()


#: Each configuration's login, as long as a plugin uses it.
_logins: WeakValueDictionary[frozenset[tuple[str, Any]], Login] = WeakValueDictionary()
_making: Final = threading.Lock()  # several followers start at the same moment


def login(context: Context[object]) -> Login:
    """The login of the plugins' clients; the operator's ``kafka.*`` override quotahost's own options."""
    config = {**_PLUGINS, **context.broker.client_config()}
    with _making:
        return _logins.setdefault(frozenset(config.items()), Login(config))
