"""A standalone cluster of Spark on this machine: master, workers and a server of Spark Connect, each a process."""

import json
import os
import signal
import socket
import subprocess
import sys
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


class ConnectServer:
    """A server of Spark Connect with a local Spark of two cores; its Python finds what lies in these folders."""

    def __init__(self, folder: Path, python_path: str = "") -> None:
        home, port = Path(pyspark.__file__).parent, free_port()
        env = {"PATH": os.environ["PATH"], "JAVA_HOME": str(java_home(os.environ)), "SPARK_HOME": str(home)}
        env |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": python_path}
        settings = {"spark.connect.grpc.binding.port": port, "spark.ui.enabled": "false"}
        command = [home / "bin/spark-submit", "--master", "local[2]"]
        command += [x for name, value in settings.items() for x in ("--conf", f"{name}={value}")]
        command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
        self._log = (folder / "server").open("w")
        self._process = subprocess.Popen(
            list(map(str, command)), env=env, cwd=folder, stdout=self._log, stderr=self._log, start_new_session=True
        )
        self.address = f"sc://127.0.0.1:{port}"
        until(lambda: self._answers(port), lambda: (folder / "server").read_text(), TIMEOUT_S, every_s=0.2)

    def stop(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(TIMEOUT_S)
        self._log.close()

    @staticmethod
    def _answers(port: int) -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return False
        return True
