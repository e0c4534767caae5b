"""Blot passwords and tokens out of every text that leaves the program.

Secrets are recognized in two ways. Patterns find them by their place: in a URI, or after
`password=`. Secrets that were learned from the command's arguments, its store and its environment
are found anywhere. Percent-encoded text is decoded and searched, too.

SQLAlchemy's `render_as_string` is not used: it shows the end of a password that contains an @, a
`password=` in a URI's query, and an ODBC connection string.
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
MIN_SECRET_LENGTH = 3  # characters; a shorter secret is blotted by its place alone
MIN_LENGTH_INSIDE_WORDS = 8  # a shorter secret is blotted only as a separate word
MIN_LENGTH_IN_OTHER_SETTINGS = 4  # a shorter value is blotted in its own setting alone
# A shorter secret of letters alone, or of digits alone, may be an ordinary word, such as
# `standard`, or a number: it is blotted only between the delimiters of a secret.
MIN_LETTERS = 12
MIN_DIGITS = 6
MAX_SECRET_LENGTH = 500  # a longer text is not learned as a secret
MAX_PASSWORD_ENDS = 10  # positions of an @ that are tried as the end of a password
MAX_DECODINGS = 3  # times that a text may have been percent-encoded
SECRET_KEYS = (
    "password|passwd|passphrase|pwd|token|secret|api[_-]?key|access[_-]?key|account[_-]?key"
    "|private[_-]?key|signature|credentials?"
)
SECRET_VARIABLES = re.compile(rf"(?i)(?:{SECRET_KEYS})$|_(?:dsn|connection_string)$")
CREDENTIALS_FILE = "~/.mlflow/credentials"  # MLflow's own file of a user's name and password
HARMLESS_VARIABLES = ("PWD", "OLDPWD")  # the working folder
# Matches after a colon unless a port follows: at most five digits, then the end of the address.
NO_PORT = r"(?!\d{0,5}(?:[/?#\s'\"),;\]<>`|}&\\*]|[.:!](?=\s|$)|$))"
HTTP_SCHEMES = ("http", "https", "git", "ftp")  # schemes where a user without a password is a token
NO_PASSWORD = ("", "x-oauth-basic")
MIN_TOKEN_LENGTH = 20  # a user name of as many characters is a token
# A value in quotes or braces, one with blanks up to a semicolon, or one word.
VALUE_PATTERN = (
    r"'(?:[^'\\]|\\.){0,500}'|\"(?:[^\"\\]|\\.){0,500}\"|\{(?:[^}]|\}\}){0,500}\}"
    r"|(?=[^\s&;'\"])[^&;'\"\n]{1,200}?(?=;)|[^\s&;,'\")\]}]+"
)


def _blot_uri(match: re.Match[str]) -> str:
    """Return the beginning of a matched URI, up to its host, with its secrets blotted.

    The password is a secret; the user is one if it is a token.

    Args:
        match: A match of the first of `SECRET_PATTERNS`.
    """
    user, password = match["user"], match["password"]
    scheme, colon = match["scheme"] or "", match["colon"] or ""
    is_token = _is_http(scheme) and (password in NO_PASSWORD or len(user) >= MIN_TOKEN_LENGTH)
    return f"{scheme}{colon}//{BLOT if is_token else user}:{BLOT}@"


def _is_http(scheme: str) -> bool:
    """Return whether a scheme, or its part after a `+` as in `git+https`, is in `HTTP_SCHEMES`."""
    return scheme.lower().rpartition("+")[2] in HTTP_SCHEMES


# The patterns that find a secret by its place, each with its replacement.
SECRET_PATTERNS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    # scheme://user:password@host. A password may contain an @, and, unless it could be a port,
    # a blank.
    (
        re.compile(
            r"(?:(?P<scheme>[\w+.-]{0,40})(?P<colon>:)|(?<![\w:/]))//(?P<user>[^:/@\s\[]{0,200}):"
            r"(?:(?P<password>\S{0,500})@"
            rf"|{NO_PORT}[^@]{{1,200}}@(?:[^\s@]{{0,100}}@)*)"
        ),
        _blot_uri,
    ),
    # scheme://user:password without a host: a port would be a number.
    (
        re.compile(rf"((?<![\w/])//[^\s/:@\[]{{1,200}}:){NO_PORT}[^\s@/'\"),;\]]{{1,500}}+(?!@)"),
        rf"\1{BLOT}",
    ),
    # https://token@host
    (re.compile(rf"((?:{'|'.join(HTTP_SCHEMES)})://)[^\s/:@]{{1,500}}@", re.I), rf"\1{BLOT}@"),
    # user:password@host without a scheme
    (
        re.compile(r"(?<![\w/:.*%+-])([\w.%+-]{1,200}):[^\s:@/'\"*]{1,500}@(?=[\w\[])"),
        rf"\1:{BLOT}@",
    ),
    (
        re.compile(rf"((?:{SECRET_KEYS})(?:\s*=\s*|['\"]\s*:\s*))(?:{VALUE_PATTERN})", re.I),
        rf"\1{BLOT}",
    ),
    (re.compile(rf"^([ \t]*(?:{SECRET_KEYS}):[ \t]+)\S+", re.I | re.M), rf"\1{BLOT}"),
    (re.compile(r"([?&;](?:key|[\w-]*[_-]key|sig|auth)=)[^&;\s'\"]+", re.I), rf"\1{BLOT}"),
    (
        re.compile(r"(authorization['\"]?\s*[:=]\s*['\"]?)(?:\w+\s+)?[^\s'\"]+", re.I),
        rf"\1{BLOT}",
    ),
    (re.compile(r"(\bbearer\s+)[\w+/=.-]{8,}", re.I), rf"\1{BLOT}"),
)
# A text that does not match this is not matched by any of `SECRET_PATTERNS` either.
PLACE_MARKS = re.compile(rf"//|@|=|['\"]\s*:|{SECRET_KEYS}|authorization|bearer", re.I)

_secrets: set[str] = set()
_settings: set[tuple[str, str]] = set()  # settings, each with its value from the environment


def learn(*arguments: str) -> None:
    """Learn the secrets of texts that may contain some.

    Args:
        *arguments: Texts such as a command's arguments and URIs. What is a secret in them is found
            by its place.
    """
    _learn_secrets({secret for argument in arguments for secret in _secrets_in(argument)})


def learn_setting(name: str, value: str) -> None:
    """Learn a setting's value that comes from an environment variable and may be a secret.

    The value is blotted in that setting, and in any other text unless it is short, a number or a
    path.

    Args:
        name: The setting.
        value: Its value.
    """
    if value and (name, value) not in _settings:  # an empty value would match everywhere
        _settings.add((name, value))
        _learned_pattern.cache_clear()
    if len(value) >= MIN_LENGTH_INSIDE_WORDS and not _is_number_or_path(value):
        _learn_secrets({value})


def blot_setting(name: str, text: str) -> str:
    """Return a setting's value as it is recorded: values from the environment are blotted.

    Args:
        name: The setting.
        text: Its value as text.

    Returns:
        The text. Values of this setting are blotted, and longer ones of other settings.
    """
    for setting, value in _settings:
        if setting == name or len(value) >= MIN_LENGTH_IN_OTHER_SETTINGS:
            text = text.replace(value, BLOT)
    return text


def _is_number_or_path(value: str) -> bool:
    """Return whether a value is a number, or a path that exists or is in an existing folder."""
    try:
        float(value)
        return True
    except ValueError:
        path = os.path.expanduser(value)
        parent = os.path.dirname(path)
        # A new file in the root folder does not count: a secret may begin with a slash.
        return os.path.exists(path) or (parent not in ("", os.sep) and os.path.isdir(parent))


def learn_environment() -> None:
    """Learn the secrets of the environment, such as MLFLOW_TRACKING_PASSWORD and PGPASSWORD.

    The password in MLflow's own file, which MLflow uses without the variable, is learned as well.
    """
    account = ConfigParser(interpolation=None)
    with suppress(ConfigError, OSError, ValueError):
        account.read(os.path.expanduser(CREDENTIALS_FILE))
    _learn_secrets({account.get("mlflow", "mlflow_tracking_password", fallback="")})
    for name, text in os.environ.items():
        if SECRET_VARIABLES.search(name) and name not in HARMLESS_VARIABLES:
            _learn_secrets({text, *_secrets_in(text)})
        elif "://" in text:
            learn(text)


def blot(text: str) -> str:
    """Return a text with its secrets blotted: those learned, and those found by their place."""
    return _blot(text, _learned_pattern(), MAX_DECODINGS)


def blot_places(text: str) -> str:
    """Return a text with the secrets blotted that are found by their place.

    The outcome is the same in every process, since it does not depend on what was learned.
    """
    return _blot(text, None, MAX_DECODINGS)


def _blot(text: str, secret_pattern: re.Pattern[str] | None, depth: int) -> str:
    """Return a text with its secrets blotted; a word with a percent-encoded secret is decoded.

    Args:
        text: The text.
        secret_pattern: The pattern of the learned secrets; None to find secrets by place alone.
        depth: How many times a word may still be decoded.
    """

    def blot_decoded(match: re.Match[str]) -> str:
        """Return a word as it is, or decoded and blotted if a secret is in the decoded word."""
        plain = unquote_plus(match[0])
        blotted = _blot(plain, secret_pattern, depth - 1) if plain != match[0] else plain
        return match[0] if blotted == plain else blotted

    text = secret_pattern.sub(BLOT, text) if secret_pattern else text
    if PLACE_MARKS.search(text):
        for pattern, replacement in SECRET_PATTERNS:
            text = pattern.sub(replacement, text)
    return re.sub(r"\S+", blot_decoded, text) if depth and "%" in text else text


def without_user(uri: str) -> str:
    """Return a URI without its user and password, which a browser can still open."""
    return re.sub(r"://.*@", "://", uri, flags=re.S)


def _learn_secrets(candidates: set[str]) -> None:
    """Add texts, stripped of blanks, to the learned secrets if they have a secret's length."""
    stripped = {text.strip() for text in candidates}
    new_secrets = {
        text for text in stripped if MIN_SECRET_LENGTH <= len(text) <= MAX_SECRET_LENGTH
    } - _secrets
    if new_secrets:
        _secrets.update(new_secrets)
        _learned_pattern.cache_clear()


