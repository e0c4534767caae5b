"""No form of a password or a token gets through, and nothing else is blotted out."""

import base64
import io
import json
import os
import shlex
import subprocess
import sys
import time
from urllib.parse import quote, quote_plus

import pytest

from normbench.results.safe import clean, secrets

SECRET = "s3cret-W0rd"
ODD = "p@s/s: w%o{r}d;'\"\\\n&é"  # every mark that ends something somewhere


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(secrets, "_secrets", set())
    monkeypatch.setattr(secrets, "_settings", set())
    secrets._learned_pattern.cache_clear()
    yield
    secrets._learned_pattern.cache_clear()


ODBC = f"DRIVER={{ODBC 18}};SERVER=h;UID=me;PWD={SECRET};Encrypt=yes"
# A text in which the secret stands, where nobody knew of it before.
PLACES = {
    "database": f"postgresql://me:{SECRET}@h/db",
    "driver": f"mysql+pymysql://me:{SECRET}@h:3306/db",
    "without a user": f"redis://:{SECRET}@h/0",
    "server": f"at http://me:{SECRET}@h:5000/#/experiments/1",
    "mlflow": f"View run sweep 1 at: http://me:{SECRET}@127.0.0.1:5000/#/experiments/1/runs/2",
    "token": f"https://{SECRET}@h/",
    "token of git": f"git+https://{SECRET}@h/x.git",
    "token and nothing": f"https://{SECRET}:@h/",
    "token of github": f"https://{SECRET}:x-oauth-basic@h/",
    "long token": f"https://glpat{SECRET}0123456789:x@h/",
    "no scheme before the slashes": f"tracking.uri=//me:{SECRET}@h",
    "no host": f"tracking.uri=http://me:{SECRET}",
    "no host, and a path": f"http://me:{SECRET}/x",
    "no host, in quotes": f"Invalid URL 'http://me:{SECRET}': no host",
    "an at in it": f"postgresql://me:x@{SECRET}@h/db",
    "a slash in it": f"postgresql://me:x/{SECRET}@h/db",
    "a blank in it": f"postgresql://me:x {SECRET}@h/db",
    "a newline in it": f"postgresql://me:x\n{SECRET}@h/db",
    "a colon in it": f"postgresql://me:x:{SECRET}@h/db",
    "hash and question": f"postgresql://me:?#{SECRET}@h/db",
    "digits first": f"postgresql://me:1234/{SECRET}@h/db",
    "no scheme": f"Failed to parse: me:{SECRET}@h, label too long",
    "encoded": f"postgresql://me:{quote(SECRET + '/@', safe='')}@h/db",
    "whole uri encoded": quote(f"uri=postgresql://me:{SECRET}@h/db", safe=""),
    "encoded twice": quote(quote(f"postgresql://me:{SECRET}@h/db", safe=""), safe=""),
    "query": f"mysql://h/db?user=me&password={SECRET}&ssl=1",
    "passwd": f"mysql://h/db?passwd={SECRET}",
    "token in a query": f"https://h/x?access_token={SECRET}&x=1",
    "signature": f"https://h/x?X-Amz-Signature={SECRET}&X-Amz-Date=1",
    "sig": f"https://h.blob.core.windows.net/x?sv=1&sig={SECRET}",
    "key": f"https://h/x?key={SECRET}",
    "api key": f"https://h/x?apikey={SECRET}",
    "account key": f"AccountName=x;AccountKey={SECRET};EndpointSuffix=y",
    "dsn": f"host=h user=me password={SECRET} dbname=db",
    "dsn in quotes": f"host=h password='x {SECRET}' dbname=db",
    "odbc": ODBC,
    "odbc with a blank": f"SERVER=h;PWD=x {SECRET};UID=me",
    "odbc in braces": f"SERVER=h;PWD={{x;{SECRET}}};UID=me",
    "odbc in a uri": f"mssql+pyodbc:///?odbc_connect={quote_plus(ODBC)}",
    "odbc of its own": f"connect to {quote_plus(ODBC)}",
    "odbc encoded twice": quote(quote_plus(ODBC), safe=""),
    "jdbc": f"jdbc:postgresql://h/db?user=me&password={SECRET}",
    "python": f"{{'user': 'me', 'password': '{SECRET}'}}",
    "json": json.dumps({"token": SECRET}),
    "yaml": f"user: me\npassword: {SECRET}\n",
    "environment": f"MLFLOW_TRACKING_PASSWORD={SECRET}",
    "basic": f"Authorization: Basic {SECRET}",
    "bearer": f'"Authorization": "Bearer {SECRET}"',
    "bearer alone": f"sent Bearer {SECRET}",
    "hydra": f"Error executing job with overrides: ['tracking.uri=http://me:{SECRET}@h']",
    "shell": shlex.join(["normbench", f"tracking.uri=postgresql://me:x {SECRET}'@h/db"]),
}


