"""Fetches the jars of Spark's Kafka connector, once, and checks their content.

PySpark doesn't contain the connector. :mod:`quotahost.pipeline.spark.session` and the line for spark-submit name the
jars in the cache to Spark.
"""

from __future__ import annotations

import hashlib
import logging
import os
import urllib.request
from pathlib import Path
from typing import Final

from quotahost.errors import QuotahostError

log = logging.getLogger("quotahost.pipeline")

CENTRAL: Final = "https://repo1.maven.org/maven2"
_TIMEOUT: Final = 60.0  # seconds


class ConnectorError(QuotahostError):
    """A jar can't be fetched; the message names the reason and the remedy."""

    exit_code = 2


#: The jars by group, artifact and version, with the SHA-256 of each. One by one, as ``spark.jars.packages`` fails:
#: the token provider of 4.2.0 was never published. The one of 4.0.0 has the same interface; only Kerberos' delegation
#: tokens don't work with it.
JARS: Final = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0":
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0":
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    "org.apache.kafka:kafka-clients:3.9.2":
        "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    "org.apache.commons:commons-pool2:2.13.1":
        "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
}  # fmt: skip


def jars() -> list[Path]:
    """The connector's jars, fetched into the cache on first use.

    The cache is ``$XDG_CACHE_HOME/quotahost`` (``~/.cache/quotahost``); ``QUOTAHOST_MAVEN_REPOSITORY`` names another
    repository than Maven Central, as a URL. A jar that is in the cache with the right content is never fetched again,
    so an operator may also put the jars there by hand.

    Raises:
        ConnectorError: a jar can't be fetched, or has another SHA-256.
    """
    return [_fetched(repository_path(jar), sha256) for jar, sha256 in JARS.items()]


def cache() -> Path:
    """The directory in which the jars are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quotahost"


def repository_path(jar: str) -> str:
    """The path in a Maven repository of the jar ``GROUP:ARTIFACT:VERSION``."""
    group, artifact, version = jar.split(":")
    return f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"


def _fetched(jar: str, sha256: str) -> Path:
    target = cache() / Path(jar).name
    if target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == sha256:
        return target
    url = f"{os.environ.get('QUOTAHOST_MAVEN_REPOSITORY', CENTRAL).rstrip('/')}/{jar}"
    log.info("fetching %s", url)
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            content: bytes = answer.read()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise ConnectorError(f"{url} is not what it should be: its SHA-256 is not {sha256}")
        return _put(target, content)
    except OSError as problem:
        raise ConnectorError(
            f"{url} can't be fetched into {target.parent}: {problem}; set QUOTAHOST_MAVEN_REPOSITORY to a "
            "repository that this machine reaches, or put the file there"
        ) from None


def _put(target: Path, content: bytes) -> Path:
    """Write the file under its name only when it is whole: other processes may look for it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}")
    partial.write_bytes(content)
    return partial.replace(target)
