"""A process that ends with its parent."""

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
