"""One zip file that holds members and a manifest of them: written whole or not at all, and checked.

A file comes from anywhere: nothing in it is unpacked by its name, unpickled or evaluated, no more
is read than the file says at first, and nothing is used before all of it has the right checksums.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from normbench.datasets.values import UserError, format_gigabytes
from normbench.results.safe import clean, files

FORMAT = 1  # of what is written; a newer one is refused
MANIFEST = "manifest.json"
LONGEST_MANIFEST = 1 << 30  # bytes
SMALL = 1 << 26  # bytes of content that any file may hold
MOST_PACKED = 100  # times the size of a larger one that its content may be
BLOCK = 1 << 20
PART = re.compile(r"(?!\.{1,2}\Z)[^/\\\x00-\x1f\x7f]{1,255}")  # of a member's name
# What zipfile and json raise over files that are damaged, or another's.
STRANGE: tuple[type[Exception], ...] = (BadZipFile, zlib.error, ValueError, KeyError, TypeError)
STRANGE += (AttributeError, EOFError, NotImplementedError, RuntimeError, RecursionError)
ENCRYPTED = 1  # a member's flag
Members = Mapping[str, Mapping[str, Any]]  # sha256 and bytes of each, by its name


class Pack:
    """A zip file that is being written."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self.members: dict[str, dict[str, Any]] = {}

    def add(self, name: str, content: bytes) -> str:
        """Add a member; return its SHA-256."""
        self._archive.writestr(_checked(name), content, ZIP_DEFLATED)
        return self._note(name, hashlib.sha256(content).hexdigest(), len(content))

    def add_file(self, name: str, file: Path) -> str:
        """Add a file's content as a member; return its SHA-256."""
        with (
            file.open("rb") as content,
            self._archive.open(_checked(name), "w", force_zip64=True) as member,
        ):
            digest, size = hashlib.sha256(), 0
            while block := content.read(BLOCK):
                digest.update(block)
                size += len(block)
                member.write(block)
        return self._note(name, digest.hexdigest(), size)

    def _note(self, name: str, digest: str, size: int) -> str:
        self.members[name] = {"sha256": digest, "bytes": size}
        return digest


@contextmanager
def packed(file: Path, overwrite: bool, about: Mapping[str, Any]) -> Iterator[Pack]:
    """Write a file under a name of its own, and give it its name once it is whole.

    about: what the manifest says beside its members, read at the end. Raises `UserError` where the
    file cannot be written, or is there and is not to be overwritten.
    """
    draft = file.with_name(f".{file.name}.draft")
    try:
        _refuse_known(file, overwrite)
        number = files.open_descriptor(draft, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise _unwritable(file, error) from error
    with os.fdopen(number, "r+b") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"{file}: another export writes it; wait for it") from None
        try:
            stream.truncate()  # what an export that was killed had written
            with ZipFile(stream, "w", ZIP_STORED) as archive:
                pack = Pack(archive)
                yield pack
                told = {"format": FORMAT, "normbench": _version(), **about}
                manifest = json.dumps(told | {"members": pack.members}, indent=1)
                archive.writestr(MANIFEST, manifest, ZIP_DEFLATED)
            stream.flush()
            os.fsync(stream.fileno())
            _refuse_known(file, overwrite)
            draft.replace(file)
        except OSError as error:
            raise _unwritable(file, error) from error
        finally:
            draft.unlink(missing_ok=True)


def _version() -> str:
    try:
        return version("normbench")
    except PackageNotFoundError:  # a checkout that is not installed
        return "unknown"


def _refuse_known(file: Path, overwrite: bool) -> None:
    if os.path.lexists(file) and not overwrite:
        raise UserError(f"{file}: is there; name another file, or add --overwrite")


def _unwritable(file: Path, error: OSError) -> UserError:
    return UserError(
        f"{file}: cannot be written ({error.strerror or error}); name a file that can, such as "
        "export.zip"
    )


