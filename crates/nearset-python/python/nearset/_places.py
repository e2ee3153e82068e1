"""Reading and writing what lies elsewhere than in files of this machine: files that somebody has opened, and what fsspec knows."""

from __future__ import annotations

from typing import Any


def read(place: Any) -> bytes:
    """All bytes of a URL, of a path that knows its filesystem, or of an open file."""
    if hasattr(place, "read"):
        return _as_bytes(place.read())
    fs, path = _filesystem(place)
    return bytes(fs.cat_file(path))


def write(place: Any, data: bytes, *, force: bool) -> None:
    """Writes bytes there, whole or not at all where the filesystem can; into an open file as it is."""
    if hasattr(place, "write"):
        place.write(data)
        return
    fs, path = _filesystem(place)
    if not force and fs.exists(path):
        raise FileExistsError(f"{path}: it exists already (choose another name, or pass force=True to replace it)")
    with fs.transaction, fs.open(path, "wb") as out:
        out.write(data)


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
