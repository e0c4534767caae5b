"""A zip file of members and a manifest: written atomically, and checked when it is read.

A file may come from anywhere. No member is unpacked by its name, unpickled or evaluated; no more is
read than the file declares; and no member is used before all members have the right checksums.
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
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from normbench.datasets.values import UserError, format_gigabytes
from normbench.recording.store import provenance
from normbench.results.safe import clean, files

FORMAT = 1  # a file of a newer format is refused
MANIFEST = "manifest.json"
MAX_MANIFEST = 1 << 30  # bytes
ALLOWED_BYTES = 1 << 26  # of content in any file
MAX_COMPRESSION = 100  # the largest ratio of content to file size beyond that
BLOCK = 1 << 20  # bytes
NAME_SEGMENT = re.compile(r"(?!\.{1,2}\Z)[^/\\\x00-\x1f\x7f]{1,255}")  # of the name of a member
# Errors of zipfile and json over files that are damaged or no export.
FILE_ERRORS: tuple[type[Exception], ...] = (BadZipFile, zlib.error, ValueError, KeyError, TypeError)
FILE_ERRORS += (AttributeError, EOFError, NotImplementedError, RuntimeError, RecursionError)
ENCRYPTED = 1  # a flag of a member
Members = Mapping[str, Mapping[str, Any]]  # sha256 and bytes of each, by its name


class Pack:
    """A zip file that is being written, with the checksums of its members."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self.members: dict[str, dict[str, Any]] = {}

    def add(self, name: str, content: bytes) -> str:
        """Add a member.

        Args:
            name: The path of the member in the archive.
            content: Its bytes.

        Returns:
            The SHA-256 of the content, in hexadecimal digits.
        """
        self._archive.writestr(_safe_name(name), content, ZIP_DEFLATED)
        return self._note(name, hashlib.sha256(content).hexdigest(), len(content))

    def add_file(self, name: str, file: Path) -> str:
        """Add the content of a file as a member, a block at a time.

        Args:
            name: Its path in the archive.
            file: The file.

        Returns:
            The SHA-256 of the content, in hexadecimal digits.
        """
        with (
            file.open("rb") as content,
            self._archive.open(_safe_name(name), "w", force_zip64=True) as member,
        ):
            digest, size = hashlib.sha256(), 0
            while block := content.read(BLOCK):
                digest.update(block)
                size += len(block)
                member.write(block)
        return self._note(name, digest.hexdigest(), size)

    def _note(self, name: str, digest: str, size: int) -> str:
        """Enter a member in the manifest, and return its digest."""
        self.members[name] = {"sha256": digest, "bytes": size}
        return digest


@contextmanager
def packed(file: Path, overwrite: bool, header_fields: Mapping[str, Any]) -> Iterator[Pack]:
    """Write a zip file as a draft, and rename it once it is complete.

    Args:
        file: The file.
        overwrite: Whether an existing file is replaced.
        header_fields: The fields of the manifest beside its members. They are read after the last
            member is added, so that they may change until then.

    Yields:
        The `Pack` that takes the members.

    Raises:
        UserError: The file cannot be written, or exists and must not be overwritten.
    """
    draft = file.with_name(f".{file.name}.draft")
    try:
        _refuse_existing(file, overwrite)
        descriptor = files.open_descriptor(draft, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise _unwritable(file, error) from error
    with os.fdopen(descriptor, "r+b") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"{file}: another export writes it; wait for it") from None
        try:
            stream.truncate()  # the remnant of an export that was killed
            with ZipFile(stream, "w", ZIP_STORED) as archive:
                pack = Pack(archive)
                yield pack
                header = {
                    "format": FORMAT,
                    "normbench": provenance.installed_version(),
                    **header_fields,
                }
                manifest = json.dumps(header | {"members": pack.members}, indent=1)
                archive.writestr(MANIFEST, manifest, ZIP_DEFLATED)
            stream.flush()
            os.fsync(stream.fileno())
            _refuse_existing(file, overwrite)  # it may have been created in the meantime
            draft.replace(file)
        except OSError as error:
            raise _unwritable(file, error) from error
        finally:
            draft.unlink(missing_ok=True)


def _refuse_existing(file: Path, overwrite: bool) -> None:
    """Raise `UserError` for an existing file that must not be overwritten."""
    if os.path.lexists(file) and not overwrite:
        raise UserError(f"{file}: is there; name another file, or add --overwrite")


def _unwritable(file: Path, error: OSError) -> UserError:
    """Return the error of a file that cannot be written."""
    return UserError(
        f"{file}: cannot be written ({error.strerror or error}); name a file that can, such as "
        "export.zip"
    )


