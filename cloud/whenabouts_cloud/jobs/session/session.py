"""One Spark session set up for these jobs: small, quiet, on the loopback interface if local.

On a cluster (`spark://…`, `yarn`, `k8s://…`, Spark Connect `sc://…`) the packages that the workers import are zipped and
shipped with the job, so this project need not be installed there. The workers need Python of the same minor version with
numpy, numba, pandas, pyarrow, lark and cryptography: at the path that PYSPARK_PYTHON names (default: this interpreter's), or
in an archive that is shipped too. Landing and output are object stores, or folders that all machines share. Memory, cores
and whatever else a cluster decides come from spark-defaults.conf, or from the server of Spark Connect.
"""

import atexit
import contextlib
import os
import re
import shlex
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from whenabouts_cloud.jobs.session.java import java_home
from whenabouts_cloud.jobs.session.shared_classes import java_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
WORKERS = "whenabouts_cloud.jobs.session.forked_workers"  # forks the Python workers of this machine
ENVIRONMENT = "environment"  # where workers unpack the archive of an environment
PACKAGES = ("whenabouts_cloud", "whenabouts_protocol")  # what the Python workers import


class NoConnectError(Exception):
    """The client of Spark Connect is not installed; the text says what to do."""


def start_session(
    master: str = "local[2]", name: str = "whenabouts", shuffle_partitions: int = 4, environment: Path | None = None
) -> "SparkSession":
    """Start Spark, or return the running session. environment: archive of a Python for the workers of a cluster.

    Takes 3 to 5 s with an archive of Java's classes (`shared_classes`), twice as long without. Sets JAVA_HOME,
    PYSPARK_PYTHON and PYTHONPATH of this process for Spark's own processes.

    Raises:
        NoJavaError: no Java 17 or newer.
        NoConnectError: a server of Spark Connect is named, and its client is not installed.
    """
    from pyspark.sql import SparkSession

    if is_connect(master):
        return _connected(master, name, shuffle_partitions, environment)
    home = java_home(os.environ)
    os.environ["JAVA_HOME"] = str(home)
    local = master.startswith("local")
    if environment is not None and not local:
        os.environ["PYSPARK_PYTHON"] = f"./{ENVIRONMENT}/bin/python"
    elif local or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    path = os.environ["PYTHONPATH"] = os.pathsep.join(
        [*dict.fromkeys(_package_folders(PACKAGES)), *_given(os.environ.get("PYTHONPATH"))]
    )
    if local:
        os.environ["PYSPARK_PYTHON"] = str(_python_in(_temporary_folder(), PYTHONPATH=path))
    settings = _settings(min(shuffle_partitions, local_cores(master) or shuffle_partitions))
    settings["spark.driver.defaultJavaOptions"] = f"-Dlog4j2.configurationFile=file:{LOG_SETTINGS}"
    if local:
        settings["spark.python.daemon.module"] = WORKERS
        settings["spark.driver.memory"] = "1g"  # the rows live in the Python workers; the JVM only moves them
        settings["spark.driver.defaultJavaOptions"] += f" {java_options(home)}"
        settings |= {"spark.shuffle.compress": "false", "spark.rdd.compress": "false"}  # packed rows are compressed
    elif environment is not None:
        settings["spark.archives"] = f"{environment}#{ENVIRONMENT}"
    if local or urlsplit(master).hostname in ("127.0.0.1", "localhost"):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    builder: Any = SparkSession.builder
    with _java_beside_an_environment() if environment is not None and not local else contextlib.nullcontext():
        session: SparkSession = builder.master(master).appName(name).config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if not local:
        session.sparkContext.addPyFile(_shipped())
    return session


def is_connect(master: str) -> bool:
    """True for a server of Spark Connect."""
    return master.startswith("sc://")


def _connected(master: str, name: str, shuffle_partitions: int, environment: Path | None) -> "SparkSession":
    """A session at a server of Spark Connect, which has no Java here, and no Spark context."""
    try:
        from pyspark.sql.connect.session import SparkSession as ConnectSession
    except ImportError as error:
        raise NoConnectError(
            f"--master {master}: needs a package ({error}); run: pip install 'whenabouts[connect]'"
        ) from None
    settings = {name: value for name, value in _settings(shuffle_partitions).items() if name.startswith("spark.sql.")}
    builder: Any = ConnectSession.builder.remote(master).appName(name)
    session: Any = builder.config(map=settings).getOrCreate()
    session.addArtifacts(_shipped(), pyfile=True)
    if environment is not None:
        session.addArtifacts(f"{environment}#{ENVIRONMENT}", archive=True)
        session.conf.set("spark.sql.execution.pyspark.python", f"{ENVIRONMENT}/bin/python")
    return cast("SparkSession", session)  # the same interface, of what these jobs call


@contextlib.contextmanager
def _java_beside_an_environment() -> Iterator[None]:
    """Start Java in a folder where the path of the workers' Python, which is relative, leads to the Python of this process.

    Spark plans a data source on this machine with the Python that it names to the workers.
    """
    folder, before = _temporary_folder(), Path.cwd()
    _python_in(folder / ENVIRONMENT / "bin")
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _python_in(folder: Path, **variables: str) -> Path:
    """Make a command `python` that starts this process's Python, with these environment variables.

    With its own PYTHONPATH it imports PySpark from where it is installed, compiled. Spark puts its archive of PySpark before
    that, and each Python that it starts would compile what it imports from there: 1.9 s of a core in place of 0.6 s.
    """
    given = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\n{given}exec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    return python


def _temporary_folder() -> Path:
    """A folder that exists until this process ends."""
    folder = tempfile.mkdtemp(prefix="whenabouts-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _shipped() -> str:
    """The zip of the packages, kept until this process ends: later workers fetch it from here."""
    return str(packages_zip(_temporary_folder()))


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


def _settings(shuffle_partitions: int) -> dict[str, str]:
    return {
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
