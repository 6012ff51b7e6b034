"""A standalone cluster of Spark on this machine: master, workers and a server of Spark Connect, each a process."""

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pyspark

from spark.background import TIMEOUT_S
from support.waiting import until
from whenabouts_cloud.jobs.session.java import java_home


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Cluster:
    """A master with workers of one core each; without any code of this project."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder, home = folder, Path(pyspark.__file__).parent
        self._home = home
        self._env = {"PATH": os.environ["PATH"], "JAVA_HOME": str(java_home(os.environ)), "SPARK_HOME": str(home)}
        self._env |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
        self.log = folder / "log"
        self._file = self.log.open("w")
        self._web, port = free_port(), free_port()
        self.address = f"spark://127.0.0.1:{port}"
        self._master = self._start(
            "deploy.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", self._web
        )
        self._workers: list[subprocess.Popen[bytes]] = []
        for _ in range(workers):
            self.add_worker()
        self.wait_for(workers)

    def add_worker(self) -> None:
        options = ("--host", "127.0.0.1", "--port", 0, "--webui-port", 0, "--cores", 1, "--memory", "1200m")
        worker = "deploy.worker.Worker"
        self._workers.append(self._start(worker, *options, "--work-dir", self._folder / "work", self.address))

    def kill_worker(self) -> None:
        """SIGKILL to a worker with its executor and their Python processes."""
        os.killpg(self._workers.pop(0).pid, signal.SIGKILL)

    def wait_for(self, workers: int) -> None:
        until(lambda: self.alive() >= workers, lambda: "workers\n" + self.log.read_text(), TIMEOUT_S, every_s=0.2)

    def alive(self) -> int:
        try:
            with urlopen(f"http://127.0.0.1:{self._web}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except OSError:
            return 0

    def stop(self) -> None:
        for process in (*self._workers, self._master):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(TIMEOUT_S)
        self._file.close()

    def _start(self, name: str, *options: object) -> "subprocess.Popen[bytes]":
        command = [self._home / "bin/spark-class", f"org.apache.spark.{name}", *options]
        return subprocess.Popen(
            list(map(str, command)), env=self._env, cwd=self._folder, stdout=self._file, stderr=self._file,
            start_new_session=True,
        )  # fmt: skip
