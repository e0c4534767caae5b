"""The dashboard: MLflow's server is started, and its links are printed once it answers."""

from types import SimpleNamespace

from normbench.results.pages import dashboard


def test_each_connection_to_the_starting_server_is_closed(monkeypatch, capsys):
    made = []

    class Connection:
        def __init__(self, *_, **__):
            self.is_open = True
            made.append(self)

        def request(self, *_):
            pass

        def getresponse(self):
            return SimpleNamespace(status=503 if len(made) < 3 else 200)

        def close(self):
            self.is_open = False

    monkeypatch.setattr(dashboard, "HTTPConnection", Connection)
    monkeypatch.setattr(dashboard, "POLL_INTERVAL", 0)
    dashboard._announce(SimpleNamespace(poll=lambda: None), "127.0.0.1", 1, ["link"])
    assert capsys.readouterr().out == "link\n"
    assert [connection.is_open for connection in made] == [False] * 3
