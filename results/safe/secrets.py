"""No password and no token in any output: they are blotted out wherever text leaves the program.

Two ways, together. What stands where a secret stands, in a URI or behind `password=`, is blotted by
its place. What is known to be a secret, from the words of the command, its store and its
environment, is blotted wherever it stands. Percent-encoded words are decoded to look into them.

SQLAlchemy's `render_as_string` would show the rest of a password that holds an @, a query's
`password=` and an ODBC string, so it is not used.
"""

import base64
import html
import json
import os
import re
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from configparser import Error as ConfigError
from contextlib import suppress
from functools import lru_cache
from urllib.parse import unquote, unquote_plus

BLOT = "***"
MIN_LENGTH = 3  # letters of a secret that is looked for outside its place
MIN_LENGTH_INSIDE_WORDS = 8  # a shorter one is looked for as a word of its own
MIN_LENGTH_IN_OTHER_SETTINGS = 4  # and one of a setting, within another setting
MIN_LETTERS = 12  # and one of as few letters, or a short number, only where it is marked: it may be
MIN_DIGITS = 6  # an ordinary word, as `standard` is
MAX_LENGTH = 500
MAX_PASSWORD_ENDS = 10  # ends of a password that holds the mark of its end
MAX_DECODINGS = 3  # times that a text may have been percent-encoded
KEYS = (
    "password|passwd|passphrase|pwd|token|secret|api[_-]?key|access[_-]?key|account[_-]?key"
    "|private[_-]?key|signature|credentials?"
)
ENVIRONMENT = re.compile(rf"(?i)(?:{KEYS})$|_(?:dsn|connection_string)$")
ACCOUNT = "~/.mlflow/credentials"  # MLflow's own file, in which a user's password may stand
NO_SECRET = ("PWD", "OLDPWD")  # the working folder
NO_PORT = r"(?!\d{0,5}(?:[/?#\s'\"),;\]<>`|}&\\*]|[.:!](?=\s|$)|$))"
HTTP = ("http", "https", "git", "ftp")  # with these, a user without a password is a token
NO_PASSWORD = ("", "x-oauth-basic")
MIN_TOKEN_LENGTH = 20  # letters of a user that is a token
VALUE_PATTERN = (
    r"'(?:[^'\\]|\\.){0,500}'|\"(?:[^\"\\]|\\.){0,500}\"|\{(?:[^}]|\}\}){0,500}\}"
    r"|(?=[^\s&;'\"])[^&;'\"\n]{1,200}?(?=;)|[^\s&;,'\")\]}]+"
)


def _of_uri(match: re.Match[str]) -> str:
    """Return a URI up to its host without the password, nor a user that is a token."""
    user, password = match["user"], match["password"]
    scheme = match["scheme"] or ""
    token = _is_http(scheme) and (password in NO_PASSWORD or len(user) >= MIN_TOKEN_LENGTH)
    return f"{scheme}{':' * bool(match['colon'])}//{BLOT if token else user}:{BLOT}@"


def _is_http(scheme: str) -> bool:
    return scheme.lower().rpartition("+")[2] in HTTP


