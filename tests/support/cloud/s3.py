"""A server of S3's protocol on this machine (moto), in a process of its own, with one bucket."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=int(sys.argv[1]), verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
BUCKET = "landings"


def variables(port: int) -> dict[str, str]:
    """The variables by which every client finds a server at this port."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip


@contextmanager
def s3_server(port: int = 0) -> Iterator[dict[str, str]]:
    """Start it, at any free port; yields the variables by which clients find it, which are set in this process too."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    chosen = variables(int(server.stdout.readline()))
    before = {name: os.environ.get(name) for name in chosen}
    os.environ.update(chosen)
    try:
        import boto3

        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield chosen
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        server.kill()
        server.wait()
