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
    # And as where Spark's own defaults, for all who use the machine, split files.
    machine = tmp_path_factory.mktemp("spark")
    (machine / "spark-defaults.conf").write_text("spark.sql.files.maxRecordsPerFile 1\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(machine))
        made = session("quotahost-tests", "local[2]", conf)
    yield made
    made.stop()
