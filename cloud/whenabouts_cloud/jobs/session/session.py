"""One Spark session set up for these jobs: small, quiet, on the loopback interface if local.

On a cluster (`spark://…`) the packages that the workers import are zipped and shipped with the job, so this project need not
be installed there. The machines need Python of the same minor version with numpy, pandas and pyarrow, at the path that
PYSPARK_PYTHON names (default: this interpreter's), and shared folders for landing and output.
"""

import atexit
import os
import re
import shutil
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from whenabouts_cloud.jobs.session.java import java_home
from whenabouts_cloud.jobs.session.shared_classes import java_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
WORKERS = "whenabouts_cloud.jobs.session.forked_workers"  # forks the Python workers of this machine
PACKAGES = ("whenabouts_cloud", "whenabouts_protocol")  # what the Python workers import


def start_session(master: str = "local[2]", name: str = "whenabouts", shuffle_partitions: int = 4) -> "SparkSession":
    """Start Spark, or return the running session.

    Takes 3 to 5 s with an archive of Java's classes (`shared_classes`), twice as long without. Sets JAVA_HOME,
    PYSPARK_PYTHON and PYTHONPATH of this process for Spark's own processes.

    Raises:
        NoJavaError: no Java 17 or newer.
    """
    from pyspark.sql import SparkSession

    home = java_home(os.environ)
    os.environ["JAVA_HOME"] = str(home)
    local = master.startswith("local")
    if local or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [*dict.fromkeys(_package_folders(PACKAGES)), *_given(os.environ.get("PYTHONPATH"))]
    )
    settings = _settings(min(shuffle_partitions, local_cores(master) or shuffle_partitions), java_options(home))
    if local:
        settings["spark.python.daemon.module"] = WORKERS
    if local or urlsplit(master).hostname in ("127.0.0.1", "localhost"):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    builder: Any = SparkSession.builder
    session: SparkSession = builder.master(master).appName(name).config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if not local:
        folder = tempfile.mkdtemp(prefix="whenabouts-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)  # later workers fetch the file from there
        session.sparkContext.addPyFile(str(packages_zip(Path(folder))))
    return session


def local_cores(master: str) -> int | None:
    """Cores that a local master uses; None for a cluster. More partitions of a query's state than cores only cost time."""
    found = re.fullmatch(r"local(?:\[(\*|[0-9]+).*\])?", master)
    if found is None:
        return None
    return 1 if found[1] is None else (os.cpu_count() or 1) if found[1] == "*" else int(found[1])


def packages_zip(folder: Path) -> Path:
    """Make a zip of the packages that workers import, for Spark to ship."""
    made = folder / "whenabouts.zip"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for package, home in zip(PACKAGES, _package_folders(PACKAGES), strict=True):
            for file in sorted((Path(home) / package).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, file.relative_to(home))
    return made


def _settings(shuffle_partitions: int, java: str) -> dict[str, str]:
    return {
        "spark.driver.memory": "1g",  # the rows live in the Python workers; the JVM only moves them
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{LOG_SETTINGS} {java}",
        "spark.ui.enabled": "false",
        # Otherwise each call that makes a column looks up its source line, which takes longer than the call.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        # A commit then writes what has changed, not the whole store.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # These jobs do nothing in a micro-batch without input.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    }


def _package_folders(packages: tuple[str, ...]) -> list[str]:
    """Return the parent folder of each package."""
    folders = []
    for package in packages:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"package {package}: found none, expected it installed beside whenabouts_cloud")
        folders.append(str(Path(spec.origin).parent.parent))
    return folders


def _given(path: str | None) -> list[str]:
    return [entry for entry in (path or "").split(os.pathsep) if entry]
