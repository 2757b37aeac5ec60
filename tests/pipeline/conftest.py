"""One Spark session for all tests of the pipeline: its start takes longer than most of them."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from quotahost.pipeline.session import local, session

OPTIONS = "spark.driver.extraJavaOptions"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # As on a machine where no native library can be loaded from the temporary files.
    without_snappy = f"{local('local')[OPTIONS]} -XX:TieredStopAtLevel=1 -Dorg.xerial.snappy.disable.bundled.libs=true"
    conf = {OPTIONS: without_snappy, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    made = session("quotahost-tests", "local[2]", conf)
    yield made
    made.stop()