@pytest.mark.parametrize("form", PLACES)
def test_a_secret_is_told_by_its_place(form):
    assert SECRET in PLACES[form]
    blotted = secrets.blot(PLACES[form])
    assert SECRET not in blotted
    assert secrets.BLOT in blotted
    assert secrets.blot(blotted) == blotted


# The words in which a command is told a secret.
TOLD = {
    "database": f"tracking.uri=postgresql://me:{ODD}@h/db",
    "encoded": f"tracking.uri=postgresql://me:{quote(ODD, safe='')}@h/db",
    "server": f"--store=http://me:{ODD}@h",
    "query": f"dataset.path=https://h/x.csv?password={quote(ODD, safe='')}",
    "odbc": "tracking.uri=mssql+pyodbc:///?odbc_connect="
    + quote_plus(f"UID=me;PWD={{{ODD.replace('}', '}}')}}}"),
}
# What libraries make of a secret when they tell of it.
WRITTEN = {
    "as it is": ODD,
    "in one line": " ".join(ODD.split()),
    "in python": repr(ODD),
    "in json": json.dumps(ODD),
    "for a uri": quote(ODD),
    "for a uri, whole": quote(ODD, safe=""),
    "for a query": quote_plus(ODD),
    "for a uri, twice": quote(quote(ODD, safe=""), safe=""),
    "in a shell": shlex.quote(ODD),
    "in html": ODD.replace("&", "&amp;").replace("'", "&#39;").replace('"', "&#34;"),
    "in an iterable": str([f"tracking.uri=x://me:{ODD}@h"]),
}
PIECES = ("w%o", "w%25o", "w%2525o")


@pytest.mark.parametrize("way", WRITTEN)
@pytest.mark.parametrize("told", [name for name in TOLD if name != "odbc"])
def test_what_is_known_is_blotted_wherever_it_stands(told, way):
    secrets.learn(TOLD[told])
    blotted = secrets.blot(f"it failed: <{WRITTEN[way]}>, sadly")
    assert not any(piece in blotted for piece in PIECES)
    assert blotted.endswith(", sadly")


def test_of_a_driver_as_well():
    secrets.learn(TOLD["odbc"].replace(quote_plus(ODD.replace("}", "}}")), SECRET))
    assert SECRET not in secrets.blot(f"login failed ({SECRET})")


def test_the_name_and_password_that_a_header_holds_are_blotted():
    secrets.learn(f"http://me:{SECRET}@h")
    header = base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert header not in secrets.blot(f"sent {header}")


def test_a_part_that_a_library_cut_off_is_blotted():
    secrets.learn("tracking.uri=http://me:geh7/eim8@h")
    for words in ("Port could not be cast to integer value as 'geh7'", "no host 'eim8@h'"):
        assert not {"geh7", "eim8"} & set(secrets.blot(words).replace("@", "'").split("'"))


@pytest.mark.parametrize(
    "name", ["MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN", "PGPASSWORD", "MYSQL_PWD"]
)
def test_what_the_environment_holds_is_blotted(monkeypatch, name):
    monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("HTTPS_PROXY", "http://me:other-0ne@proxy")
    secrets.learn_environment()
    assert secrets.blot(f"a {SECRET} and other-0ne in {os.getcwd()}") == (
        f"a *** and *** in {os.getcwd()}"
    )