def _secrets_in(argument: str) -> Iterator[str]:
    """Yield the secrets of an argument, plain and decoded, and the parts that libraries print.

    Args:
        argument: A text that may be percent-encoded up to twice, and escaped by backslashes.
    """
    # Without the backslashes by which a shell or a config escapes characters.
    texts = {argument, argument.replace("\\", "")}
    for _ in range(2):
        texts |= {decoded for text in texts for decoded in (unquote(text), unquote_plus(text))}
    for text in texts:
        for secret in _secrets_by_place(text):
            yield secret
            # Libraries split a URI at these characters and print a part of it; lines are printed
            # one by one.
            yield from re.split(r"[/@?#:\n]", secret)


def _secrets_by_place(text: str) -> Iterator[str]:
    """Yield the texts at the places of a secret: in URIs, and after keys such as `password=`."""
    for start in re.finditer(r"(?:([\w+.-]{0,40}):)?//", text):
        following = text[start.end() : start.end() + MAX_SECRET_LENGTH]
        # `//user:password` without a host looks like a server and a port, but a port is a number.
        # An IPv6 address, in brackets, has colons of its own.
        server, _, port = re.split(r"[/?#\s]", following, maxsplit=1)[0].partition(":")
        if server and "@" not in following and not port.isdigit() and server[0] != "[":
            yield port
        for end in [mark.start() for mark in re.finditer("@", following)][:MAX_PASSWORD_ENDS]:
            user, _, password = following[:end].partition(":")
            if "/" in user:  # the @ is in the path of the URI
                continue
            if password:
                yield password
                # As the header of HTTP's basic authentication has it.
                yield base64.b64encode(f"{user}:{password}".encode(errors="replace")).decode()
            if _is_http(start[1] or "") and password in NO_PASSWORD:
                yield user
    for start in re.finditer(rf"(?:{SECRET_KEYS})['\"]?\s*[=:]\s*", text, re.I):
        following = text[start.end() : start.end() + MAX_SECRET_LENGTH]
        value_match = re.match(VALUE_PATTERN, following)
        # Formats differ in what ends a value, so the text up to each possible end is learned.
        values = [re.split(end, following)[0] for end in (r"[&;]", r"[&;\s]", r"[;]")]
        values.append(value_match[0] if value_match else "")
        yield from (value.strip("'\"{}") for value in values)


