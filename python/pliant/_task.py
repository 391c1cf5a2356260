"""What a task is told by its environment when it is started."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Tuple

_MAX_PARALLELISM = 32768


@dataclass(frozen=True)
class Part:
    """A part of the checkpoint to start from that has key groups of this subtask."""

    dir: str
    subtask: int  # whose it was,
    parallelism: int  # of how many
    key_groups: range  # what of it belongs to this subtask now


@dataclass(frozen=True)
class Partition:
    """What one subtask wrote for an edge, as far as this one is to read it."""

    dir: str
    subtask: int  # whose it is,
    attempt: int  # and which of its attempts
    subpartitions: range

    @property
    def files(self) -> List[str]:
        """Those of the subpartitions in which something is. FileNotFoundError: they are lost."""
        if not os.path.isdir(self.dir):
            raise FileNotFoundError(errno.ENOENT, "an input is lost", self.dir)
        paths = (os.path.join(self.dir, str(n)) for n in self.subpartitions)
        return [path for path in paths if os.path.exists(path)]


@dataclass(frozen=True)
class Input:
    """A blocking edge that this subtask reads."""

    edge: int  # index in the job, from 0
    from_vertex: str
    partitions: Tuple[Partition, ...]

    @property
    def files(self) -> List[str]:
        """All that there is to read."""
        return [file for partition in self.partitions for file in partition.files]


@dataclass(frozen=True)
class Output:
    """A blocking edge that this subtask writes: subpartition N into the file path(N)."""

    edge: int
    to_vertex: str
    dir: str
    subpartitions: int

    def path(self, subpartition: int) -> str:
        if not 0 <= subpartition < self.subpartitions:
            raise ValueError(f"subpartition {subpartition}: expected 0 to {self.subpartitions - 1}")
        return os.path.join(self.dir, str(subpartition))


@dataclass(frozen=True)
class Task:
    """Who this process is. Ranks and subtasks differ from attempt to attempt.

    In a worker group `subtask` is the rank and `parallelism` the world size.
    """

    job_id: Optional[str] = None
    job_name: Optional[str] = None
    node_id: Optional[str] = None
    vertex: Optional[str] = None
    group: bool = False
    subtask: int = 0
    parallelism: int = 1
    max_parallelism: int = 128
    key_groups: range = range(128)
    attempt: int = 1
    slot: int = 0
    checkpoint_dir: Optional[str] = None
    run_dir: Optional[str] = None
    log_dir: Optional[str] = None
    preemption_file: Optional[str] = None
    restore_parts: Tuple[Part, ...] = ()
    inputs: Tuple[Input, ...] = ()
    outputs: Tuple[Output, ...] = ()

    @classmethod
    def from_environment(cls, env: Optional[Mapping[str, str]] = None) -> Task:
        """ValueError names the variable that is wrong."""
        given: Mapping[str, str] = os.environ if env is None else env

        def text(name: str) -> Optional[str]:
            return given.get(name) or None

        # Somebody above may have left a RANK, and a worker group may have a graph job's variables too.
        run = text("TORCHELASTIC_RUN_ID")
        ranked = text("RANK") is not None and text("WORLD_SIZE") is not None
        of_job = run is not None and run == text("PLIANT_JOB_ID")
        group = ranked and (of_job or text("PLIANT_PARALLELISM") is None)
        size, index = ("WORLD_SIZE", "RANK") if group else ("PLIANT_PARALLELISM", "PLIANT_SUBTASK")
        parallelism = _count(given, size, 1, 1, None)
        subtask = _count(given, index, 0, 0, parallelism - 1)
        most, own = 128, range(0)
        parts: Tuple[Part, ...] = ()
        if not group:
            most = _count(
                given,
                "PLIANT_MAX_PARALLELISM",
                default_max_parallelism(parallelism),
                parallelism,
                _MAX_PARALLELISM,
            )
            own = _key_groups(given, most, parallelism, subtask)
            parts = _parts(given, most, own)
        return cls(
            job_id=text("PLIANT_JOB_ID"),
            job_name=text("PLIANT_JOB_NAME"),
            node_id=text("PLIANT_NODE_ID"),
            vertex=text("PLIANT_VERTEX"),
            group=group,
            subtask=subtask,
            parallelism=parallelism,
            max_parallelism=most,
            key_groups=own,
            attempt=_count(given, "PLIANT_ATTEMPT", 1, 1, None),
            slot=_count(given, "PLIANT_SLOT", 0, 0, None),
            checkpoint_dir=text("PLIANT_CHECKPOINT_DIR"),
            run_dir=text("PLIANT_RUN_DIR"),
            log_dir=text("PLIANT_LOG_DIR"),
            preemption_file=text("PLIANT_PREEMPTION_FILE"),
            restore_parts=parts,
            inputs=_inputs(given),
            outputs=_outputs(given),
        )


def default_max_parallelism(parallelism: int) -> int:
    """1.5 times as much, as a power of 2, from 128 to 32768."""
    most = 128
    while most < _MAX_PARALLELISM and most < parallelism + parallelism // 2:
        most *= 2
    return most


def key_groups_of(max_parallelism: int, parallelism: int, subtask: int) -> range:
    """Which key groups a subtask owns."""
    first = (subtask * max_parallelism + parallelism - 1) // parallelism
    last = ((subtask + 1) * max_parallelism - 1) // parallelism
    return range(first, last + 1)


def _wrong(env: Mapping[str, str], name: str, accepted: str) -> ValueError:
    return ValueError(f"{name}={env.get(name, '')} in the environment: expected {accepted}")


def _count(
    env: Mapping[str, str], name: str, default: int, least: int, most: Optional[int]
) -> int:
    value = env.get(name) or str(default)
    if value.isascii() and value.isdigit():
        n = int(value)
        if n >= least and (most is None or n <= most):
            return n
    upper = "up" if most is None else f"to {most}"
    raise _wrong(env, name, f"a whole number from {least} {upper}")


def _two_numbers(text: str) -> Optional[Tuple[int, int]]:
    first, _, last = text.partition("-")
    if first.isascii() and first.isdigit() and last.isascii() and last.isdigit():
        return int(first), int(last)
    return None


def _key_groups(env: Mapping[str, str], most: int, parallelism: int, subtask: int) -> range:
    value = env.get("PLIANT_KEY_GROUPS")
    if not value:
        return key_groups_of(most, parallelism, subtask)
    ends = _two_numbers(value)
    if ends is None or not ends[0] <= ends[1] < most:
        raise _wrong(env, "PLIANT_KEY_GROUPS", "FIRST-LAST below PLIANT_MAX_PARALLELISM")
    return range(ends[0], ends[1] + 1)


def _parts(env: Mapping[str, str], most: int, own: range) -> Tuple[Part, ...]:
    value = env.get("PLIANT_RESTORE")
    parts = []
    for path in value.split(":") if value else ():
        place = _two_numbers(os.path.basename(path))
        if place is None or not place[0] < place[1] <= most:
            raise _wrong(env, "PLIANT_RESTORE", "paths .../SUBTASK-PARALLELISM, joined by ':'")
        old = key_groups_of(most, place[1], place[0])
        both = range(max(old.start, own.start), min(old.stop, own.stop))
        if both:  # else it is of no use
            parts.append(Part(path, place[0], place[1], both))
    return tuple(parts)


def _edges(env: Mapping[str, str], name: str) -> List[Any]:
    path = env.get(name)
    if not path:
        return []
    with open(path, encoding="utf-8") as file:
        edges = json.load(file)
    if not isinstance(edges, list):
        raise _wrong(env, name, "a file with a list")
    return edges


def _inputs(env: Mapping[str, str]) -> Tuple[Input, ...]:
    def partition(of: Any) -> Partition:
        first, last = of["subpartitions"]
        return Partition(of["dir"], of["subtask"], of["attempt"], range(first, last + 1))

    return tuple(
        Input(edge["edge"], edge["from"], tuple(map(partition, edge["partitions"])))
        for edge in _edges(env, "PLIANT_INPUTS")
    )


def _outputs(env: Mapping[str, str]) -> Tuple[Output, ...]:
    return tuple(
        Output(edge["edge"], edge["to"], edge["dir"], edge["subpartitions"])
        for edge in _edges(env, "PLIANT_OUTPUTS")
    )
