"""The package against a fake agent, and without any."""

import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "python"), os.path.dirname(os.path.abspath(__file__))]

import pliant  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402
from pliant._task import default_max_parallelism, key_groups_of  # noqa: E402
from pliant._worker import plain  # noqa: E402

INFO = {
    "deadline_ms": None,
    "stop_at_ms": 1700000000000,
    "preempted_node_to_ranks": {"n2": [1, 3]},
    "preempted_node_ids": ["n2"],
    "preempted_ranks": [1, 3],
}
SUBTASK = {"PLIANT_VERTEX": "count", "PLIANT_SUBTASK": "1", "PLIANT_PARALLELISM": "4"}


class WithDirectory(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = directory.name
        before = os.getcwd()
        os.chdir(self.dir)
        self.addCleanup(os.chdir, before)

    def path(self, *names):
        return os.path.join(self.dir, *names)


class TaskTest(unittest.TestCase):
    def test_alone_it_is_the_only_subtask(self):
        task = pliant.Task.from_environment({})
        self.assertEqual((task.subtask, task.parallelism, task.attempt), (0, 1, 1))
        self.assertEqual((task.group, task.key_groups), (False, range(128)))

    def test_rank_and_world_size(self):
        env = {"RANK": "2", "WORLD_SIZE": "3", "PLIANT_ATTEMPT": "7", "PLIANT_RUN_DIR": "/r"}
        task = pliant.Task.from_environment(env)
        self.assertTrue(task.group)
        self.assertEqual((task.subtask, task.parallelism, task.attempt), (2, 3, 7))
        self.assertFalse(pliant.Task.from_environment({**env, **SUBTASK}).group)
        run = {"PLIANT_JOB_ID": "12ab", "TORCHELASTIC_RUN_ID": "12ab"}
        self.assertTrue(pliant.Task.from_environment({**env, **SUBTASK, **run}).group)

    def test_parts_with_its_own_key_groups(self):
        env = {**SUBTASK, "PLIANT_MAX_PARALLELISM": "128", "PLIANT_RESTORE": "/c/0-3:/c/1-3:/c/2-3"}
        parts = pliant.Task.from_environment(env).restore_parts
        self.assertEqual([part.dir for part in parts], ["/c/0-3", "/c/1-3"])
        self.assertEqual([part.key_groups for part in parts], [range(32, 43), range(43, 64)])

    def test_key_groups_cover_all_once(self):
        for most, parallelism in ((128, 1), (128, 3), (128, 128), (300, 7), (32768, 1000)):
            groups = [key_groups_of(most, parallelism, i) for i in range(parallelism)]
            self.assertEqual([g for own in groups for g in own], list(range(most)))
        most = [default_max_parallelism(p) for p in (1, 85, 86, 200, 32768)]
        self.assertEqual(most, [128, 128, 256, 512, 32768])

    def test_names_the_variable_that_is_wrong(self):
        for name, value in (
            ("PLIANT_SUBTASK", "4"),
            ("PLIANT_PARALLELISM", "many"),
            ("PLIANT_ATTEMPT", "0"),
            ("PLIANT_KEY_GROUPS", "9-3"),
            ("PLIANT_KEY_GROUPS", "9"),
            ("PLIANT_RESTORE", "/c/count"),
            ("PLIANT_RESTORE", "/c/3-3"),
            ("PLIANT_MAX_PARALLELISM", "3"),
        ):
            with self.subTest(name=name, value=value), self.assertRaisesRegex(ValueError, name):
                pliant.Task.from_environment({**SUBTASK, name: value})


class AloneTest(WithDirectory):
    def test_does_all_of_it_without_waiting(self):
        worker = pliant.Worker({})
        self.assertFalse(worker.managed)
        self.assertIsNone(worker.get_checkpoint())
        with worker.checkpoint_dir() as d:
            self.assertTrue(os.path.isdir(d))
            with open(d / "state", "w") as f:
                f.write("1")
        worker.report({"loss": 1}, checkpoint=d)
        self.assertEqual(worker.get_checkpoint(), os.fspath(d))
        self.assertEqual(os.listdir(d), ["state"])
        self.assertIsNone(worker.get_preemption_info())
        self.assertIsNone(worker.checkpoint_requested())
        worker.on_checkpoint(print)
        worker.end_of_data()
        worker.close()

    def test_an_exception_leaves_no_files(self):
        worker = pliant.Worker({})
        with self.assertRaises(ZeroDivisionError), worker.checkpoint_dir() as d:
            with open(d / "state", "w"):
                pass
            raise ZeroDivisionError
        self.assertEqual(os.listdir(d), [])

    def test_functions_share_a_worker(self):
        program = "import pliant; assert pliant.init() is pliant.init(); print(pliant.task().subtask)"
        env = {**os.environ, **SUBTASK, "PYTHONPATH": os.path.join(ROOT, "python")}
        env.pop("PLIANT_WORKER_SOCKET", None)
        out = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
        self.assertEqual(out.stdout, "1\n", out.stderr)


class MetricsTest(unittest.TestCase):
    def test_become_what_json_has(self):
        class Scalar:
            def item(self):
                return 0.5

        got = plain({"a": math.nan, "b": Scalar(), "c": (1, True, None), 3: "x"})
        self.assertEqual(got, {"a": None, "b": 0.5, "c": [1, True, None], "3": "x"})
        self.assertRaises(TypeError, plain, {"a": object()})


class WithAgent(WithDirectory):
    def setUp(self):
        super().setUp()
        self.run_dir = self.path("run")
        os.mkdir(self.run_dir)
        self.agent = FakeAgent(self.path("socket"), self.run_dir)
        self.addCleanup(self.agent.close)

    def worker(self, **env):
        worker = pliant.Worker({"PLIANT_WORKER_SOCKET": self.agent.path, **env})
        self.addCleanup(worker.close)
        worker.set_patience(60)
        return worker

    def rank(self, rank=0, size=1):
        return self.worker(RANK=str(rank), WORLD_SIZE=str(size))


class GroupTest(WithAgent):
    def test_files_of_all_ranks_come_together(self):
        self.agent.answers["enter"] = {"payload": "of-rank-0"}
        for rank in (0, 1):
            self.agent.seqs = self.agent.calls = 0  # before the connection asks for them
            worker = self.rank(rank, 2)
            with worker.checkpoint_dir() as d:
                os.mkdir(d / "shards")
                with open(os.path.join(d / "shards", f"{rank}"), "w") as f:
                    f.write("state")
            self.assertEqual(os.fspath(d), os.path.join(self.run_dir, "of-rank-0"))
            worker.report({"loss": 0.5}, checkpoint=d)
        self.assertEqual(sorted(os.listdir(d / "shards")), ["0", "1"])
        self.assertEqual(os.listdir(d), ["shards"])
        report = self.agent.ops("report")[-1]
        self.assertEqual(
            {key: report[key] for key in ("call", "checkpoint", "metrics", "bytes")},
            {"call": 1, "checkpoint": "of-rank-0", "metrics": {"loss": 0.5}, "bytes": 10},
        )
        self.assertEqual(worker.get_checkpoint(), os.fspath(d))

    def test_a_report_inside_the_block_takes_what_is_written(self):
        worker = self.rank()
        with worker.checkpoint_dir() as d:
            with open(d / "state", "w") as f:
                f.write("1")
            worker.report(checkpoint=d)
        self.assertEqual(os.listdir(d), ["state"])

    def test_answers_health_checks_by_itself(self):
        self.rank().get_checkpoint()
        self.assertIs(self.agent.ops("hello")[0]["health"], True)
        for n in (1, 2):
            self.agent.say({"ev": "health", "n": n})
            self.agent.wait(lambda agent: agent.health == n)

    def test_goes_on_counting_where_the_task_was(self):
        self.agent.calls, self.agent.seqs = 6, 3
        worker = self.rank()
        worker.report()
        worker.report()
        worker.get_preemption_info()
        self.assertEqual([line["call"] for line in self.agent.ops("report")], [7, 8])
        self.assertEqual(self.agent.ops("get_preemption_info")[0]["seq"], 4)

    def test_says_again_what_is_unanswered(self):
        self.agent.auto = False
        worker = self.rank()
        reporter = threading.Thread(target=worker.report, args=({"step": 1},))
        reporter.start()
        for times in (1, 2, 3):
            self.agent.wait(lambda agent: len(agent.waiting) == 1)
            if times < 3:
                self.agent.hang_up()
        self.agent.release()
        reporter.join()
        calls = [line["call"] for line in self.agent.ops("report")]
        self.assertEqual(calls, [1, 1, 1])
        self.assertEqual(self.agent.calls, 1)

    def test_gives_up_when_patience_ends(self):
        worker = pliant.Worker({"PLIANT_WORKER_SOCKET": self.path("nobody")})
        worker.set_patience(0.05)
        with self.assertRaisesRegex(pliant.Unreachable, "nobody"):
            worker.report()
        worker.close()

    def test_tells_what_was_refused(self):
        worker = self.rank()
        self.agent.answers["report"] = {"ok": False, "code": "out-of-order", "text": "rank 1 is at 2"}
        with self.assertRaisesRegex(pliant.OutOfOrder, "rank 1 is at 2"):
            worker.report()
        self.agent.answers["end_of_data"] = {"ok": False, "code": "unavailable", "text": ""}
        self.assertRaises(pliant.Unavailable, worker.end_of_data)
        self.agent.answers["hello"] = {"ok": False, "code": "failed", "text": "no such task"}
        with self.assertRaisesRegex(pliant.Refused, "no such task"):
            self.rank().report()

    def test_refuses_checkpoints_elsewhere(self):
        worker = self.rank()
        for wrong in ("/tmp", "a/b", "..", ""):
            with self.subTest(wrong), self.assertRaises(ValueError):
                worker.report(checkpoint=wrong)
        with self.assertRaises(FileNotFoundError):
            worker.report(checkpoint="absent")
        with self.assertRaisesRegex(ValueError, "bytes"):
            worker.report({"x": "y" * 300000})
        worker.report()
        self.assertEqual(self.agent.calls, 1)

    def test_stops_waiting_for_ranks_that_will_not_come(self):
        self.agent.auto = False
        worker = self.rank(0, 2)
        threading.Thread(
            target=lambda: (
                self.agent.wait(lambda agent: agent.waiting),
                self.agent.say({"ev": "stop"}),
            )
        ).start()
        self.assertRaises(pliant.Stopping, worker.report)
        self.assertTrue(worker.stopping)
        self.assertIsNone(worker.checkpoint_requested(math.inf))

    def test_all_ranks_get_one_notice(self):
        self.agent.info = INFO
        info = self.rank(1, 4).get_preemption_info()
        self.assertEqual((info.deadline_ms, info.stop_at_ms), (None, 1700000000000))
        self.assertEqual((info.preempted_ranks, info.preempted_node_ids), ((1, 3), ("n2",)))
        self.assertEqual(info.preempted_node_to_ranks, {"n2": (1, 3)})

    def test_many_threads_report_in_order(self):
        worker = self.rank()
        threads = [threading.Thread(target=worker.report) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([line["call"] for line in self.agent.ops("report")], list(range(1, 9)))

    def test_a_request_without_id_wants_a_report(self):
        worker = self.rank()
        self.agent.ask_for_checkpoint(None, None)
        request = worker.checkpoint_requested(30)
        self.assertIsNone(request.id)
        with self.assertRaises(ValueError), request:
            pass


class SubtaskTest(WithAgent):
    def part_dir(self, id):
        dir = self.path("chk-" + id)
        os.mkdir(dir)
        return dir

    def test_writes_the_parts_that_are_asked_for(self):
        worker = self.worker(**SUBTASK)
        self.assertIsNone(worker.checkpoint_requested())
        self.agent.ask_for_checkpoint("17", self.part_dir("17"), savepoint=True)
        request = worker.checkpoint_requested(30)
        self.assertEqual((request.id, request.savepoint), ("17", True))
        with request as dir, open(os.path.join(dir, "state"), "w") as f:
            f.write("12345")
        part = self.agent.parts["17"]
        self.assertEqual((part["ok"], part["bytes"]), (True, 5))

    def test_a_request_that_comes_again_is_handed_out_once(self):
        worker = self.worker(**SUBTASK)
        self.agent.ask_for_checkpoint("17", self.part_dir("17"))
        request = worker.checkpoint_requested(30)
        self.agent.hang_up()
        self.agent.wait(lambda agent: agent.takers)
        self.assertIsNone(worker.checkpoint_requested(0.1))
        request.done()
        self.assertIn("17", self.agent.parts)

    def test_an_exception_makes_the_part_fail(self):
        worker = self.worker(**SUBTASK)
        self.agent.ask_for_checkpoint("17", self.part_dir("17"))
        with self.assertRaises(ZeroDivisionError), worker.checkpoint_requested(30):
            raise ZeroDivisionError("no")
        self.assertEqual(self.agent.parts["17"]["cause"], "ZeroDivisionError: no")

    def test_a_handler_writes_in_its_own_thread(self):
        worker = self.worker(**SUBTASK)
        threads = []

        @worker.on_checkpoint
        def write(dir):
            threads.append(threading.current_thread())
            if dir.endswith("18"):
                raise OSError("disk")

        for id in ("17", "18", "19"):
            self.agent.ask_for_checkpoint(id, self.part_dir(id))
        self.agent.wait(lambda agent: len(agent.parts) == 3)
        self.assertEqual([self.agent.parts[id]["ok"] for id in ("17", "18", "19")], [True, False, True])
        self.assertEqual(len(set(threads)), 1)
        self.assertNotIn(threading.current_thread(), threads)

    def test_asks_for_a_notice_alone(self):
        worker = self.worker(**SUBTASK)
        self.assertIsNone(worker.get_preemption_info())
        self.assertNotIn("seq", self.agent.ops("get_preemption_info")[0])

    def test_knows_what_it_reads_and_writes(self):
        os.mkdir("src")
        with open(os.path.join("src", "2"), "w") as file:
            file.write("x")
        partition = {"subtask": 7, "attempt": 2, "dir": "src", "subpartitions": [0, 2]}
        with open("in.json", "w") as file:
            json.dump([{"edge": 3, "from": "a", "partitions": [partition]}], file)
        with open("out.json", "w") as file:
            json.dump([{"edge": 5, "to": "b", "dir": "dst", "subpartitions": 4}], file)
        env = {"PLIANT_INPUTS": "in.json", "PLIANT_OUTPUTS": "out.json"}
        worker = self.worker(**SUBTASK, **env)
        (read,), (written,) = worker.task.inputs, worker.task.outputs
        self.assertEqual((read.edge, read.from_vertex), (3, "a"))
        self.assertEqual(read.partitions, (pliant.Partition("src", 7, 2, range(0, 3)),))
        self.assertEqual(read.files, [os.path.join("src", "2")])
        os.rename("src", "lost")
        with self.assertRaises(FileNotFoundError):
            print(read.files)
        self.assertEqual((written.edge, written.to_vertex), (5, "b"))
        self.assertEqual(written.path(3), os.path.join("dst", "3"))
        self.assertRaises(ValueError, written.path, 4)
        worker.output_sizes(written, [1, 2, 3, 4])
        worker.input_lost(read, 7)
        (output,), (lost,) = self.agent.ops("output"), self.agent.ops("input_lost")
        self.assertEqual((output["edge"], output["bytes"]), (5, [1, 2, 3, 4]))
        self.assertEqual((lost["edge"], lost["subtask"]), (3, 7))
        self.assertEqual(pliant.Task.from_environment({}).inputs, ())

    def test_says_end_of_data(self):
        self.worker(**SUBTASK).end_of_data()
        self.assertEqual(len(self.agent.ops("end_of_data")), 1)

    def test_a_forked_child_has_a_connection_of_its_own(self):
        program = (
            "import os, pliant\n"
            "pliant.end_of_data()\n"
            "child = os.fork()\n"
            "pliant.end_of_data()\n"
            "if not child: os._exit(0)\n"
            "raise SystemExit(os.waitpid(child, 0)[1])\n"
        )
        env = {**os.environ, **SUBTASK, "PYTHONPATH": os.path.join(ROOT, "python")}
        env["PLIANT_WORKER_SOCKET"] = self.agent.path
        out = subprocess.run([sys.executable, "-c", program], env=env, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertEqual(len(self.agent.ops("end_of_data")), 3)
        self.assertEqual(len(self.agent.ops("hello")), 2)


if __name__ == "__main__":
    unittest.main()
