"""A broker from which all that is no public API was taken away: it starts, throttles, fences, and says so once of each.

``-Dquotahost.internals.without=NAME,...`` takes it away, as a later Kafka might.
"""

import re
from pathlib import Path
from typing import Final

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.quotas import enforced_quotas
from harness.plugin import FENCE, ROOT
from harness.system.waiting import eventually
from tests.broker.support.node import FACTOR, FIXED, callback_node
from tests.broker.support.numbers import attempt
from tests.broker.support.seen import gauge

SOURCE: Final = ROOT / "java-shim/src/main/java/org/quotahost/internals/Internals.java"
NAMES: Final = re.findall(r'new Internal<>\(\s*"(\w+)"', SOURCE.read_text())
RATE: Final = 500_000  # bytes/s
SETTINGS: Final = FIXED | {"static.produce": str(RATE), "topics.total.bytes.in.per.sec.threshold": "1G"}


@pytest.mark.proves("faults.internals")
@pytest.mark.parametrize(
    "without", [set(NAMES), *(pytest.param({name}, marks=pytest.mark.long) for name in NAMES)], ids=["all", *NAMES]
)
def test_without_them_a_broker_starts_throttles_fences_and_says_so_once(tmp_path: Path, without: set[str]) -> None:
    options = [f"-Dquotahost.internals.without={','.join(without)}"]
    properties = FENCE | dict(QUICK_QUOTAS)
    with callback_node(tmp_path, SETTINGS, properties=properties, jvm_options=options) as node:
        create_topic(node, "t")
        client = node.client_config(client_id="app")
        with ProducerLoad(client, "t") as load:
            eventually(lambda: load.max_throttle() > 0 and load.meter.rate_over(3) < 1.2 * RATE)
            assert [quota.bound for quota in enforced_quotas(node, "PRODUCE", client_id="app")] == [RATE]
        assert load.errors == []
        alter_broker_config(node, {FACTOR: "0"})
        eventually(lambda: attempt(client, "t") == "NOT_ENOUGH_REPLICAS")
        assert gauge(node, "Fence", "Rejections") > 0
        beans = Jmx(node).query("quotahost:type=Internals,name=*")
        missing = {bean.partition("name=")[2]: float(values["Missing"]) for bean, values in beans.items()}
        assert missing == {name: float(name in without) for name in NAMES}
        lines = [line for line in node.log_text().splitlines() if "is missing, or not as quotahost knows it" in line]
        assert sorted(line.partition(" is missing")[0].split()[-1] for line in lines) == sorted(without)
        assert all("WARN" in line for line in lines)
        assert node.stop() == 143
    assert "NoClassDefFoundError" not in node.log_text()
