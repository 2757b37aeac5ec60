"""``quotahost doctor``: gathers the facts, runs every check and prints what they found.

The plugins of a broker are installed in the environment of the broker's interpreter, which may be another than the
one that runs this command. The command then runs the quotahost of that environment instead.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer

from quotahost.cli.broker_file import BrokerFile, read_broker_file
from quotahost.cli.console import Finding, Section, good, note, show, weak, wrong
from quotahost.cli.doctor.client_file import read_client_config
from quotahost.cli.doctor.client_software import check_client_software
from quotahost.cli.doctor.cluster import check_cluster
from quotahost.cli.doctor.internals import check_internals
from quotahost.cli.doctor.jar import check_jar
from quotahost.cli.doctor.kafka import check_kafka
from quotahost.cli.doctor.plugins import check_plugins
from quotahost.cli.doctor.python import EXECUTABLE, OURS, Interpreter, InterpreterError, ask, check_python
from quotahost.cli.doctor.settings import check_settings
from quotahost.cli.doctor.weaknesses import check_weaknesses
from quotahost.records.topics import Party
from quotahost.settings.broker import Settings, read_properties
from quotahost.settings.declaration import PREFIX, SettingsError

_NO_PLUGINS: Final = note("not checked: the interpreter above has no quotahost to ask")
_NO_PROPERTIES: Final = note("not checked", "name the broker's server.properties")


def doctor(
    properties: Annotated[
        Path | None, typer.Argument(metavar="[server.properties]", help="The broker's properties.")
    ] = None,
    kafka_home: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder that Kafka was unpacked to.")
    ] = None,
    python: Annotated[
        str | None, typer.Option(metavar="EXE", help="Interpreter to look at instead of python.executable.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="A running broker: who may use quotahost's topics there?")
    ] = None,
    client_config: Annotated[
        Path | None,
        typer.Option(
            "--client-config",
            "--command-config",
            metavar="FILE",
            help="How to connect to it, in the names of librdkafka or of Kafka's Java client; without, as anybody can.",
        ),
    ] = None,
    party: Annotated[
        Party | None, typer.Option("--as", help="Whose file that is: has its principal all rights that it needs?")
    ] = None,
    here: Annotated[bool, typer.Option("--here", hidden=True)] = False,
) -> None:
    """Look for what would keep a broker from starting with quotahost, and for what is weak.

    Ends with 1 if something is wrong, with 0 if all is well or merely weak.
    """
    broker = None if properties is None else read_broker_file(properties)
    # python3 is the default of python.executable.
    configured = broker.get(EXECUTABLE) or "python3" if broker else sys.executable
    found: Interpreter | None = None
    try:
        found = ask(python or configured)
        interpreter = list(_interpreter(found, python, configured))
    except InterpreterError as error:
        interpreter = [wrong(str(error), f"{OURS}, which has this quotahost")]
    # By the prefix: the executables of several environments may be links to the same file.
    is_here = found is not None and found.prefix == sys.prefix
    # --here ends the chain: the doctor that was started there never starts another one.
    if found and found.quotahost and not is_here and not here:
        more = _options(
            {
                "--python": python,
                "--kafka-home": kafka_home,
                "--against": against,
                "--client-config": client_config,
                "--as": party and party.value,
            }
        )
        raise typer.Exit(_run_there(found.executable, properties, more))
    sections = [
        Section("Interpreter", interpreter),
        Section("Jar", list(check_jar(kafka_home, found))),
        *([Section("Kafka", [*check_kafka(kafka_home), *check_internals(kafka_home)])] if kafka_home else []),
        check_plugins() if is_here else Section("Plugins", [_NO_PLUGINS]),
        *_properties(broker, is_here),
        *_cluster(broker, against, client_config, party),
    ]
    show(sections)
    is_wrong = any(section.is_wrong for section in sections)
    typer.echo("\nSomething is WRONG: see above." if is_wrong else "\nNothing is wrong.")
    raise typer.Exit(1 if is_wrong else 0)


def _options(given: Mapping[str, object]) -> list[str]:
    """The options that are given, as they stand on a command line."""
    return [part for name, value in given.items() if value is not None for part in (name, str(value))]


def _run_there(executable: str, properties: Path | None, options: list[str]) -> int:
    """Run this command by the quotahost of another environment; its exit code."""
    command = [executable, "-m", "quotahost.cli", "doctor", "--here", *options]
    command += [str(properties)] if properties else []
    sys.stdout.flush()  # its output follows ours
    return subprocess.run(command, check=False).returncode


def _cluster(
    broker: BrokerFile | None, against: str | None, client_config: Path | None, party: Party | None
) -> Iterator[Section]:
    """What the running cluster says, if one is named."""
    if against is None:
        return
    settings: Settings | None = None
    with suppress(SettingsError):  # another section shows it
        settings = read_properties(broker.properties)[0] if broker else None
    config = {} if client_config is None else read_client_config(client_config)
    yield Section("Topics", list(check_cluster(against, config, settings, party)))
    yield Section("Clients", list(check_client_software()))
    if broker and settings and settings.kafka and not client_config:
        yield Section("Topics, as the brokers' plugins", list(_as_plugins(broker, against, settings)))


def _as_plugins(broker: BrokerFile, against: str, settings: Settings) -> Iterator[Finding]:
    """What the properties' own ``kafka.*`` may do, if they stand there in full."""
    own = {name: value.get_secret_value() for name, value in settings.kafka.items()}
    if unresolved := [name for name in broker.unresolved if name.startswith(f"{PREFIX}kafka.")]:
        yield note(
            f"not checked: only the broker knows {', '.join(unresolved)}",
            f"--client-config FILE with them, and --as {Party.PLUGINS.value}",
        )
        return
    yield from check_cluster(against, own, settings, Party.PLUGINS)


def _interpreter(found: Interpreter, python: str | None, configured: str) -> Iterator[Finding]:
    yield from check_python(found)
    if python and python != configured:
        yield weak(
            f"the broker will start {configured}, not {python}, which was examined here", f"{EXECUTABLE}={python}"
        )


def _properties(broker: BrokerFile | None, is_here: bool) -> Iterator[Section]:
    if broker is None:
        yield Section("Settings", [_NO_PROPERTIES])
        return
    section, settings = check_settings(broker, with_plugins=is_here)
    yield section
    if settings is not None:
        yield Section("Weak", list(check_weaknesses(settings, broker)) or [good("nothing found")])
