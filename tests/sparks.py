"""A session of Spark in this process, for the tests of tables."""

import contextlib
import importlib.util
import shutil
import signal
from importlib.metadata import PackageNotFoundError, version

import pytest

# what is alike on each engine; differences between engines are tested on each of them
BY_HAND = pytest.param("spark", marks=pytest.mark.slow)
NO_SPARK = "tables were NOT tested on it (.ci/run installs the extra spark and Java for a step)"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.adaptive.enabled": "false",  # the tables are tiny
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
    "spark.sql.ansi.enabled": "false",  # which our own session does not take over
}


def pytest_configure(config):
    """Let PySpark before 4.2 leave it to the garbage collector to close its sockets."""
    with contextlib.suppress(PackageNotFoundError):
        if tuple(map(int, version("pyspark").split(".")[:2])) < (4, 2):
            config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A session on two cores; tests are skipped, aloud, without the extra or Java."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip(f"pyspark is not installed: {NO_SPARK}")
    if shutil.which("java") is None:
        pytest.skip(f"Java is not installed: {NO_SPARK}")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    folder = str(tmp_path_factory.mktemp("warehouse"))
    builder = builder.config("spark.sql.warehouse.dir", folder)
    interrupt = signal.getsignal(signal.SIGINT)
    session = builder.getOrCreate()
    signal.signal(signal.SIGINT, interrupt)  # Spark has put its own there
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