# What is blotted by its place, and what is put there instead.
SECRET_PATTERNS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    # scheme://user:password@host; a password may hold an @, and a blank where it is no port.
    (
        re.compile(
            r"(?:(?P<scheme>[\w+.-]{0,40})(?P<colon>:)|(?<![\w:/]))//(?P<user>[^:/@\s\[]{0,200}):"
            r"(?:(?P<password>\S{0,500})@"
            rf"|{NO_PORT}[^@]{{1,200}}@(?:[^\s@]{{0,100}}@)*)"
        ),
        _of_uri,
    ),
    # scheme://user:password, where a port would be a number.
    (
        re.compile(rf"((?<![\w/])//[^\s/:@\[]{{1,200}}:){NO_PORT}[^\s@/'\"),;\]]{{1,500}}+(?!@)"),
        rf"\1{BLOT}",
    ),
    (re.compile(rf"((?:{'|'.join(HTTP)})://)[^\s/:@]{{1,500}}@", re.I), rf"\1{BLOT}@"),
    (
        re.compile(r"(?<![\w/:.*%+-])([\w.%+-]{1,200}):[^\s:@/'\"*]{1,500}@(?=[\w\[])"),
        rf"\1:{BLOT}@",
    ),
    (re.compile(rf"((?:{KEYS})(?:\s*=\s*|['\"]\s*:\s*))(?:{VALUE_PATTERN})", re.I), rf"\1{BLOT}"),
    (re.compile(rf"^([ \t]*(?:{KEYS}):[ \t]+)\S+", re.I | re.M), rf"\1{BLOT}"),
    (re.compile(r"([?&;](?:key|[\w-]*[_-]key|sig|auth)=)[^&;\s'\"]+", re.I), rf"\1{BLOT}"),
    (
        re.compile(r"(authorization['\"]?\s*[:=]\s*['\"]?)(?:\w+\s+)?[^\s'\"]+", re.I),
        rf"\1{BLOT}",
    ),
    (re.compile(r"(\bbearer\s+)[\w+/=.-]{8,}", re.I), rf"\1{BLOT}"),
)
# A text without any of these has no such place.
MARKS = re.compile(rf"//|@|=|['\"]\s*:|{KEYS}|authorization|bearer", re.I)

_secrets: set[str] = set()
_settings: set[tuple[str, str]] = set()  # settings, and what a variable of the environment gave


def learn(*arguments: str) -> None:
    """Note the secrets that stand in whole words, such as a command's arguments and URIs."""
    _note({secret for argument in arguments for secret in _secrets_in(argument)})


def learn_setting(name: str, value: str) -> None:
    """Note that a setting has a value from a variable of the environment, which may be a secret.

    It is blotted in that setting, and, unless it is short, a number or a path, in any other text.
    """
    if value and (name, value) not in _settings:
        _settings.add((name, value))
        _pattern.cache_clear()
    if len(value) >= MIN_LENGTH_INSIDE_WORDS and not _is_plain(value):
        _note({value})


def blot_setting(name: str, text: str) -> str:
    """Return a setting's value as it is recorded: without what the environment gave."""
    for setting, value in _settings:
        if setting == name or len(value) >= MIN_LENGTH_IN_OTHER_SETTINGS:
            text = text.replace(value, BLOT)
    return text


def _is_plain(value: str) -> bool:
    """Return whether a value is a number or a path."""
    try:
        float(value)
        return True
    except ValueError:
        path = os.path.expanduser(value)
        above = os.path.dirname(path)
        return os.path.exists(path) or (above not in ("", os.sep) and os.path.isdir(above))


def learn_environment() -> None:
    """Note the secrets of the environment: MLFLOW_TRACKING_PASSWORD, PGPASSWORD and their like.

    And the password in MLflow's own file, which stands for the first of them.
    """
    account = ConfigParser(interpolation=None)
    with suppress(ConfigError, OSError, ValueError):
        account.read(os.path.expanduser(ACCOUNT))
    _note({account.get("mlflow", "mlflow_tracking_password", fallback="")})
    for name, text in os.environ.items():
        if ENVIRONMENT.search(name) and name not in NO_SECRET:
            _note({text, *_secrets_in(text)})
        elif "://" in text:
            learn(text)


def blot(text: str) -> str:
    """Return a text without secrets, of any kind."""
    return _blotted(text, _pattern(), MAX_DECODINGS)


def blot_places(text: str) -> str:
    """Return a text without what stands where a secret stands: the same in every process."""
    return _blotted(text, None, MAX_DECODINGS)


def _blotted(text: str, secret_pattern: re.Pattern[str] | None, depth: int) -> str:
    """Return a text without secrets; a word that hides one percent-encoded is decoded."""

    def look_into(match: re.Match[str]) -> str:
        plain = unquote_plus(match[0])
        blotted = _blotted(plain, secret_pattern, depth - 1) if plain != match[0] else plain
        return match[0] if blotted == plain else blotted

    text = secret_pattern.sub(BLOT, text) if secret_pattern else text
    if MARKS.search(text):
        for pattern, instead in SECRET_PATTERNS:
            text = pattern.sub(instead, text)
    return re.sub(r"\S+", look_into, text) if depth and "%" in text else text


