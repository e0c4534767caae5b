"""Slurm on this machine: two nodes, without accounting, in a folder of its own."""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from tests.servers.ports import free_port

COMMANDS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol")
NODES = ("node1", "node2")
CORES = 2  # that each node says it has
PATIENCE = 180.0  # seconds; with two processes of tests a task takes long to begin
# A node that does not answer is soon down; a task is lost with it, and not begun again.
CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/%n
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=6
JobRequeue=0
TaskProlog={folder}/prolog
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={cores} RealMemory=8000
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs={cores} RealMemory=8000
PartitionName=short Nodes=node1,node2 Default=YES MaxTime=60 State=UP
"""
# Runs before each task: one from the number in `held` on waits, at work for Slurm, for its end.
PROLOG = """#!/bin/sh
while [ "${{SLURM_ARRAY_TASK_ID:-0}}" -ge "$(cat {folder}/held 2>/dev/null || echo 9999)" ]; do
    sleep 0.1
done
"""


def missing() -> str:
    """Return why there can be no Slurm here, empty where there can; install it where root may."""
    if os.getuid() != 0:
        return "Slurm's daemons need root"
    if all(map(shutil.which, COMMANDS)):
        return ""
    if not shutil.which("apt-get"):
        return "Slurm is not installed, and there is no apt-get"
    with Path("/tmp/normbench.apt").open("w") as lock:  # two processes of pytest may come here
        fcntl.flock(lock, fcntl.LOCK_EX)
        for words in ("update", "install -y --no-install-recommends munge slurm-wlm"):
            if all(map(shutil.which, COMMANDS)):
                break
            quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            apt = ["apt-get", "-qq", *words.split()]
            done = subprocess.run(apt, env=quiet, capture_output=True, text=True)
            if done.returncode:
                reason = (done.stderr.strip().splitlines() or [""])[-1]
                return f"Slurm cannot be installed ({reason})"
    return ""


def wait(what: str, there: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until something is there; raise `TimeoutError` where it does not come."""
    end = time.monotonic() + seconds
    while not there():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.2)


class Cluster:
    """Slurm's daemons, from `with` to its end; `environment` is what its commands need."""

    def __init__(self) -> None:
        self.folder = Path(mkdtemp(prefix="slurm.", dir="/tmp"))  # sockets need short paths
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "Cluster":
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed(list(self.daemons)):
            self.end(name)
        shutil.rmtree(self.folder)

    def _start(self) -> None:
        host = socket.gethostname()
        told = CONF.format(
            host=host, folder=self.folder, ports=[free_port() for _ in range(3)], cores=CORES
        )
        (self.folder / "slurm.conf").write_text(told)
        (self.folder / "prolog").write_text(PROLOG.format(folder=self.folder))
        (self.folder / "prolog").chmod(0o700)
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = {"key-file": key, "socket": self.folder / "munge.socket"}
        files |= {f"{name}-file": self.folder / f"munge.{name}" for name in ("pid", "log", "seed")}
        self._daemon("munged", "-F", "--force", *(f"--{name}={at}" for name, at in files.items()))
        self.wait("munged", (self.folder / "munge.socket").exists)
        self._daemon("slurmctld", "-D")
        for node in NODES:
            self.begin(node)
        for node in NODES:
            idle = f"sinfo --noheader --nodes={node} --states=idle --format=%n"
            self.wait(f"{node} to be idle", lambda asked=idle: self.says(asked))

    def begin(self, node: str) -> None:
        """Start a node's daemon."""
        self._daemon("slurmd", "-D", "-N", node, name=node)

    def _daemon(self, *words: str, name: str = "") -> None:
        name = name or words[0]
        environment = {**self.environment, "STARTED_BY": f"{self.folder}/{name}"}
        with (self.folder / f"{name}.out").open("w") as out:
            self.daemons[name] = subprocess.Popen(
                words, env=environment, stdout=out, stderr=out, start_new_session=True
            )

    def says(self, words: str) -> str:
        """Return what one of Slurm's commands prints."""
        done = subprocess.run(words.split(), env=self.environment, capture_output=True, text=True)
        return done.stdout.strip()

    def wait(self, what: str, there: Callable[[], object], seconds: float = PATIENCE) -> None:
        """Wait until something is there; tell with Slurm's own logs where it does not come."""
        try:
            wait(what, there, seconds)
        except TimeoutError as error:
            logs = [file.read_text()[-1500:] for file in sorted(self.folder.glob("*.log"))]
            raise TimeoutError("\n".join([str(error), *logs])) from error

    @contextmanager
    def holding(self, first: int) -> Iterator[None]:
        """Hold the tasks of an array from its task number `first` on, before they do anything."""
        held = self.folder / "held"
        held.write_text(str(first))
        try:
            yield
        finally:
            held.unlink()

    def end(self, name: str) -> None:
        """Kill a daemon and all that it has started, as when its machine loses power."""
        daemon = self.daemons.pop(name)
        daemon.kill()  # first: what it begins would outlive it
        daemon.wait()
        while found := self._started_by(name):  # again: those that watch tasks begin them
            for process in found:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    def _started_by(self, node: str) -> list[int]:
        """Return the processes of a node: those that watch its tasks, and then the tasks."""
        mark = {f"SLURM_CONF={self.folder}/slurm.conf", f"SLURMD_NODENAME={node}"}
        watching, tasks = [], []
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                words = set((place / "environ").read_bytes().decode(errors="replace").split("\0"))
                if f"STARTED_BY={self.folder}/{node}" in words:
                    watching.append(int(place.name))
                elif mark <= words:
                    tasks.append(int(place.name))
        return [*watching, *tasks]
