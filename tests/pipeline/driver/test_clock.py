"""The clock of the driver's machine is set while the pipeline runs.

No test may set the clock of its machine. So a small library, which is loaded before all others, adds to the driver's.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.kafka.node import KafkaNode
from harness.system.pipeline import PipelineProcess
from harness.system.waiting import eventually
from tests.pipeline.support.records import volume
from tests.pipeline.support.topics import Snapshots, published
from tests.skips import COULD_NOT_RUN

pytestmark = pytest.mark.driver
PATIENCE = 240.0  # seconds
#: Adds the seconds that stand in the file $ADDED to the wall clock; Python and Java ask by this function.
LIBRARY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *found) {
    int (*ask)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = ask(clock, found);
    FILE *file = clock == CLOCK_REALTIME ? fopen(getenv("ADDED"), "r") : NULL;
    if (file) {
        long added = 0;
        if (fscanf(file, "%ld", &added) == 1) found->tv_sec += added;
        fclose(file);
    }
    return failed;
}
"""


@pytest.fixture
def settable(tmp_path: Path) -> dict[str, str]:
    """The environment of a process whose clock the file ADDED sets."""
    if shutil.which("cc") is None:
        pytest.skip(f"{COULD_NOT_RUN}no cc, which makes the library that sets a process's clock")
    source, library = tmp_path / "clock.c", tmp_path / "clock.so"
    source.write_text(LIBRARY)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "ADDED": str(tmp_path / "added")}


@pytest.mark.proves("faults.clock")
def test_records_go_on_and_no_broker_is_stale_when_the_clock_is_set(
    tmp_path: Path, settable: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with KafkaNode(tmp_path / "node") as node:
        driver = PipelineProcess(tmp_path / "pipeline", node.bootstrap, tick="1s", validity="20s")
        with monkeypatch.context() as of_driver:
            for name, value in settable.items():
                of_driver.setenv(name, value)
            driver.start(PATIENCE)
        brokers, told = Snapshots(node.bootstrap), 0

        def follows(after: int) -> bool:
            nonlocal told
            told += 1
            brokers.publish("1", [volume("/a", 10**6, told)])
            brokers.flush()
            return published(node.bootstrap)[-1].consumed > after

        try:
            eventually(lambda: follows(0), PATIENCE, poll=1)
            for seconds in ("3600", "-3600", "0"):
                Path(settable["ADDED"]).write_text(seconds)
                now = told
                eventually(lambda now=now: follows(now + 5), PATIENCE, poll=1)
            assert {each.stale for each in published(node.bootstrap)} == {0}
        finally:
            driver.kill()
