"""All tests of the pipeline share one Spark session, because its start takes longer than most of the tests."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from quotahost.pipeline.session import local, session

OPTIONS = "spark.driver.extraJavaOptions"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # On some machines no native library can be loaded from the temporary files. Here it is so, too.
    without_snappy = f"{local('local')[OPTIONS]} -XX:TieredStopAtLevel=1 -Dorg.xerial.snappy.disable.bundled.libs=true"
    conf = {OPTIONS: without_snappy, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    # On some machines Spark's own defaults, which hold for all users, split files. Here it is so, too.
    machine = tmp_path_factory.mktemp("spark")
    (machine / "spark-defaults.conf").write_text("spark.sql.files.maxRecordsPerFile 1\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(machine))
        made = session("quotahost-tests", "local[2]", conf)
    yield made
    made.stop()
