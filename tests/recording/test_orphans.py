"""A process that ends with its parent."""

import os
import sys
import threading

from normbench.recording.resume import orphans


def test_a_process_ends_where_its_parent_is_another_one_and_not_before(monkeypatch):
    parents, ended, looks = iter([7, 7, 1]), threading.Event(), []

    class System:
        """What of the system a watch asks."""

        @staticmethod
        def getppid():
            looks.append(None)
            return next(parents)

        @staticmethod
        def _exit(code):
            assert code == 1
            ended.set()

    monkeypatch.setattr(orphans, "os", System)
    monkeypatch.setattr(orphans, "WATCH_INTERVAL", 0.0)
    orphans.end_with.__wrapped__(7)
    assert ended.wait(10)
    assert len(looks) == 3


def test_a_child_is_started_with_the_process_that_it_ends_with(monkeypatch):
    command = ["/bin/python", "-m", "package.module", "word", "-m"]
    watched = orphans.watched(command)
    assert watched == [
        *("/bin/python", "-P", orphans.__file__, str(os.getpid())),
        *("-m", "package.module", "word", "-m"),
    ]
    ran, parents = [], []
    monkeypatch.setattr(orphans, "end_with", parents.append)
    monkeypatch.setattr(
        orphans.runpy,
        "run_module",
        lambda name, run_name, alter_sys: ran.append((name, run_name, alter_sys, [*sys.argv])),
    )
    monkeypatch.setattr(sys, "argv", watched[2:])
    orphans.main()
    assert parents == [os.getpid()]
    words = ["package.module", "word", "-m"]
    assert ran == [("package.module", "__main__", True, words)]
    assert sys.argv == words


def test_the_watch_of_a_process_does_not_keep_it_from_ending(monkeypatch):
    started = []

    class Thread:
        """A thread that is noted and not run."""

        def __init__(self, target, daemon):
            self.daemon = daemon

        def start(self):
            started.append(self.daemon)

    monkeypatch.setattr(orphans.threading, "Thread", Thread)
    orphans.end_with.cache_clear()
    for _ in range(3):
        orphans.end_with(1)
    orphans.end_with.cache_clear()
    assert started == [True]
