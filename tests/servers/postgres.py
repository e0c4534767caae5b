"""A PostgreSQL of a test's own: on 127.0.0.1 alone, with a password, and gone afterwards."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import psycopg

from tests.servers.ports import HOST, free_port

PATIENCE = 60.0  # seconds until it answers
USER = "postgres"  # which runs it, where this process is root's: it refuses root


@dataclass(frozen=True)
class Postgres:
    """A PostgreSQL that is up."""

    port: int
    password: str
    process: subprocess.Popen[bytes]

    def uri(self, database: str) -> str:
        """Return a database's URI, as SQLAlchemy reads it."""
        return f"postgresql+psycopg://{USER}:{self.password}@{HOST}:{self.port}/{database}"

    def create(self, database: str) -> str:
        """Make an empty database; return its URI."""
        self.ask("postgres", f'create database "{database}"')
        return self.uri(database)

    def ask(self, database: str, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Return what a database answers; nothing for a command."""
        place = self.uri(database).replace("+psycopg", "")
        with psycopg.connect(place, autocommit=True, connect_timeout=5) as connection:
            done = connection.execute(query, values)
            return done.fetchall() if done.description else []


@contextmanager
def postgres(durable: bool = False, **settings: str) -> Iterator[Postgres]:
    """Start a PostgreSQL in a temporary folder.

    durable: wait for the disk, as a laboratory's does. settings: PostgreSQL's own.
    """
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="postgres"))
    user = USER if os.geteuid() == 0 else None
    if user:
        shutil.chown(folder, user, user)
    password = token_hex()
    words = folder / "password"
    words.write_text(password)
    data = folder / "data"
    options = ["--no-sync", "--locale=C", "--encoding=UTF8", "--auth=scram-sha-256"]
    as_user = {"user": user, "group": user, "extra_groups": [] if user else None, "cwd": folder}
    subprocess.run(
        [programs / "initdb", "-D", data, "-U", USER, f"--pwfile={words}", *options],
        check=True,
        capture_output=True,
        **as_user,
    )
    words.unlink()
    port = free_port()
    settings = {
        "listen_addresses": HOST,
        "port": str(port),
        "unix_socket_directories": "",
        "fsync": "on" if durable else "off",
        "synchronous_commit": "on" if durable else "off",
        **settings,
    }
    told = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [programs / "postgres", "-D", data, *told],
            stdout=log,
            stderr=log,
            start_new_session=True,
            **as_user,
        )
    found = Postgres(port, password, process)
    try:
        _answers(found, folder / "log")
        yield found
    finally:
        process.send_signal(signal.SIGINT)  # its fast shutdown
        process.wait()
        shutil.rmtree(folder)


def _answers(found: Postgres, log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            found.ask("postgres", "select 1")
            return
        except psycopg.OperationalError:
            if found.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL does not start: {log.read_text()}") from None
            time.sleep(0.05)


def _programs() -> Path:
    """Return the folder of PostgreSQL's programs, installed where they are absent."""
    if not _installed():
        if os.geteuid() != 0:
            raise RuntimeError("PostgreSQL is not installed; run: apt-get install postgresql")
        # On run level 1 Debian does not start the server that it would make.
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        for words in (["update", "-qq"], ["install", "-y", "-qq", "postgresql"]):
            subprocess.run(["apt-get", *words], check=True, env=quiet, stdout=subprocess.DEVNULL)
    return _installed()[-1]


def _installed() -> list[Path]:
    """Return the folders that have PostgreSQL's programs, the newest version last."""
    found = [file.parent for file in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    there = shutil.which("initdb")
    return sorted(found, key=lambda place: int(place.parent.name)) or (
        [Path(there).parent] if there else []
    )
