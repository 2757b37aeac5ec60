"""conf/secured/acls.sh gives the rights that are declared, and no other."""

import shlex
from pathlib import Path

from quotahost.records.topics import GROUPS, TOPICS, Party

SCRIPT = Path(__file__).parents[3] / "conf/secured/acls.sh"
PRINCIPALS = {
    "$plugins": Party.PLUGINS,
    "$pipeline": Party.PIPELINE,
    "$watchers": Party.WATCHERS,
    "$operators": Party.OPERATORS,
}


def given() -> dict[tuple[Party, str], set[str]]:
    """Operations by party and topic; those on groups under the group's name with a star."""
    rights: dict[tuple[Party, str], set[str]] = {}
    text = SCRIPT.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] != ["$@"]:
            continue
        pairs = list(zip(words[2::2], words[3::2], strict=True))
        (party,) = (PRINCIPALS[value] for name, value in pairs if name == "--allow-principal")
        operations = {value for name, value in pairs if name == "--operation"}
        prefixed = "*" if ("--resource-pattern-type", "prefixed") in pairs else ""
        for name, value in pairs:
            if name in ("--topic", "--group"):
                rights.setdefault((party, value + prefixed), set()).update(operations)
    return rights


def test_the_script_gives_the_declared_rights_and_no_other() -> None:
    declared = {
        (party, topic.name): set(topic.operations(party))
        for topic in TOPICS
        for party in Party
        if topic.operations(party)
    }
    groups = {(party, f"{GROUPS}*"): {"Describe"} for party in (Party.PLUGINS, Party.WATCHERS, Party.OPERATORS)}
    assert given() == declared | groups
