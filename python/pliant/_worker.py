"""The worker: what the functions of the package do, as methods of one object."""

from __future__ import annotations

import math
import os
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._client import Answer, Client
from ._errors import Error
from ._files import CheckpointDir, CheckpointRequest, Path, sync
from ._task import Input, Output, Task

VERSION = "0.1.0"
RUN_DIR_ALONE = "checkpoints"  # not under Pliant


@dataclass(frozen=True)
class PreemptionInfo:
    """Nodes of the job will go. Times are Unix milliseconds."""

    deadline_ms: Optional[int]  # the earliest that a node gave
    stop_at_ms: Optional[int]  # when the group is stopped at the latest
    preempted_node_to_ranks: Mapping[str, Tuple[int, ...]]
    preempted_node_ids: Tuple[str, ...]
    preempted_ranks: Tuple[int, ...]

    @classmethod
    def from_json(cls, info: Mapping[str, Any]) -> PreemptionInfo:
        nodes = info.get("preempted_node_to_ranks") or {}
        return cls(
            deadline_ms=info.get("deadline_ms"),
            stop_at_ms=info.get("stop_at_ms"),
            preempted_node_to_ranks={node: tuple(ranks) for node, ranks in nodes.items()},
            preempted_node_ids=tuple(info.get("preempted_node_ids") or ()),
            preempted_ranks=tuple(info.get("preempted_ranks") or ()),
        )


Handler = Callable[[str], object]


