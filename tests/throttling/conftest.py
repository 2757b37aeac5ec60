"""The JVM with Kafka's own classes, one for all tests."""

from collections.abc import Iterator

import pytest

from tests.throttling.oracle import Oracle


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    with Oracle(tmp_path_factory.mktemp("oracle")) as made:
        yield made
