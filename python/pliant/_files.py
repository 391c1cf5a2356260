"""Files that shall still be there after a crash."""

from __future__ import annotations

import os
import stat
from types import TracebackType
from typing import Callable, Optional, Type, Union

from ._errors import Unavailable

Path = Union[str, "os.PathLike[str]"]


def _fsync(path: Path, flags: int = 0) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _sync_entry(path: str) -> int:
    mode = os.lstat(path)
    size = 0
    if stat.S_ISDIR(mode.st_mode):
        for name in os.listdir(path):
            try:
                size += _sync_entry(os.path.join(path, name))
            except FileNotFoundError:
                pass  # another rank renames its own
    elif stat.S_ISREG(mode.st_mode):
        size = mode.st_size
    else:
        return 0
    _fsync(path, os.O_NOFOLLOW)
    return size


def sync(path: Path) -> int:
    """Sync a file, or a directory with all in it, and the directory that names it.

    Returns the size of all files.
    """
    name = os.path.abspath(os.fspath(path))
    size = _sync_entry(name)
    _fsync(os.path.dirname(name), os.O_DIRECTORY)
    return size


def merge(source: str, target: str) -> None:
    """Rename all in `source` into `target`, whose directories stay, and remove `source`."""
    for name in sorted(os.listdir(source)):
        at, to = os.path.join(source, name), os.path.join(target, name)
        if os.path.isdir(at) and not os.path.islink(at) and os.path.isdir(to):
            merge(at, to)
        else:
            os.replace(at, to)
    os.rmdir(source)
    _fsync(target, os.O_DIRECTORY)


def remove_tree(path: str) -> None:
    for root, directories, names in os.walk(path, topdown=False):
        for name in names:
            os.unlink(os.path.join(root, name))
        for name in directories:
            full = os.path.join(root, name)
            os.unlink(full) if os.path.islink(full) else os.rmdir(full)
    os.rmdir(path)


class CheckpointDir(os.PathLike[str]):
    """A new directory for a checkpoint; made by `pliant.checkpoint_dir()`.

    All ranks write into one directory. Until the end of the `with` this object is the path of a directory of
    this rank alone; then its files are synced and renamed into the common one, which it names
    from there on. After an exception they are thrown away.
    """

    def __init__(self, final: str, rank: int) -> None:
        self.name = os.path.basename(final)
        self._final = final
        self._partial: Optional[str] = os.path.join(final, f".rank-{rank}.partial")
        os.makedirs(self._partial)

    def commit(self) -> None:
        """Sync, and rename into the common directory. Once is enough."""
        if self._partial is None:
            return
        sync(self._partial)
        merge(self._partial, self._final)
        self._partial = None
        _fsync(os.path.dirname(self._final) or ".", os.O_DIRECTORY)

    def discard(self) -> None:
        if self._partial is not None:
            remove_tree(self._partial)
            self._partial = None

    def __fspath__(self) -> str:
        return self._partial or self._final

    def __str__(self) -> str:
        return os.fspath(self)

    def __repr__(self) -> str:
        return f"CheckpointDir({self._final!r})"

    def __truediv__(self, name: Path) -> str:
        return os.path.join(self, name)

    def __enter__(self) -> CheckpointDir:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.discard() if kind else self.commit()


class CheckpointRequest:
    """The scheduler wants a checkpoint now.

    Graph jobs: write this subtask's state into `dir`, which is empty, inside a `with`: at its end
    the files are synced and the part is told; after an exception, that it failed.
    Worker groups: `id` and `dir` are None; report a checkpoint soon.
    """

    def __init__(
        self,
        id: Optional[str],
        dir: Optional[str],
        savepoint: bool,
        tell: Callable[[CheckpointRequest, Optional[int], Optional[str]], None],
    ) -> None:
        self.id, self.dir, self.savepoint = id, dir, savepoint
        self._tell = tell

    def done(self) -> None:
        """The state is in `dir`."""
        if self.dir is not None:
            self._tell(self, sync(self.dir), None)

    def failed(self, cause: str) -> None:
        if self.dir is not None:
            self._tell(self, None, cause)

    def __repr__(self) -> str:
        return f"CheckpointRequest(id={self.id!r}, dir={self.dir!r}, savepoint={self.savepoint})"

    def __enter__(self) -> str:
        if self.dir is None:
            raise ValueError("a worker group is asked to report a checkpoint, not for a part")
        return self.dir

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            if kind is None:
                self.done()
            else:
                self.failed(f"{kind.__name__}: {error}")
        except Unavailable:
            pass  # the checkpoint fails when its time is up; the task goes on
