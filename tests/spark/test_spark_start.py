"""How Spark is started: Java maps the classes that it needs from an archive instead of loading them one by one."""

import os
from pathlib import Path

from whenabouts_cloud.spark.java import java_home
from whenabouts_cloud.spark.shared_classes import archive_path, java_options


def test_java_maps_the_archive_that_setting_up_made(spark):
    """The file is in the memory map of the running Java: it was found fit for this version and these jars."""
    process = spark._jvm.java.lang.ProcessHandle.current().pid()
    assert str(archive_path(java_home(os.environ))) in Path(f"/proc/{process}/maps").read_text()


def test_without_an_archive_java_is_not_told_of_one(tmp_path):
    """Another Java has an archive of its own; as long as that was not made it starts as ever, only slower."""
    assert archive_path(tmp_path) != archive_path(java_home(os.environ))
    assert "SharedArchiveFile" not in java_options(tmp_path)
