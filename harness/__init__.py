"""Real Kafka brokers and real clients for tests, the demo and the benches.

A test starts a broker, acts as its operator, puts load on it, and compares what the broker
enforces with the rates that the clients get::

    from harness.clients.producer import ProducerLoad
    from harness.kafka.admin import create_topic, set_quota
    from harness.kafka.node import KafkaNode
    from harness.kafka.quotas import enforced_quotas
    from harness.system.waiting import eventually

    def test_a_quota_holds_and_can_be_changed_live(tmp_path):
        with KafkaNode(tmp_path, users={"alice": "secret"}, probe=True) as node:
            create_topic(node, "events")
            set_quota(node, {"producer_byte_rate": 2e6}, user="alice")
            with ProducerLoad(node.client_config("alice", client_id="app"), "events") as load:
                eventually(lambda: load.meter.rate_over(30) == pytest.approx(2e6, rel=0.1))
                assert load.max_throttle() > 0
                set_quota(node, {"producer_byte_rate": 4e6}, user="alice")
                eventually(lambda: enforced_quotas(node, "PRODUCE", user="alice")[0].bound == 4e6)

To load a plugin, give ``classpath`` and ``properties``. ``wait_for_log`` reads what a broker logs, and ``Jmx`` its
MBeans. If a broker doesn't accept its configuration, ``start()`` raises ``StartFailed`` with the log. Nodes listen on
loopback only. They keep their ports and data over ``stop()`` or ``kill()`` and the next ``start()``, and are killed
when the process that started them ends.

``plugin``, ``kafka.admin_socket``, ``rollup``, ``max_min`` and ``system.pipeline`` know quotahost, and so do
``loop`` and ``policy_scenes``, which need no broker, since they play quotahost's model of the loop. The package needs
a JDK (17+), Maven (for the first start) and confluent-kafka.
"""
