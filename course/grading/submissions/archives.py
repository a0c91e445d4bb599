"""Zip archives that students hand in, unpacked within bounds; nothing outside of one new folder is written."""

from __future__ import annotations

import errno
import re
import shutil
import stat
import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from course.grading.submissions.files import is_left_behind

MOST_BYTES, MOST_FILES = 100 * 2**20, 1_000
"""Of all files in an archive: their bytes when unpacked, and their number."""

MOST_RATIO, SMALL = 100, 10 * 2**20
"""Bytes unpacked per byte of an archive that unpacks to more than SMALL bytes. Notebooks reach 30."""

LONGEST_ENTRY = 1_024
"""Bytes of a file's entry in the list of files, on average."""

END = struct.Struct("<4s4H2LH")
"""The record at the end of every archive; its sixth number is the length of the list of files."""

DRIVE = re.compile(r"[A-Za-z]:")


class ArchiveError(ValueError):
    """An archive is not opened; the text says why, without the archive's name."""


def unpack(archive: Path, to: Path) -> list[str]:
    """Unpack a zip archive into the new folder `to`; returns remarks on what was left out. Raises ArchiveError."""
    try:
        check_list(archive)
        with zipfile.ZipFile(archive) as opened:
            check(opened, archive.stat().st_size)
            to.mkdir(parents=True)
            return [remark for member in opened.infolist() if (remark := unpack_member(opened, member, to))]
    except ArchiveError:
        raise
    except FileExistsError:
        raise ArchiveError("it holds two files of the same name") from None
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, struct.error) as error:
        if isinstance(error, OSError) and error.errno not in (
            None,
            errno.EINVAL,
        ):  # EINVAL: a place before the beginning
            raise ArchiveError(f"it cannot be unpacked: {error.strerror}") from None
        raise ArchiveError(f"it is damaged, or no zip archive: {' '.join(str(error).split())[:100]}") from None


def check_list(archive: Path) -> None:
    """Refuse a list of files that is too long to be read. Raises ArchiveError."""
    with archive.open("rb") as file:
        file.seek(max(0, archive.stat().st_size - END.size - 2**16))
        tail = file.read()
    if (place := tail.rfind(b"PK\5\6")) >= 0 and len(tail) - place >= END.size:
        length = END.unpack_from(tail, place)[5]
        if length > MOST_FILES * LONGEST_ENTRY:
            raise ArchiveError(f"it holds more than {MOST_FILES:,} files")


def check(opened: zipfile.ZipFile, packed: int) -> None:
    """Refuse what is too large, encrypted, packed in another way, or leads out of the folder. Raises ArchiveError."""
    members = opened.infolist()
    total = sum(member.file_size for member in members)
    if len(members) > MOST_FILES:
        raise ArchiveError(f"it holds {len(members):,} files; at most {MOST_FILES:,} are unpacked")
    if total > MOST_BYTES:
        raise ArchiveError(f"it would unpack to {total / 2**20:,.0f} MB; at most {MOST_BYTES >> 20} MB are unpacked")
    if total > SMALL and total > MOST_RATIO * packed:
        raise ArchiveError(f"it would unpack to {total / packed:,.0f} times its size, as no notebook does")
    for member in members:
        name = PurePosixPath(name_of(member))
        if name.is_absolute() or ".." in name.parts or DRIVE.match(str(name)):
            raise ArchiveError(f"the name {str(name)[:80]!r} in it leads out of the archive")
        if member.flag_bits & 1:
            raise ArchiveError("it is encrypted: it has to be handed in without a password")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArchiveError("it is packed by an unusual method: it has to be packed as an ordinary zip archive")


def unpack_member(opened: zipfile.ZipFile, member: zipfile.ZipInfo, to: Path) -> str:
    """Unpack one file; returns a remark if it was left out."""
    name = name_of(member)
    kind = stat.S_IFMT(member.external_attr >> 16) if member.create_system == 3 else 0
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.endswith("/") or not parts or any(map(is_left_behind, parts)):
        return ""
    if kind not in (0, stat.S_IFREG):
        return f"{name[:80]!r} in the archive is a link or a device, and was left out"
    path = to.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with opened.open(member) as source, path.open("xb") as target:  # it reads no more than the size that was checked
        shutil.copyfileobj(source, target)
    return ""


def name_of(member: zipfile.ZipInfo) -> str:
    """A file's name, with slashes. macOS writes UTF-8 and does not say so; others without a mark write cp437."""
    name = member.filename
    if not member.flag_bits & 0x800:
        try:
            name = name.encode("cp437").decode()
        except UnicodeError:
            name = member.filename
    return name.replace("\\", "/")
