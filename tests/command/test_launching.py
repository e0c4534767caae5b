"""What becomes of the jobs that are run here, in other processes, or in a queue."""

from hydra.core.utils import JobReturn, JobStatus

from normbench.command.config.compose import JobSpec
from normbench.command.sweep import launching, recorded

JOBS = [JobSpec({}, {}, number=number, overrides=(f"seed={number}",)) for number in range(5)]


def run(job):
    if job.number == 2:
        raise ArithmeticError(job.number)
    return {"number": job.number}


class Queue:
    """A queue that runs what it gets, two at once."""

    max_accepted_jobs = 2

    def __init__(self):
        self.given = []

    def launch(self, jobs):
        self.given.append([number for number, _ in jobs])
        done = {"status": JobStatus.COMPLETED}
        return [JobReturn(**done, _return_value={"number": number}) for number, _ in jobs]


def test_a_bug_in_a_job_is_kept_and_the_others_go_on():
    outcomes = launching.run_in_sequence(run, JOBS)
    assert [one["number"] for one in outcomes if isinstance(one, dict)] == [0, 1, 3, 4]
    assert isinstance(outcomes[2], ArithmeticError)


def test_a_queue_gets_what_is_not_recorded(monkeypatch):
    monkeypatch.setattr(recorded, "find_run", lambda job: {1: "a", 3: "b"}.get(job.number))
    queue = Queue()
    outcomes = launching.run_in_queue(queue, JOBS, lambda job, run: {"taken": run})
    assert queue.given == [[0, 2], [4]]
    assert outcomes == [{"number": 0}, {"taken": "a"}, {"number": 2}, {"taken": "b"}, {"number": 4}]


def test_a_queue_gets_nothing_where_all_is_recorded(monkeypatch):
    monkeypatch.setattr(recorded, "find_run", lambda job: "a")
    queue = Queue()
    outcomes = launching.run_in_queue(queue, JOBS, lambda job, run: {"taken": run})
    assert queue.given == []
    assert outcomes == [{"taken": "a"}] * 5
