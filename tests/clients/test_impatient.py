"""Two libraries that need care in a PAUSE: sarama gives up at once by default, kafkajs pipelines without a bound."""

from pathlib import Path

import pytest

from tests.clients.libraries import AWAITED, DEFAULT, KAFKAJS, SARAMA, TUNED
from tests.clients.rides import ride, through_a_pause

pytestmark = pytest.mark.long


def test_sarama_fails_records_by_default_and_none_with_the_documented_settings(tmp_path: Path) -> None:
    default, tuned = ride(SARAMA), ride(SARAMA, TUNED)
    outcomes = through_a_pause(tmp_path, [default, tuned], 20)
    assert outcomes[default].failed > 0
    assert outcomes[default].written_though_failed == outcomes[default].lost == 0
    assert (outcomes[tuned].failed, outcomes[tuned].lost, outcomes[tuned].duplicates) == (0, 0, 0)


@pytest.mark.proves("faults.impatient")
def test_kafkajs_whose_sends_nobody_awaits_gets_no_record_appended_twice(tmp_path: Path) -> None:
    """It gives a request up after 30 s, and sends it again: so none may lie unread for that long behind a mute."""
    rides = [ride(KAFKAJS, settings) for settings in (DEFAULT, AWAITED, TUNED)]
    outcomes = through_a_pause(tmp_path, rides, 45)
    assert [(outcome.duplicates, outcome.lost) for outcome in outcomes.values()] == [(0, 0)] * len(rides)
    assert outcomes[rides[-1]].failed == 0