class Unpacked:
    """A file that `packed` wrote, and its members, which have their checksums."""

    def __init__(self, file: Path, archive: ZipFile, members: Members) -> None:
        self.file, self.members, self._archive = file, members, archive

    def content(self, name: str) -> bytes:
        """Return what a member holds."""
        return self._archive.read(name)

    def extract(self, name: str, file: Path) -> None:
        """Write what a member holds to a new file."""
        with self._archive.open(name) as member, file.open("xb") as target:
            shutil.copyfileobj(member, target, BLOCK)


@contextmanager
def unpacked(file: Path) -> Iterator[Unpacked]:
    """Open a file that `packed` wrote, once all of it is checked; nobody else opens it meanwhile.

    Raises `UserError` for any other file, and for one that is damaged or of a newer normbench.
    """
    try:
        stream = os.fdopen(files.open_descriptor(file), "rb")
    except OSError as error:
        raise UserError(
            f"{file}: cannot be read ({error.strerror or error}); name a file that normbench "
            "results export wrote"
        ) from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{file}: another import reads it; wait for it") from None
        except OSError:  # a file system without locks
            pass
        with strange(file):
            archive = ZipFile(stream)
        with archive:
            with strange(file):
                checked = Unpacked(file, archive, _members(file, archive))
                _check(archive, checked.members, os.fstat(stream.fileno()).st_size)
            yield checked


@contextmanager
def strange(file: Path) -> Iterator[None]:
    """Turn what is raised over a file that is no export into a `UserError`."""
    try:
        yield
    except UserError:
        raise
    except STRANGE as error:
        raise UserError(
            f"{file}: is no whole file of normbench results export ({clean.line(str(error))}); "
            "export it again"
        ) from error


def _members(file: Path, archive: ZipFile) -> Members:
    """Return what the manifest says of the members; raise `UserError` for one of a newer format."""
    if archive.getinfo(MANIFEST).file_size > LONGEST_MANIFEST:
        raise ValueError("its manifest is too long")
    found = json.loads(archive.read(MANIFEST))
    if not isinstance(found, dict) or not isinstance(found.get("format"), int):
        raise ValueError("its manifest says no format")
    if found["format"] > FORMAT:
        made = clean.line(str(found.get("normbench", "")))[:50]
        raise UserError(
            f"{file}: is of format {found['format']}, by normbench {made}, and this normbench "
            f"reads up to {FORMAT}; import it with a newer normbench"
        )
    members: Members = found["members"]
    return members


def _check(archive: ZipFile, members: Members, size: int) -> None:
    """Raise ValueError unless the file holds what its manifest says, with the same checksums."""
    infos = [info for info in archive.infolist() if info.filename != MANIFEST]
    if len(infos) != len(members) or {info.filename for info in infos} != members.keys():
        raise ValueError("its members are not those of its manifest")
    whole = sum(info.file_size for info in infos)
    if whole > max(SMALL, MOST_PACKED * size):
        raise ValueError(f"it is {format_gigabytes(size)} and would be {format_gigabytes(whole)}")
    for info in infos:
        _check_member(info)
        if members[info.filename]["bytes"] != info.file_size:
            raise ValueError(f"{clean.line(info.filename)} is of another size")
    for info in infos:
        with archive.open(info) as member:
            digest = hashlib.file_digest(member, "sha256").hexdigest()  # type: ignore[arg-type]
            if digest != members[info.filename]["sha256"]:
                raise ValueError(f"{clean.line(info.filename)} has another checksum")


def _check_member(info: ZipInfo) -> None:
    """Raise ValueError for a name that leaves its folder, a link, a folder, what is encrypted."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    plain = info.compress_type in (ZIP_STORED, ZIP_DEFLATED) and not info.flag_bits & ENCRYPTED
    if not (plain and kind in (0, stat.S_IFREG)):
        raise ValueError(f"{clean.line(info.filename)} is no plain file")
    _checked(info.filename)


def _checked(name: str) -> str:
    """Return a member's name; raise `UserError` for one that leaves its folder."""
    if not all(PART.fullmatch(part) for part in name.split("/")):
        raise UserError(f"{clean.line(name)}: is no name that a file may have in an export")
    return name