class Worker:
    """This process as a task of Pliant, or on its own (`managed` is False)."""

    def __init__(self, env: Optional[Mapping[str, str]] = None) -> None:
        env = os.environ if env is None else env
        self.task = Task.from_environment(env)
        self._events = threading.Condition()
        self._requests: Dict[Optional[str], CheckpointRequest] = {}  # without a part yet
        self._new_requests: List[CheckpointRequest] = []
        self._handler: Optional[Handler] = None
        self._reports = threading.Lock()  # one at a time, in order
        self._collectives = threading.Lock()
        self._calls: Optional[int] = None
        self._seqs: Optional[int] = None
        self._last_reported: Optional[str] = None
        path = env.get("PLIANT_WORKER_SOCKET")
        self._client = Client(path, f"pliant-python {VERSION}", self._take_event) if path else None

    @property
    def managed(self) -> bool:
        """Started by pliant-agent?"""
        return self._client is not None

    @property
    def stopping(self) -> bool:
        """Has SIGTERM been announced?"""
        return self._client is not None and self._client.stopping

    def set_patience(self, seconds: float) -> None:
        """For how long to try to reach the agent; math.inf: for ever. Default: 10 minutes."""
        if self._client is not None:
            self._client.patience = seconds

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    # ---- checkpoints that ranks take by themselves ----------------------------------------------

    def get_checkpoint(self) -> Optional[str]:
        """The directory to start from; later this rank's own newest one; None: there is none."""
        if self._client is None:
            return self._last_reported or self.task.checkpoint_dir
        dir = self._client.ask("get_checkpoint").get("dir")
        return str(dir) if dir else None

    def checkpoint_dir(self) -> CheckpointDir:
        """Collective: a new directory for a checkpoint, whose name is rank 0's. Use it by `with`."""
        now = datetime.now(timezone.utc)
        name = now.strftime("checkpoint_%Y-%m-%d_%H-%M-%S.%f")
        if self._client is not None:
            with self._collectives:
                answer = self._collective("enter", kind="dir", payload=name)
            name = _checked_name(answer.get("payload"))
        return CheckpointDir(os.path.join(self._run_dir(), name), self.task.subtask)

    def report(
        self,
        metrics: Optional[Mapping[str, Any]] = None,
        checkpoint: Union[CheckpointDir, Path, None] = None,
    ) -> None:
        """Collective: all ranks report equally often. Returns when it has been taken in.

        `checkpoint` is what `checkpoint_dir()` gave, or a directory in the run's directory, or its name;
        what is in it is synced to disk first. It is then registered.
        """
        with self._reports:
            name, size = self._settle(checkpoint) if checkpoint is not None else (None, None)
            if self._client is None:
                return
            if self._calls is None:
                self._calls = int(self._client.hello().get("calls") or 0)
            self._client.ask(
                "report",
                collective=True,
                call=self._calls + 1,
                checkpoint=name,
                bytes=size,
                metrics=plain(metrics or {}),
            )
            self._calls += 1

    def _run_dir(self) -> str:
        if self.task.run_dir:
            return self.task.run_dir
        if self._client is None:
            return RUN_DIR_ALONE
        dir = self._client.hello().get("run_dir")
        if not dir:
            raise Error("this task has no run directory for checkpoints")
        return str(dir)

    def _settle(self, checkpoint: Union[CheckpointDir, Path]) -> Tuple[str, int]:
        if isinstance(checkpoint, CheckpointDir):
            checkpoint.commit()
        run_dir, given = self._run_dir(), os.fspath(checkpoint)
        name = os.path.relpath(given, run_dir) if os.path.dirname(given) else given
        if name in ("", ".", "..") or "/" in name:
            raise ValueError(f"checkpoint {given}: expected a directory in {run_dir}")
        path = os.path.join(run_dir, name)
        size = sync(path)
        if self._client is None:
            self._last_reported = path
        return name, size

    def _collective(self, op: str, **members: Any) -> Answer:
        """With the lock held: the next one in the sequence that all ranks share."""
        assert self._client is not None
        if self._seqs is None:
            self._seqs = int(self._client.hello().get("seqs") or 0)
        answer = self._client.ask(op, collective=True, seq=self._seqs + 1, **members)
        self._seqs += 1
        return answer

    # ---- notices ----------------------------------------------------------------------------------

    def get_preemption_info(self) -> Optional[PreemptionInfo]:
        """What is known of a coming preemption.

        In worker groups a collective that gives all ranks the same answer: all must ask equally often.
        """
        if self._client is None:
            return None
        if self.task.group:
            with self._collectives:
                answer = self._collective("get_preemption_info")
        else:
            answer = self._client.ask("get_preemption_info")
        info = answer.get("info")
        return PreemptionInfo.from_json(info) if info is not None else None

    def end_of_data(self) -> None:
        """This source has read all that there is."""
        if self._client is not None:
            self._client.ask("end_of_data")

    # ---- blocking edges ----------------------------------------------------------------------------

    def output_sizes(self, output: Union[Output, int], sizes: Sequence[int]) -> None:
        """How much was written for an edge, where that does not show in the sizes of the files.

        Bytes of each subpartition; once for an edge.
        """
        if self._client is not None:
            self._client.ask("output", edge=_edge(output), bytes=list(sizes))

    def input_lost(self, input: Union[Input, int], subtask: int) -> None:
        """What `subtask` wrote for this edge cannot be read. Then end with another exit code than 0.

        It is written again, and this subtask started again after that.
        """
        if self._client is not None:
            self._client.ask("input_lost", edge=_edge(input), subtask=subtask)

    # ---- checkpoints that are asked for --------------------------------------------------------------

    def checkpoint_requested(self, timeout: float = 0) -> Optional[CheckpointRequest]:
        """The next request for a checkpoint; None: none came in so many seconds.

        Not under Pliant, and once the task is to stop, none will come; the time is waited for all the same,
        unless it is math.inf.
        """
        if self._client is None:
            time.sleep(max(0, timeout) if timeout < math.inf else 0)
            return None
        self._client.take_checkpoints()
        with self._events:
            if timeout == math.inf:
                self._events.wait_for(lambda: self._new_requests or self.stopping)
            else:
                self._events.wait_for(lambda: self._new_requests, max(0, timeout))
            return self._new_requests.pop(0) if self._new_requests else None

    def on_checkpoint(self, write: Handler) -> Handler:
        """Call `write(dir)` in a thread of its own whenever this subtask's state is wanted.

        What it raises makes the checkpoint fail, not the task. Also as a decorator. Graph jobs only.
        """
        with self._events:
            first, self._handler = self._handler is None, write
        if first and self._client is not None:
            threading.Thread(target=self._write_parts, name="pliant-parts", daemon=True).start()
        return write

    def _write_parts(self) -> None:
        while True:
            request = self.checkpoint_requested(math.inf)
            if request is None:
                return
            handler = self._handler
            if request.dir is None or handler is None:
                continue
            try:
                with request as dir:
                    handler(dir)
            except Exception:  # it was told with the part
                pass

    def _tell_part(
        self, request: CheckpointRequest, size: Optional[int], cause: Optional[str]
    ) -> None:
        assert self._client is not None
        if size is not None:
            self._client.ask("part", id=request.id, ok=True, bytes=size)
        else:
            self._client.ask("part", id=request.id, ok=False, cause=cause)
        with self._events:
            self._requests.pop(request.id, None)

    def _take_event(self, line: Answer) -> None:
        """By the connection's thread. A request may come again after the connection broke."""
        if line["ev"] == "checkpoint":
            self._take_request(line)
        with self._events:
            self._events.notify_all()

    def _take_request(self, line: Answer) -> None:
        id, dir = line.get("id"), line.get("dir")
        request = CheckpointRequest(id, dir, bool(line.get("savepoint")), self._tell_part)
        with self._events:
            if id is None:
                if any(known.id is None for known in self._new_requests):
                    return
            elif id in self._requests:
                return
            else:
                self._requests[id] = request
            self._new_requests.append(request)


def _edge(of: Union[Input, Output, int]) -> int:
    return of if isinstance(of, int) else of.edge


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name:
        raise Error("rank 0 gave no name of a directory")
    return name


def plain(value: Any) -> Any:
    """As JSON has it: numbers that are not finite become None, scalars of numpy and torch numbers."""
    if isinstance(value, Mapping):
        return {str(key): plain(of) for key, of in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(of) for of in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    item = getattr(value, "item", None)
    if callable(item):
        return plain(item())
    raise TypeError(f"metrics: {type(value).__name__} is nothing that JSON has")