@lru_cache(maxsize=1)
def _learned_pattern() -> re.Pattern[str] | None:
    """Return the pattern of all learned settings and secrets; None where there are none.

    Longer secrets come first, because a secret may be a part of another. The pattern is cached;
    what learns a secret clears the cache.
    """
    alternatives = [_assignment_pattern(name, value) for name, value in sorted(_settings)]
    alternatives += [
        _quoted_forms_pattern(text) for text in sorted(_secrets, key=len, reverse=True)
    ]
    return re.compile("|".join(alternatives)) if alternatives else None


def _assignment_pattern(setting: str, value: str) -> str:
    """Return the pattern of a setting's value after its name, on a command line or in YAML.

    Args:
        setting: The setting, of which the part after the last dot must stand before the value.
        value: Its value.
    """
    option = re.escape(setting.rpartition(".")[2])
    # One lookbehind for each way to write the name, because a lookbehind has a fixed length.
    prefixes = "|".join(
        f"(?<={before}{option}{mark})" for before in ("\\.", "\\b") for mark in ("=", ": ")
    )
    return rf"(?:{prefixes})['\"]?{re.escape(value)}['\"]?(?!\w)"


def _quoted_forms_pattern(secret: str) -> str:
    """Return the pattern of a secret, plain and as shells, Python, JSON and HTML quote it.

    A short secret is matched only as a separate word, or, if it may be an ordinary word or number,
    only between the delimiters of a secret.
    """
    forms = {
        secret,
        " ".join(secret.split()),  # as `clean.line` joins lines
        secret.replace("'", "'\"'\"'"),  # as a shell quotes it
    }
    # Without the quotes that `repr` and JSON add; then with each apostrophe escaped, as `repr` does
    # only in a text that has both kinds of quotes; then as HTML, with its two forms of each quote.
    forms |= {quote(text)[1:-1] for text in forms for quote in (repr, json.dumps)}
    forms |= {form.replace("\\'", "'").replace("'", "\\'") for form in forms}
    forms |= {html.escape(form) for form in forms}
    forms |= {form.replace("&#x27;", "&#39;").replace("&quot;", "&#34;") for form in forms}
    any_form = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    is_short_word = secret.isalpha() and len(secret) < MIN_LETTERS
    is_short_number = secret.isdigit() and len(secret) < MIN_DIGITS
    if is_short_word or is_short_number:
        return rf"(?<=[:'\"])(?:{any_form})(?=[@'\"])"
    if len(secret) >= MIN_LENGTH_INSIDE_WORDS:
        return any_form
    # The second alternative: the n of an escaped newline, for example, is no part of a word.
    before = r"(?:(?<!\w)|(?<=\\[nrt]))" if secret[0].isalnum() else ""
    after = r"(?!\w)" if secret[-1].isalnum() else ""
    return f"{before}(?:{any_form}){after}"
