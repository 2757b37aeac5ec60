"""``quotahost doctor`` and ``quotahost plugins`` collect facts, run the checks and print the findings.

1. The facts are a broker's properties, its interpreter, a folder of Kafka, and a running cluster. Each may be missing.
2. The other modules check these facts, and return findings (:class:`quotahost.cli.console.Finding`).
3. :func:`check_client_software` finds connected clients whose library gives up early in a PAUSE.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from quotahost.base.errors import QuotahostError, Unusable
from quotahost.broker.host.messages import gauges, numbers_of
from quotahost.cli.asking import ClientConfig
from quotahost.cli.console import Finding, Level, Section, console, good, note, say, show, table, weak, wrong
from quotahost.cli.doctor import installation
from quotahost.cli.doctor.installation import EXECUTABLE, OURS, PROCESS
from quotahost.cli.doctor.settings import check_settings, check_stored, check_weaknesses
from quotahost.cli.doctor.topics import check_cluster
from quotahost.cli.explain.broker_socket import connected, running
from quotahost.cli.property_files import BrokerFile, read_broker_file, read_client_config
from quotahost.kafka.client import NoAnswer, connect
from quotahost.records.topics import AclRole
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.settings.sections import revealed

#: Client libraries that give up early in a PAUSE (docs/clients.md), by the software name that a client sends (KIP-511).
_IMPATIENT: Final = {
    "sarama": "use sarama, which reports records as failed 0.3 s after a PAUSE began, unless set to retry longer",
    "unknown": "don't name their software: kafka-go, kafkajs, aiokafka and kafka-python 2 don't. These report records "
    "as failed 0 to 40 s after a PAUSE began, unless set to retry longer. Brokers that copy replicas don't name "
    "theirs, either; they count here if brokers have no listener of their own",
}  # fmt: skip

_ANSWER: Final = 10.0  # seconds

_PROPERTIES: Final = typer.Argument(metavar="[server.properties]", help="The broker's properties.")
_KAFKA_HOME: Final = typer.Option(metavar="DIR", help="The folder that Kafka was unpacked to.")
_PYTHON: Final = typer.Option(metavar="EXE", help="Interpreter to check instead of python.executable.")
_AGAINST: Final = typer.Option(metavar="HOST:PORT", help="A running broker: check who may use quotahost's topics.")
_AS: Final = typer.Option("--as", help="Role of --client-config: check that it has all rights it needs.")


def doctor(
    properties: Annotated[Path | None, _PROPERTIES] = None,
    kafka_home: Annotated[Path | None, _KAFKA_HOME] = None,
    python: Annotated[str | None, _PYTHON] = None,
    against: Annotated[str | None, _AGAINST] = None,
    client_config: ClientConfig = None,
    role: Annotated[AclRole | None, _AS] = None,
) -> None:
    """Find what would keep a broker from starting with quotahost, and settings that protect too little.

    Ends with 1 if something is wrong, with 2 if a file can't be read, else with 0, even if something is weak.
    """
    if against is None and (client_config or role):
        raise typer.BadParameter("--against is missing: --client-config and --as need it")
    broker = read_broker_file(properties) if properties else None
    # python3 is the default of python.executable.
    configured = broker.get(EXECUTABLE) or "python3" if broker else sys.executable
    named = python or configured
    interpreter: installation.Interpreter | None = None
    try:
        process = "child" if broker and broker.get(PROCESS) == "child" else "broker"
        interpreter = installation.ask(named, process)
        of_interpreter = list(installation.check_python(interpreter))
    except QuotahostError as error:
        of_interpreter = [wrong(str(error), f"{OURS}, which has this quotahost")]
    if interpreter and named != configured:
        text = f"the broker will start {configured}, not {named}, which was checked here"
        of_interpreter.append(weak(text, f"{EXECUTABLE}={named}"))
    is_here = interpreter is not None and interpreter.is_here
    text = "plugins and their properties are not checked: plugins are installed for the interpreter above"
    own = ""
    if interpreter and interpreter.quotahost:
        own = f"run its own doctor: {Path(interpreter.executable).with_name('quotahost')} doctor"
    of_kafka: list[Finding] = []
    if kafka_home:
        classes = broker.classes() if broker else []
        of_kafka = [installation.check_version(kafka_home), *installation.check_internals(kafka_home, classes)]
    sections = [
        Section("Interpreter", of_interpreter),
        Section("Jar", list(installation.check_jar(kafka_home, interpreter))),
        Section("Kafka", of_kafka),
        installation.check_plugins() if is_here else Section("Plugins", [note(text, own)]),
    ]
    settings: Settings | None = None
    if broker is None:
        sections.append(Section("Settings", [note("not checked", "name the broker's server.properties")]))
    else:
        section, settings = check_settings(broker, with_plugins=is_here)
        sections.append(section)
        if settings is not None:
            sections.append(Section("Weak", list(check_weaknesses(settings, broker)) or [good("nothing found")]))
    if against is not None:
        sections += _cluster(broker, settings, against, client_config, role)
    show([section for section in sections if section.findings or section.rows], console())
    is_wrong = any(finding.level is Level.WRONG for section in sections for finding in section.findings)
    say("\nSomething is WRONG: see above." if is_wrong else "\nNothing is wrong.")
    raise typer.Exit(int(is_wrong))


def plugins() -> None:
    """Show every plugin installed for this Python, and whether it can be loaded."""
    section = installation.check_plugins()
    console().print(table(section.columns, section.rows))


def _cluster(
    broker: BrokerFile | None, settings: Settings | None, against: str, client_config: Path | None, role: AclRole | None
) -> Iterator[Section]:
    config = read_client_config(client_config)
    topics, stored = ask_cluster(against, config, settings, role, broker)
    yield Section("Topics", topics)
    yield Section("Stored values", stored)
    yield Section("Clients", list(check_client_software()))
    if not (broker and settings and settings.kafka) or client_config:
        return
    # This checks the rights of the plugins' own client, if the file has all kafka.* properties in full.
    if unresolved := ", ".join(name for name in broker.unresolved if name.startswith(f"{PREFIX}kafka.")):
        remedy = f"--client-config FILE with them, and --as {AclRole.PLUGINS.value}"
        findings = [note(f"not checked: only the broker knows {unresolved}", remedy)]
    else:
        config = revealed(settings.kafka)
        # The plugins may connect to another listener than the doctor does.
        theirs = config.get("bootstrap.servers", against)
        findings, _ = ask_cluster(theirs, config, settings, AclRole.PLUGINS)
    yield Section("Topics, as the brokers' plugins", findings)


def ask_cluster(
    against: str, config: Mapping[str, str], settings: Settings | None, role: AclRole | None = None,
    broker: BrokerFile | None = None,
) -> tuple[list[Finding], list[Finding]]:  # fmt: skip
    """Findings of one connection to a running cluster: on its topics, and on the values that it stores for a broker.

    ``config`` has librdkafka's properties; it is empty for a client without credentials. ``role`` is its role.
    """
    try:
        admin = connect({**config, "bootstrap.servers": against}, _ANSWER)
        topics = list(check_cluster(admin, against, config, settings, role))
    except NoAnswer as problem:
        who = "with these credentials" if config else "a client without credentials"
        # A listener that requires credentials is right to refuse a client without credentials.
        tell = note if problem.lets_others_in and not config and not role else wrong
        text = f"{against} doesn't answer {who}: {problem}"
        return [tell(text, f"another listener, --client-config FILE, or for the plugins {PREFIX}kafka.*")], []
    return topics, list(check_stored(admin, against, broker, config)) if broker else []


def check_client_software() -> Iterator[Finding]:
    """Connected clients whose library gives up early in a PAUSE, from the gauges of the brokers of this machine."""
    connections = Counter[str]()
    brokers = running()
    for broker in brokers:
        try:
            with connected(broker) as ask:
                told = numbers_of(gauges(ask), "ImpatientClients")
                connections.update({name: int(told[name]["Connections"]) for name in _IMPATIENT if name in told})
        except Unusable as why:
            text = f"broker {broker.node} (pid {broker.pid}) doesn't tell the software of its clients: {why.problem}"
            yield note(text, why.remedy)
    remedy = "the settings of docs/clients.md, and a drill (docs/operate.md), which shows which clients give up"
    for software, count in (+connections).items():
        yield weak(f"{count} connections {_IMPATIENT[software]}", remedy)
    if not brokers:
        yield note("the software of clients is not known: this user may ask no broker on this machine")