HARMLESS = (
    "tracking.uri=sqlite:////home/me/mlflow.db: the store cannot be opened",
    "http://127.0.0.1:5000/#/experiments/1/runs?workflowType=machine_learning",
    "http://127.0.0.1:5000/#/experiments/1/runs?compareRunsMode=CHART&viewStateShareKey=s-1",
    "postgresql://me@h/db",
    "dataset.token: no such setting; normbench --cfg job lists them",
    "password authentication failed for user me",
    "scheme    best step  cost   test cost\nstandard        0.1  0.5         0.25",
    "normalizer=standard,pca_sphere step_sizes=[0.1,1] dataset.path=a@b.csv",
    "written to someone@example.org, at 10:30; see http://h/a",
    "max_tokens=5; keys: 3; 100 percent (50%) of it",
)


@pytest.mark.parametrize("text", HARMLESS)
def test_nothing_else_is_blotted(text):
    assert secrets.blot(text) == text


@pytest.mark.parametrize("word", ["test", "standard", "identity", "100", "pw"])
def test_a_password_that_is_an_ordinary_word_leaves_the_tables_whole(word):
    secrets.learn(f"tracking.uri=http://me:{word}@h")
    assert secrets.blot(f"scheme {word} cost {word}_cost 1{word}") == (
        f"scheme {word} cost {word}_cost 1{word}"
    )
    assert secrets.blot(f"could not use '{word}' of http://me:{word}@h") == (
        f"could not use '{secrets.BLOT if len(word) > 2 else word}' of http://me:***@h"
    )


@pytest.mark.commands
def test_a_long_text_takes_no_time():
    secrets.learn(f"http://me:{SECRET}@h")
    for text in ("://a:" * 50_000, "%3A%2F%2F" * 50_000, "PWD=" * 50_000, "x" * 1_000_000):
        secrets.blot(text)


def test_a_stream_blots_what_comes_in_pieces():
    secrets.learn(f"http://me:{ODD}@h")
    under = io.StringIO()
    stream = clean.Stream(under)
    for letter in f"at {SECRET} http://me:{SECRET}@h/\n":
        stream.write(letter)
    stream.writelines(["PGPASS", f"WORD={SECRET}"])
    stream.flush()
    stream.write(f"http://me:{ODD}@h\n")
    assert under.getvalue().startswith(f"at {SECRET} http://me:***@h/\nPGPASSWORD=***")
    assert "w%o" not in under.getvalue()


GUARDED = """
import logging, sys, warnings
from normbench.results.safe import clean
clean.guard(*sys.argv[1:])
logging.basicConfig()
logging.getLogger("mlflow").warning("at %s", sys.argv[2])
warnings.warn(sys.argv[2])
sys.stdout.write(f"View run at {sys.argv[1]}\\n")
raise ValueError(sys.argv[2])
"""