def without_user(uri: str) -> str:
    """Return a URI without its user and password: an address that can be opened."""
    return re.sub(r"://.*@", "://", uri, flags=re.S)


def _note(candidates: set[str]) -> None:
    stripped = {text.strip() for text in candidates}
    new_secrets = {text for text in stripped if MIN_LENGTH <= len(text) <= MAX_LENGTH} - _secrets
    if new_secrets:
        _secrets.update(new_secrets)
        _pattern.cache_clear()


def _secrets_in(argument: str) -> Iterator[str]:
    """Yield the secrets of a word, as it is and decoded; each as the libraries may cut it."""
    texts = {argument, argument.replace("\\", "")}
    for _ in range(2):
        texts |= {decoded for text in texts for decoded in (unquote(text), unquote_plus(text))}
    for text in texts:
        for secret in _secrets_by_place(text):
            yield secret
            # Libraries split at these, and tell of a part; lines are written one by one.
            yield from re.split(r"[/@?#:\n]", secret)


def _secrets_by_place(text: str) -> Iterator[str]:
    for start in re.finditer(r"(?:([\w+.-]{0,40}):)?//", text):
        following = text[start.end() : start.end() + MAX_LENGTH]
        server, _, port = re.split(r"[/?#\s]", following, maxsplit=1)[0].partition(":")
        if server and "@" not in following and not port.isdigit() and server[0] != "[":
            yield port
        for end in [mark.start() for mark in re.finditer("@", following)][:MAX_PASSWORD_ENDS]:
            user, _, password = following[:end].partition(":")
            if "/" in user:
                continue
            if password:
                yield password
                yield base64.b64encode(f"{user}:{password}".encode(errors="replace")).decode()
            if _is_http(start[1] or "") and password in NO_PASSWORD:
                yield user
    for start in re.finditer(rf"(?:{KEYS})['\"]?\s*[=:]\s*", text, re.I):
        following = text[start.end() : start.end() + MAX_LENGTH]
        assigned = re.match(VALUE_PATTERN, following)
        ends = [re.split(end, following)[0] for end in (r"[&;]", r"[&;\s]", r"[;]")]
        yield from (value.strip("'\"{}") for value in [*ends, assigned[0] if assigned else ""])


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str] | None:
    """Return what finds the known secrets, the longest first; None where there are none."""
    alternatives = [_assigned(name, value) for name, value in sorted(_settings)]
    alternatives += [_written(text) for text in sorted(_secrets, key=len, reverse=True)]
    return re.compile("|".join(alternatives)) if alternatives else None


def _assigned(setting: str, value: str) -> str:
    """Return the pattern of a setting's value behind its name, on a command line or in YAML."""
    option = re.escape(setting.rpartition(".")[2])
    behind = "|".join(
        f"(?<={before}{option}{mark})" for before in ("\\.", "\\b") for mark in ("=", ": ")
    )
    return rf"(?:{behind})['\"]?{re.escape(value)}['\"]?(?!\w)"


def _written(secret: str) -> str:
    """Return the pattern of a secret in the ways in which it may be written."""
    forms = {secret, " ".join(secret.split()), secret.replace("'", "'\"'\"'")}  # a shell's
    forms |= {quote(text)[1:-1] for text in forms for quote in (repr, json.dumps)}
    forms |= {form.replace("\\'", "'").replace("'", "\\'") for form in forms}
    forms |= {html.escape(form) for form in forms}
    forms |= {form.replace("&#x27;", "&#39;").replace("&quot;", "&#34;") for form in forms}
    body = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    if (secret.isalpha() and len(secret) < MIN_LETTERS) or (
        secret.isdigit() and len(secret) < MIN_DIGITS
    ):
        return rf"(?<=[:'\"])(?:{body})(?=[@'\"])"
    if len(secret) >= MIN_LENGTH_INSIDE_WORDS:
        return body
    before = r"(?:(?<!\w)|(?<=\\[nrt]))" if secret[0].isalnum() else ""
    after = r"(?!\w)" if secret[-1].isalnum() else ""
    return f"{before}(?:{body}){after}"
