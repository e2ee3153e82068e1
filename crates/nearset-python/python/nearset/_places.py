"""Reading and writing what lies elsewhere than in files of this machine: files that somebody has opened, and what fsspec knows."""

from __future__ import annotations

from contextlib import nullcontext
from io import RawIOBase, TextIOBase
from typing import Any


def read(place: Any) -> bytes:
    """All bytes of a URL, of a path that knows its filesystem, or of an open file."""
    if hasattr(place, "read"):
        # Before it stumbles over bytes that are no text.
        return _as_bytes("" if isinstance(place, TextIOBase) else place.read())
    _expect_mode(place, "rb", "reading")
    fs, path = _filesystem(place)
    if _is_packed(place):
        with place as file:
            return _as_bytes(file.read())
    return bytes(fs.cat_file(path))


def write(place: Any, data: bytes, *, force: bool) -> None:
    """Writes bytes there, whole or not at all where the filesystem can; into an open file as it is."""
    if hasattr(place, "write"):
        _write_all(place, data)
        return
    _expect_mode(place, "wb", "writing")
    fs, path = _filesystem(place)
    if not force and fs.exists(path):
        raise FileExistsError(f"{path}: it exists already (choose another name, or pass force=True to replace it)")
    # Whoever has begun a transaction ends it, and what is written here is part of it.
    with nullcontext() if fs._intrans else fs.transaction, place if _is_packed(place) else fs.open(path, "wb") as out:
        _write_all(out, data)


def _write_all(file: Any, data: bytes) -> None:
    # Files without a buffer, which may be those of `tempfile`, take a part at a time.
    is_raw = isinstance(getattr(file, "file", file), RawIOBase)
    try:
        written = file.write(data)
    except TypeError as error:
        if hasattr(file, "encoding"):
            raise TypeError("the file is open for writing text: open it for writing bytes, by mode='wb'") from error
        raise
    rest = memoryview(data)
    while is_raw and (written or 0) < len(rest):
        if not written:
            raise BlockingIOError(f"the file took {len(data) - len(rest)} of {len(data)} bytes and no more: open it for blocking writes")
        rest = rest[written:]
        written = file.write(rest)


def _expect_mode(place: Any, wanted: str, use: str) -> None:
    """Refuses what fsspec.open returns for another use than this one."""
    mode = getattr(place, "mode", wanted)
    if mode != wanted:
        raise TypeError(f"fsspec.open was given mode={mode!r}: open it for {use} bytes, by mode={wanted!r}")


def _is_packed(place: Any) -> bool:
    """Whether it is what fsspec.open returns for a file that is packed, and that it packs and unpacks itself."""
    return getattr(place, "compression", None) is not None


def _as_bytes(data: Any) -> bytes:
    if isinstance(data, str):
        raise TypeError("the file is open for reading text: open it for reading bytes, by mode='rb'")
    return bytes(data)


def _filesystem(place: Any) -> tuple[Any, str]:
    # What fsspec.open returns, and paths of universal_pathlib.
    if hasattr(place, "fs"):
        return place.fs, str(place.path)
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise ImportError(f"{place} is read and written by fsspec, which is not installed: pip install fsspec") from error
    fs, path = url_to_fs(place)
    return fs, str(path)
