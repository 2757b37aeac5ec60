"""Spark's Kafka connector, from Maven Central, once."""

from __future__ import annotations

import hashlib
import logging
import os
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quotahost.errors import QuotahostError

log = logging.getLogger("quotahost.pipeline")

CENTRAL: Final = "https://repo1.maven.org/maven2"
_TIMEOUT: Final = 60.0  # seconds


class ConnectorError(QuotahostError):
    """A jar can't be had; the message says why, and what to do."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar of Maven Central, and the SHA-256 of its content."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        """Its file name."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Where it lies in a Maven repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.name}"


#: Named one by one: ``spark.jars.packages`` fails, as the token provider of 4.2.0 was never published. That
#   of 4.0.0
#: has the same interface; what doesn't work with it is Kerberos' delegation tokens.
JARS: Final = (
    Jar(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.2.0",
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    ),
    Jar(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.0.0",
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    ),
    Jar(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.2",
        "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    ),
    Jar(
        "org.apache.commons",
        "commons-pool2",
        "2.13.1",
        "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
    ),
)


def jars() -> list[Path]:
    """The connector's jars, fetched into the cache on first use.

    The cache is ``$XDG_CACHE_HOME/quotahost`` (``~/.cache/quotahost``); ``QUOTAHOST_MAVEN_REPOSITORY`` names another
    repository than Maven Central, as a URL. A jar that is there with the right content is never fetched again, so one
    may also put them there by hand.

    Raises:
        ConnectorError: one can't be fetched, or is not what it should be.
    """
    return [_fetched(jar) for jar in JARS]


def cache() -> Path:
    """The directory of the jars."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quotahost"


def _fetched(jar: Jar) -> Path:
    target = cache() / jar.name
    if target.is_file() and _right(jar, target.read_bytes()):
        return target
    url = f"{os.environ.get('QUOTAHOST_MAVEN_REPOSITORY', CENTRAL).rstrip('/')}/{jar.path}"
    log.info("fetching %s", url)
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            content: bytes = answer.read()
        if not _right(jar, content):
            raise ConnectorError(f"{url} is not what it should be: its SHA-256 is not {jar.sha256}")
        return _put(target, content)
    except OSError as problem:
        raise ConnectorError(
            f"{url} can't be fetched into {target.parent}: {problem}; set QUOTAHOST_MAVEN_REPOSITORY to a "
            "repository that this machine reaches, or put the file there"
        ) from None


def _right(jar: Jar, content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == jar.sha256


def _put(target: Path, content: bytes) -> Path:
    """Under its name only when it is whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}")
    partial.write_bytes(content)
    return partial.replace(target)
