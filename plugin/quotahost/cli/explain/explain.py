"""``quotahost explain`` reads its options, asks a broker, prints the answer, and returns the exit code."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from rich.console import Console
from rich.text import Text

from quotahost.base.errors import Unusable
from quotahost.broker.host.broker_status import explained
from quotahost.cli.console import console, one_line, show_facts
from quotahost.cli.explain.answer import Answer, common_facts, limited_by, parse, quota_facts
from quotahost.cli.explain.broker_socket import connect
from quotahost.model import Client, QuotaType
from quotahost.units.parse import parse_duration

HELP: Final = "Say why a client goes as fast as it does, or what fills a volume, on a broker of this machine."
NEWCOMER: Final = 3  # the exit code
T = TypeVar("T")


def parser() -> ArgumentParser:
    ends = (
        "Ends with 0 if the broker knows the client, with 3 if it doesn't (a newcomer), with 2 if no broker answered."
    )
    made = ArgumentParser("quotahost explain", description=f"{HELP} {ends}", allow_abbrev=False)
    add = made.add_argument
    add("--client", metavar="USER/CLIENT", help="principal name and client-id, split at the last /")
    add("--user", help="the principal name, if --client is not given")
    add("--client-id", help="the client-id, if --client is not given; it may be empty")
    add_common(made)
    add(
        "--volume", nargs="?", const="", metavar="NAME",
        help="explain what fills this volume; without NAME, list the volumes",
    )  # fmt: skip
    looks = "time between the two looks that measure a volume's growth (5s)"
    add("--interval", type=valued(parse_duration), default="5s", help=looks)
    return made


def add_common(made: ArgumentParser) -> None:
    """Add the options that ``top`` has as well."""
    one = made.add_mutually_exclusive_group()
    one.add_argument("--pid", dest="which", metavar="PID", default="", help="process id of the broker")
    one.add_argument("--broker-id", dest="which", metavar="ID", type="broker:{}".format, help="its node.id")
    types = [*map(str, QuotaType)]
    only = f"only this quota type: {', '.join(types)}"
    made.add_argument("--type", type=str.upper, choices=types, metavar="TYPE", help=only)


def valued(parse: Callable[[str], T]) -> Callable[[str], T]:
    """An argparse type that reads a value by ``parse``, and shows the text of its ValueError to the user."""

    def parsed(text: str) -> T:
        try:
            return parse(text)
        except ValueError as wrong:
            raise ArgumentTypeError(f"{text!r} {wrong}") from None

    return parsed


def main(arguments: Sequence[str]) -> int:
    made = parser()
    given = made.parse_args(arguments)
    if given.volume is None:
        return explain_client(_client(made, given), given.which, given.type and QuotaType(given.type), console())
    if (given.client, given.user, given.client_id, given.type) != (None, None, None, None):
        made.error("--volume can't be combined with --client, --user, --client-id or --type")
    from quotahost.cli.explain.volume import explain_volume  # only here: a client's explanation needs none of it

    explain_volume(given.volume, given.which, given.interval.total_seconds(), console())
    return 0


def _client(made: ArgumentParser, given: Namespace) -> Client:
    """The client from ``--client USER/CLIENT``, or from ``--user`` and ``--client-id``."""
    client, apart = given.client, (given.user, given.client_id)
    if client is None and None not in apart:
        return Client(*apart)
    if client is None or apart != (None, None):
        made.error("give --client USER/CLIENT, or both --user and --client-id; or --volume")
    # The last slash splits the text, because a principal may be a distinguished name with slashes.
    name, _, rest = client.rpartition("/")
    if not name:
        made.error(f"--client {client!r} is not USER/CLIENT; if clients don't authenticate, USER is ANONYMOUS")
    return Client(name, rest)


def explain_client(client: Client, which: str, type: QuotaType | None, screen: Console) -> int:
    """Ask a broker (``broker_socket.connect``) about a client, print the answer, and return the exit code."""
    with connect(which) as ask:

        def largest(budget: str) -> Any:
            try:
                return ask("budget", budget)
            except Unusable:  # Python answers this question, and may hang; Java has answered the other questions
                return ()

        return show(parse(explained(ask, client, largest), client), type, screen)


def show(answer: Answer, type: QuotaType | None, screen: Console) -> int:
    """Print the answer for one quota type, or for all types if ``type`` is None, and return the exit code."""
    quotas = [quota for quota in answer.quotas if type in (None, quota.type)]
    show_facts(screen, common_facts(answer))
    for quota in quotas:
        screen.print(Text(f"\n{quota.type}", style="bold"))
        show_facts(screen, quota_facts(answer, quota))
    screen.print(Text(f"\n{one_line(limited_by(answer, quotas))}.", style="bold"), soft_wrap=True)
    return NEWCOMER if any(quota.newcomer for quota in quotas) else 0