def test_loggers_warnings_and_tracebacks_go_through_it():
    done = subprocess.run(
        [sys.executable, "-c", GUARDED, f"http://me:{SECRET}@h/", SECRET],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert SECRET not in done.stdout + done.stderr
    assert done.stdout == "View run at http://me:***@h/\n"
    for words in ("WARNING:mlflow:at ***", "UserWarning: ***", "ValueError: ***"):
        assert words in done.stderr


@pytest.mark.commands
def test_a_long_word_is_learnt_in_linear_time():
    """What took minutes of 100,000 digits: the words of a list of that length, or marks alone."""
    seconds = {}
    for count in (10_000, 100_000):
        begin = time.process_time()
        for word in ("1", "://", "password=", "://a:b@", "%25"):
            secrets.learn(word * (count // len(word)))
        seconds[count] = time.process_time() - begin
    assert seconds[100_000] < 40 * max(seconds[10_000], 0.02)  # of a square, 100 times


def test_a_plain_password_is_blotted_whole_and_nothing_else():
    secrets.learn(f"http://me:{SECRET}@h")
    assert secrets.blot(f"<{SECRET}> {SECRET[1:-1]}") == f"<***> {SECRET[1:-1]}"
    lower = quote(quote(ODD, safe="")).lower().replace("'", "%27")
    secrets.learn(f"http://me:{ODD.lower()}@h")
    assert "w%25" not in secrets.blot(f"at {lower}")


@pytest.mark.parametrize(
    "text",
    [
        "http://host:5000",
        "http://host:5000/a?b",
        "http://127.0.0.1:9: connection refused",
        "see http://host:5000.",
        "`http://host:5000`",
        "http://[::1]:5000",
        "sqlite:////home/me/a:b.db",
        "a // b: c",
    ],
)
def test_a_port_is_no_password(text):
    assert secrets.blot(text) == text


def test_a_password_without_a_host_is_known_from_then_on():
    secrets.learn(f"tracking.uri=http://me:{SECRET}")
    assert SECRET not in secrets.blot(f"could not read the port {SECRET}")


ASSIGNED = {"a word": "hunter2hunter2", "a key": "hf_abc/def=ghi+jkl"}


@pytest.mark.parametrize("kind", ASSIGNED)
def test_what_a_variable_gave_a_setting_is_blotted_everywhere(kind):
    secrets.learn_setting("dataset.name", ASSIGNED[kind])
    assert secrets.blot(f"no data set {ASSIGNED[kind]}") == "no data set ***"
    assert secrets.blot_setting("dataset.name", f"x-{ASSIGNED[kind]}") == "x-***"
    assert secrets.blot_setting("dataset.target", ASSIGNED[kind]) == "***"


@pytest.mark.parametrize("value", ["abc", "12345678901", "-1.5e-20", "PATH"])
def test_what_is_short_or_a_number_or_a_path_is_blotted_in_its_setting_alone(value, tmp_path):
    value = str(tmp_path / "my.csv") if value == "PATH" else value
    secrets.learn_setting("dataset.name", value)
    assert secrets.blot_setting("dataset.name", value) == "***"
    assert secrets.blot(f"dataset.name={value}: must be") == "dataset.name=***: must be"
    assert secrets.blot(f"  name: '{value}'\n") == "  name: ***\n"
    for text in (f"cost.l2={value}", f"a {value}", f"dataset.names={value}"):
        assert secrets.blot(text) == text


def test_a_short_value_is_blotted_in_other_settings_from_four_letters_on():
    secrets.learn_setting("dataset.name", "abcd")
    secrets.learn_setting("dataset.source", "xyz")
    assert secrets.blot_setting("dataset.target", "of abcd") == "of ***"
    assert secrets.blot_setting("dataset.target", "of xyz") == "of xyz"
    assert secrets.blot_setting("dataset.source", "of xyz") == "of ***"


@pytest.mark.parametrize(
    ("secret", "text", "blotted"),
    [
        # Of eight letters and signs on, inside words too.
        *(("abc1-efg", "xabc1-efgx", "x***x"), ("abc1-ef", "xabc1-efx", "xabc1-efx")),
        *(("abc1-ef", "an abc1-ef.", "an ***."), ("ab1", "an ab1, ab12", "an ***, ab12")),
        ("a1", "an a1", "an a1"),
        # What ends in a sign has no end of a word after it.
        *(("abc1-e-", "an abc1-e-x", "an ***x"), ("-bc1-ef", "a-bc1-ef", "a***")),
        *(("abc1--f", "an abc1--fx", "an abc1--fx"), ("abc1--f", "an abc1--f-", "an ***-")),
        # Letters alone from twelve on, digits alone from six on; else between quotes or marks.
        *(("abcdefghijkl", "an abcdefghijkl", "an ***"), ("abcdefghijk", "abcdefghijk", None)),
        *(("abcdefghijk", "'abcdefghijk'", "'***'"), ("123456", "an 123456", "an ***")),
        *(("12345", "an 12345", None), ("12345", "\"12345'", "\"***'"), ("12345", ":12345@", None)),
    ],
)
def test_a_secret_is_blotted_by_its_length_and_its_kind(secret, text, blotted):
    secrets._learn_secrets({secret})
    if text == ":12345@":
        blotted = ":***@"
    assert secrets.blot(text) == (text if blotted is None else blotted)


def test_texts_up_to_a_length_are_learned():
    most = "a1" * 250
    secrets._learn_secrets({most, most + "b", " xy1 ", "x1"})
    assert secrets._secrets == {most, "xy1"}


def test_what_is_learned_is_in_force_at_once():
    assert secrets.blot("first-1 second-2") == "first-1 second-2"
    secrets._learn_secrets({"first-1"})
    assert secrets.blot("first-1 second-2") == "*** second-2"
    secrets._learn_secrets({"second-2"})
    assert secrets.blot("first-1 second-2") == "*** ***"
    secrets.learn_setting("a.b", "xy")
    assert secrets.blot("a.b=xy") == "a.b=***"


@pytest.mark.parametrize(
    ("uri", "blotted"),
    [
        ("https://abcdefghijklmnopqrs:x@h", "https://abcdefghijklmnopqrs:***@h"),
        ("https://abcdefghijklmnopqrst:x@h", "https://***:***@h"),
        ("https://token:@h", "https://***:***@h"),
        ("postgresql://abcdefghijklmnopqrst:x@h", "postgresql://abcdefghijklmnopqrst:***@h"),
        ("git+ssh://token:x-oauth-basic@h", "git+ssh://token:***@h"),
        ("GIT+HTTPS://token:x-oauth-basic@h", "GIT+HTTPS://***:***@h"),
    ],
)
def test_a_user_is_a_token_where_it_is_long_or_has_no_password(uri, blotted):
    assert secrets.blot(uri) == blotted


def test_secrets_of_a_uri_are_its_password_and_its_parts():
    assert set(secrets._secrets_in("db://me:a1/b2@h")) >= {"a1/b2", "a1", "b2"}
    assert "tok" in set(secrets._secrets_in("https://tok:@h"))
    assert "tok" not in set(secrets._secrets_in("db://tok:@h"))
    assert "tok" not in set(secrets._secrets_in("http://tok:pw@h"))
    assert "pw" in set(secrets._secrets_in("http://me:pw"))
    for port in ("http://host:5000", "http://[::1]:x", "http://host"):
        assert {text for text in secrets._secrets_in(port) if text} == set()
    assert "a%40b" in set(secrets._secrets_in("db://me:a%40b@h"))
    assert "a@b" in set(secrets._secrets_in("db://me:a%2540b@h"))


def test_the_last_of_many_ends_of_a_password_is_not_tried():
    ends = "@".join(f"p{n}" for n in range(30))
    words = set(secrets._secrets_by_place(f"db://me:{ends}"))
    assert f"{'@'.join(f'p{n}' for n in range(10))}" in words
    assert f"{'@'.join(f'p{n}' for n in range(11))}" not in words


def test_encoded_text_is_decoded_three_times():
    secret = "p@s:w"
    for times in range(1, 6):
        text = f"db://me:{secret}@h"
        for _ in range(times):
            text = quote(text, safe="")
        assert (secrets.BLOT in secrets.blot(text)) == (times <= 3), times


def test_mlflows_own_file_of_a_password_is_learned(monkeypatch, tmp_path):
    file = tmp_path / "credentials"
    monkeypatch.setattr(secrets, "CREDENTIALS_FILE", str(file))
    file.write_text("[mlflow]\nmlflow_tracking_username = me\nmlflow_tracking_password = pw-12%x\n")
    secrets.learn_environment()
    assert secrets.blot("it is pw-12%x, by me") == "it is ***, by me"
    file.write_text("no section")
    secrets.learn_environment()


def test_the_longest_of_secrets_that_begin_alike_is_blotted_whole():
    secrets._learn_secrets({"abcd-1234", "abcd-12345", "abcd-123456"})
    assert secrets.blot("abcd-12345 abcd-123456") == "*** ***"


@pytest.mark.parametrize("quoted", [json.dumps, repr])
def test_a_secret_between_quotes_is_blotted_whole(quoted):
    secret = "\n1-abc\\d'e"
    secrets._learn_secrets({f"x{secret}"})
    assert secrets.blot(quoted(f"x{secret}"))[1:-1] == secrets.BLOT


def test_a_value_of_eight_letters_is_blotted_everywhere():
    secrets.learn_setting("dataset.name", "abcd-123")
    secrets.learn_setting("dataset.name", "wxyz-12")
    assert secrets.blot("an abcd-123, wxyz-12") == "an ***, wxyz-12"