class Unpacked:
    """A checked file that `packed` wrote, and its members.

    Args:
        file: The file, for messages.
        archive: The opened file.
        members: The checksum (`sha256`) and the size (`bytes`) of each member, by its name.
    """

    def __init__(self, file: Path, archive: ZipFile, members: Members) -> None:
        self.file, self.members, self._archive = file, members, archive

    def content(self, name: str) -> bytes:
        """Return the content of a member."""
        return self._archive.read(name)

    def extract(self, name: str, file: Path) -> None:
        """Write the content of a member to a new file.

        Args:
            name: The path of the member in the archive.
            file: The file, which must not exist.
        """
        with self._archive.open(name) as member, file.open("xb") as target:
            shutil.copyfileobj(member, target, BLOCK)


@contextmanager
def unpacked(file: Path) -> Iterator[Unpacked]:
    """Check a file that `packed` wrote, and open it under a lock.

    Args:
        file: The file.

    Yields:
        The checked file.

    Raises:
        UserError: The file is no export, is damaged, or is of a newer format.
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
        with file_errors_as_user_errors(file):
            archive = ZipFile(stream)
        with archive:
            with file_errors_as_user_errors(file):
                checked = Unpacked(file, archive, _members(file, archive))
                _check(archive, checked.members, os.fstat(stream.fileno()).st_size)
            yield checked


@contextmanager
def file_errors_as_user_errors(file: Path) -> Iterator[None]:
    """Turn the errors of reading a file that is no export into a `UserError`."""
    try:
        yield
    except UserError:
        raise
    except FILE_ERRORS as error:
        raise UserError(
            f"{file}: is no whole file of normbench results export ({clean.line(str(error))}); "
            "export it again"
        ) from error


def _members(file: Path, archive: ZipFile) -> Members:
    """Return the members that the manifest of an archive lists.

    Args:
        file: The file of the archive, for the message.
        archive: The archive.

    Raises:
        UserError: The archive is of a newer format.
        ValueError: It has no valid manifest. Other errors are among `FILE_ERRORS`.
    """
    if archive.getinfo(MANIFEST).file_size > MAX_MANIFEST:
        raise ValueError("its manifest is too long")
    manifest = json.loads(archive.read(MANIFEST))
    if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
        raise ValueError("its manifest says no format")
    if manifest["format"] > FORMAT:
        writer_version = clean.line(str(manifest.get("normbench", "")))[:50]
        raise UserError(
            f"{file}: is of format {manifest['format']}, by normbench {writer_version}, and "
            f"this normbench reads up to {FORMAT}; import it with a newer normbench"
        )
    members: Members = manifest["members"]
    return members


def _check(archive: ZipFile, members: Members, size: int) -> None:
    """Raise ValueError unless the members are those of the manifest, with the same checksums.

    Args:
        archive: The archive.
        members: The members that its manifest lists.
        size: The size of the file of the archive in bytes, which bounds what is unpacked.
    """
    recorded = [entry for entry in archive.infolist() if entry.filename != MANIFEST]
    if len(recorded) != len(members) or {entry.filename for entry in recorded} != members.keys():
        raise ValueError("its members are not those of its manifest")
    unpacked_size = sum(entry.file_size for entry in recorded)
    if unpacked_size > max(ALLOWED_BYTES, MAX_COMPRESSION * size):
        raise ValueError(
            f"it is {format_gigabytes(size)} and would be {format_gigabytes(unpacked_size)}"
        )
    # Nothing is unpacked before the header of every member was checked.
    for entry in recorded:
        _check_member(entry)
        if members[entry.filename]["bytes"] != entry.file_size:
            raise ValueError(f"{clean.line(entry.filename)} is of another size")
    for entry in recorded:
        with archive.open(entry) as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]
            if digest != members[entry.filename]["sha256"]:
                raise ValueError(f"{clean.line(entry.filename)} has another checksum")


def _check_member(member: ZipInfo) -> None:
    """Raise ValueError for a link, a folder, an encrypted member, or an unsafe name.

    Any other compression than deflate is refused, too.
    """
    # The upper 16 bits are the Unix mode of the file; 0 where the writer set none.
    file_type = stat.S_IFMT(member.external_attr >> 16)
    plain = member.compress_type in (ZIP_STORED, ZIP_DEFLATED) and not member.flag_bits & ENCRYPTED
    if not (plain and file_type in (0, stat.S_IFREG)):
        raise ValueError(f"{clean.line(member.filename)} is no plain file")
    _safe_name(member.filename)


def _safe_name(name: str) -> str:
    """Return the name of a member unchanged; raise `UserError` for one that leaves its folder."""
    if not all(NAME_SEGMENT.fullmatch(segment) for segment in name.split("/")):
        raise UserError(f"{clean.line(name)}: is no name that a file may have in an export")
    return name
