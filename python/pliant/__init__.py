"""A task's side of Pliant: checkpoints, reports, notices of preemption.

The functions below share one worker, made at the first call from the environment that pliant-agent sets.
Not under Pliant nothing waits, nobody is told, and checkpoints go below ./checkpoints. All of it may be
called from any thread. A forked child starts with a connection of its own.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Mapping, Optional, Sequence, Union

from ._errors import Error, OutOfOrder, Refused, Stopping, Unavailable, Unreachable
from ._files import CheckpointDir, CheckpointRequest, Path, sync
from ._task import Input, Output, Part, Partition, Task
from ._worker import VERSION as __version__
from ._worker import Handler, PreemptionInfo, Worker

__all__ = [
    "CheckpointDir",
    "CheckpointRequest",
    "Error",
    "Input",
    "OutOfOrder",
    "Output",
    "Part",
    "Partition",
    "PreemptionInfo",
    "Refused",
    "Stopping",
    "Task",
    "Unavailable",
    "Unreachable",
    "Worker",
    "checkpoint_dir",
    "checkpoint_requested",
    "end_of_data",
    "get_checkpoint",
    "get_preemption_info",
    "init",
    "input_lost",
    "on_checkpoint",
    "output_sizes",
    "report",
    "stopping",
    "sync",
    "task",
]

_worker: Optional[Worker] = None
_making = threading.Lock()


def init() -> Worker:
    """The process's worker. The other functions call this by themselves."""
    global _worker
    with _making:
        if _worker is None:
            _worker = Worker()
        return _worker


def _forget_parents_worker() -> None:
    global _worker, _making
    _worker, _making = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_parents_worker)


def task() -> Task:
    """Who this process is: subtask or rank, key groups, what to restore, what to read and write."""
    return init().task


def stopping() -> bool:
    """Has SIGTERM been announced?"""
    return init().stopping


def get_checkpoint() -> Optional[str]:
    """The directory to start from; later this rank's own newest one; None: there is none."""
    return init().get_checkpoint()


def checkpoint_dir() -> CheckpointDir:
    """Collective: a new directory for a checkpoint, whose name is rank 0's. Use it by `with`."""
    return init().checkpoint_dir()


def report(
    metrics: Optional[Mapping[str, Any]] = None,
    checkpoint: Union[CheckpointDir, Path, None] = None,
) -> None:
    """Collective: all ranks report equally often. Returns when it has been taken in."""
    init().report(metrics, checkpoint)


def get_preemption_info() -> Optional[PreemptionInfo]:
    """What is known of a coming preemption; in worker groups a collective."""
    return init().get_preemption_info()


def checkpoint_requested(timeout: float = 0) -> Optional[CheckpointRequest]:
    """The next request for a checkpoint; None: none came in so many seconds, or none will."""
    return init().checkpoint_requested(timeout)


def on_checkpoint(write: Handler) -> Handler:
    """Call `write(dir)` in a thread of its own whenever this subtask's state is wanted."""
    return init().on_checkpoint(write)


def output_sizes(output: Union[Output, int], sizes: Sequence[int]) -> None:
    """How much was written for a blocking edge, where that does not show in the sizes of the files."""
    init().output_sizes(output, sizes)


def input_lost(input: Union[Input, int], subtask: int) -> None:
    """What `subtask` wrote for this edge cannot be read; then end with another exit code than 0."""
    init().input_lost(input, subtask)


def end_of_data() -> None:
    """This source has read all that there is."""
    init().end_of_data()
