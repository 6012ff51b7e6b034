"""A real S3 server for the tests of a module; it starts when the first of them asks for it."""

import pytest

from support.cloud.s3 import BUCKET, s3_server
from whenabouts_cloud.landing.store import Store


@pytest.fixture(scope="module")
def bucket():
    """The URI of a bucket."""
    with s3_server():
        yield f"s3://{BUCKET}"


@pytest.fixture(params=["folder", "bucket"])
def place(request, tmp_path):
    """A path in a folder, then a URI in a bucket, of this test alone; nothing is there."""
    return tmp_path / "place" if request.param == "folder" else f"{request.getfixturevalue('bucket')}/{tmp_path.name}"


@pytest.fixture
def bucket_store(bucket, request):
    """A store in a bucket, of this test alone."""
    return Store.at(f"{bucket}/{request.node.name.replace('[', '-').rstrip(']')}")
