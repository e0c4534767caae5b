"""Where servers of tests stand: on this machine alone, at a port that is free."""

import socket

HOST = "127.0.0.1"


def free_port() -> int:
    """Return a port that nobody has."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Return whether somebody listens at a port."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
