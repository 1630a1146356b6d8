"""Makes directories and files of a run. A process of the job, or of an earlier one, may have put links in their
places: none is followed.

OSError: it names the path; "Not a directory" or "Too many levels of symbolic links" where a link stands.
"""

import contextlib
import os
import shutil
import stat
from typing import Iterator

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def open_own(path: str, flags: int) -> int:
    """An opener for open(): of its path, the last part is no link."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def make_directory(root: str, path: str, fresh: bool = False, mode: int = 0o777) -> None:
    """Makes `path`, and `root` above it, where they are not there; beneath `root` no link is followed.
    `fresh`: what was there is removed."""
    if path == root:
        os.makedirs(root, mode, exist_ok=True)
        return
    with _opened(root, os.path.dirname(path)) as parent:
        name = os.path.basename(path)
        with _errors_named(path):
            if fresh:
                _remove(name, parent)
            os.close(_enter(name, parent, mode))


def write_new_file(root: str, path: str, content: bytes, mode: int) -> None:
    """Makes a file that is not there yet, and the directories between `root` and it."""
    with _opened(root, os.path.dirname(path)) as parent, _errors_named(path):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(os.path.basename(path), flags, mode, dir_fd=parent), "wb") as file:
            file.write(content)


@contextlib.contextmanager
def _opened(root: str, path: str) -> Iterator[int]:
    """The descriptor of a directory at or beneath `root`, which is made where it is not there."""
    os.makedirs(root, exist_ok=True)
    relative = os.path.relpath(path, root)
    parts = [] if relative == "." else relative.split("/")
    assert ".." not in parts, f"{path} is not beneath {root}"
    descriptor = os.open(root, _DIRECTORY)
    try:
        for count, name in enumerate(parts, 1):
            with _errors_named(os.path.join(root, *parts[:count])):
                inner = _enter(name, descriptor, 0o777)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _enter(name: str, parent: int, mode: int) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=parent)
    return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)


def _remove(name: str, parent: int) -> None:
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(status.st_mode):
        shutil.rmtree(name, dir_fd=parent)
    else:
        os.unlink(name, dir_fd=parent)


@contextlib.contextmanager
def _errors_named(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
