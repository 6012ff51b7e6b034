"""An archive of Java classes that halves the start time of Spark; `whenabouts_cloud.warm` makes it.

Spark takes 7 s to start, and another 7 s until its first query has run. Most of that time loads and verifies some 20 000
classes from 200 jars. Java can store the loaded classes in one file and map it instead (JEP 310, application class data
sharing). A session on a tiny landing records the classes; a second Java writes the file. Java ignores a file of another
version or other jars and then starts without one.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from whenabouts_cloud.jobs.session.java import java_home

# A collector for a small heap, on which the archive depends. Java only moves rows here: compiling it further took more time
# than the jobs ever gained.
OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
TRAINED = "whenabouts_cloud.jobs.shared_classes_training"


def archive_path(home: Path) -> Path:
    """Return the path of the archive for this Java home, inside the environment that Spark is installed in."""
    spec = find_spec("pyspark")
    jars = "" if spec is None or spec.origin is None else spec.origin
    release = next((f.read_bytes() for f in (home / "release", home.parent / "release") if f.exists()), b"")
    key = hashlib.blake2b(f"{home} {jars}".encode() + release, digest_size=8).hexdigest()
    return Path(sys.prefix) / "var" / "whenabouts" / f"spark-{key}.jsa"


def java_options(home: Path) -> str:
    """Return the options for Java, with the archive if it exists."""
    archive = archive_path(home)
    # -Xlog:disable: Java 17 reports on stdout that it could not use a file, which does not concern the job.
    return f"{OPTIONS} -XX:SharedArchiveFile={archive} -Xlog:disable" if archive.exists() else OPTIONS


def make_archive() -> Path:
    """Write the archive for the Java that Spark would start with; about 40 s and 180 MB.

    Raises:
        NoJavaError: there is no Java 17 or newer.
        OSError: the environment is not writable.
        RuntimeError: Spark or Java failed; the text is its output.
    """
    home = java_home(os.environ)
    archive = archive_path(home)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        classes, arguments, made = (Path(folder) / name for name in ("classes", "arguments", "made.jsa"))
        note = f"{OPTIONS} -XX:DumpLoadedClassList={classes}"
        env = dict(os.environ, JAVA_HOME=str(home), SPARK_SUBMIT_OPTS=note)
        _run([sys.executable, "-m", TRAINED, folder, str(arguments)], env)
        dump = ["-Xshare:dump", f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={made}", "-Xlog:disable"]
        same = arguments.read_text(encoding="utf-8").splitlines()
        _run([str(home / "bin/java"), *OPTIONS.split(), *dump, *same], env)
        for old in archive.parent.glob("spark-*.jsa"):
            old.unlink()
        made.rename(archive)
    return archive


def _run(command: list[str], env: dict[str, str]) -> None:
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout)[-2000:]
        raise RuntimeError(f"archive of Java's classes: found exit code {done.returncode} of {command[0]}: {said}")
