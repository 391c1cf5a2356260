"""pliant-worker against a fake agent: test_command.py PROGRAM"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from fake_agent import FakeAgent  # noqa: E402
from test_pliant import INFO, SUBTASK  # noqa: E402

PROGRAM = ""


class CommandTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = directory.name
        self.agent = FakeAgent(os.path.join(self.dir, "socket"), self.dir)
        self.addCleanup(self.agent.close)

    def start(self, *args, **env):
        env = {"PLIANT_WORKER_SOCKET": self.agent.path, **env}
        return subprocess.Popen(
            [PROGRAM, *args],
            env={name: value for name, value in env.items() if value is not None},
            cwd=self.dir,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run_it(self, *args, **env):
        process = self.start(*args, **env)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def good(self, *args, **env):
        code, out, err = self.run_it(*args, **env)
        self.assertEqual((code, err), (0, ""))
        return out

    def rank(self, *args):
        return self.good(*args, RANK="0", WORLD_SIZE="1")

    def test_calls_of_one_task_are_counted_on(self):
        dir = self.rank("checkpoint-dir").strip()
        self.assertTrue(os.path.isdir(dir))
        with open(os.path.join(dir, "state"), "w") as f:
            f.write("123")
        args = ("--metric", "loss=0.5", "--metric", "who=me", "--metric", "ok=true")
        self.rank("report", *args, "--checkpoint", dir)
        self.rank("report", "--metric", "odd=nan", "--metric", "list=[1]")
        first, second = self.agent.ops("report")
        self.assertEqual((first["call"], second["call"]), (1, 2))
        self.assertEqual(first["metrics"], {"loss": 0.5, "who": "me", "ok": True})
        self.assertEqual(second["metrics"], {"odd": "nan", "list": "[1]"})
        self.assertEqual((first["checkpoint"], first["bytes"]), (os.path.basename(dir), 3))
        self.assertEqual(self.rank("get-checkpoint").strip(), dir)
        self.assertEqual(json.loads(self.rank("get-checkpoint", "--json")), {"dir": dir})
        self.rank("checkpoint-dir")
        self.assertEqual([line["seq"] for line in self.agent.ops("enter")], [1, 2])

    def test_what_is_not_there_is_exit_code_1(self):
        for command in ("get-checkpoint", "preemption-info"):
            self.assertEqual(self.run_it(command), (1, "", ""))
        self.assertEqual(self.run_it("wait-checkpoint", "--timeout", "10 ms"), (1, "", ""))
        code, _, err = self.run_it("part", "17", "--failed", "x", "--patience", "1 s", **SUBTASK)
        self.assertEqual((code, "17" in err), (1, True))

    def test_a_notice_as_text_and_json(self):
        self.agent.info = INFO
        text = "stop_at_ms 1700000000000\nranks 1 3\nnodes n2\n"
        self.assertEqual(self.rank("preemption-info"), text)
        self.assertEqual(json.loads(self.rank("preemption-info", "--json")), INFO)

    def test_waits_for_a_request_and_answers_it(self):
        waiting = self.start("wait-checkpoint", **SUBTASK)
        self.agent.wait(lambda agent: agent.takers)
        dir = os.path.join(self.dir, "chk")
        os.mkdir(dir)
        self.agent.ask_for_checkpoint("17", dir)
        self.assertEqual(waiting.communicate(timeout=60), (f"17 {dir}\n", ""))
        with open(os.path.join(dir, "state"), "w") as f:
            f.write("123")
        self.good("part", "17", **SUBTASK)
        self.assertEqual(self.agent.parts["17"]["bytes"], 3)
        self.agent.ask_for_checkpoint("18", dir, savepoint=True)
        asked = json.loads(self.good("wait-checkpoint", "--json", **SUBTASK))
        self.assertEqual(asked, {"id": "18", "dir": dir, "savepoint": True})
        self.good("part", "18", "--failed", "disk", **SUBTASK)
        self.assertEqual(self.agent.parts["18"]["cause"], "disk")

    def test_the_end_of_the_task_ends_the_wait(self):
        waiting = self.start("wait-checkpoint", **SUBTASK)
        self.agent.wait(lambda agent: agent.takers)
        self.agent.say({"ev": "stop"})
        _, err = waiting.communicate(timeout=60)
        self.assertEqual((waiting.returncode, "stop" in err), (1, True))

    def edges(self):
        """The variables of a task that reads src and writes dst."""
        src, dst = os.path.join(self.dir, "src"), os.path.join(self.dir, "dst")
        os.mkdir(src)
        for name in ("1", "2", "4"):
            open(os.path.join(src, name), "w").close()
        partition = {"subtask": 7, "attempt": 1, "dir": src, "subpartitions": [0, 2]}
        env = dict(SUBTASK)
        for name, edges in (
            ("PLIANT_INPUTS", [{"edge": 3, "from": "src", "partitions": [partition]}]),
            ("PLIANT_OUTPUTS", [{"edge": 5, "to": "dst", "dir": dst, "subpartitions": 4}]),
        ):
            env[name] = os.path.join(self.dir, name)
            with open(env[name], "w") as file:
                json.dump(edges, file)
        return src, dst, env

    def test_lists_what_to_read_and_where_to_write(self):
        src, dst, env = self.edges()
        self.assertEqual(self.good("inputs", **env), f"{src}/1\n{src}/2\n")
        self.assertEqual(self.good("inputs", "--from", "src", **env), f"{src}/1\n{src}/2\n")
        files = json.loads(self.good("inputs", "--json", **env))["files"]
        self.assertEqual(files, [f"{src}/1", f"{src}/2"])
        self.assertEqual(self.good("outputs", **env), f"{dst}\n")
        self.assertEqual(self.good("outputs", "--to", "dst", "--subpartitions", **env), "4\n")
        (output,) = json.loads(self.good("outputs", "--json", **env))["outputs"]
        self.assertEqual(output, {"edge": 5, "to": "dst", "dir": dst, "subpartitions": 4})
        for command in (("inputs", "--from", "dst"), ("outputs", "--to", "src")):
            code, out, err = self.run_it(*command, **env)
            self.assertEqual((code, out, command[2] in err), (1, "", True))
        self.assertEqual(self.run_it("inputs", **SUBTASK)[0], 1)
        self.assertEqual(self.run_it("outputs", **{**env, "PLIANT_OUTPUTS": "/nowhere"})[0], 2)
        self.assertEqual(self.agent.lines, [])  # the agent is not asked

    def test_tells_sizes_and_lost_inputs(self):
        _, _, env = self.edges()
        self.good("output-sizes", "--to", "dst", "1", "2", "3", "4", **env)
        self.good("input-lost", "--from", "src", "--subtask", "7", **env)
        (output,), (lost,) = self.agent.ops("output"), self.agent.ops("input_lost")
        self.assertEqual((output["edge"], output["bytes"]), (5, [1, 2, 3, 4]))
        self.assertEqual((lost["edge"], lost["subtask"]), (3, 7))
        for code, *command in (
            (1, "output-sizes", "--to", "src", "1"),
            (2, "output-sizes", "--to", "dst"),
            (2, "output-sizes", "1"),
            (2, "output-sizes", "--to", "dst", "x"),
            (1, "input-lost", "--from", "src", "--subtask", "8"),
            (2, "input-lost", "--from", "src"),
            (2, "input-lost", "--from", "src", "--subtask", "-1"),
            (2, "end-of-data", "--to", "dst"),
        ):
            self.assertEqual(self.run_it(*command, **env)[0], code, command)

    def test_tells_edges_between_the_same_vertices_apart(self):
        _, dst, env = self.edges()
        outputs = [
            {"edge": n, "to": "dst", "dir": f"{dst}{n}", "subpartitions": n} for n in (2, 5)
        ]
        with open(env["PLIANT_OUTPUTS"], "w") as file:
            json.dump(outputs, file)
        self.assertEqual(self.good("outputs", "--to", "dst", **env), f"{dst}2\n{dst}5\n")
        self.assertEqual(self.good("outputs", "--edge", "5", **env), f"{dst}5\n")
        self.assertEqual(self.run_it("outputs", "--edge", "3", **env)[0], 1)
        self.assertEqual(self.good("inputs", "--edge", "3", **env).count("\n"), 2)
        self.assertEqual(self.run_it("inputs", "--edge", "4", **env)[0], 1)
        code, out, err = self.run_it("output-sizes", "--to", "dst", "1", "2", **env)
        self.assertEqual((code, out, "edges 2 and 5" in err), (2, "", True), err)
        self.good("output-sizes", "--to", "dst", "--edge", "5", "1", "2", "3", "4", "5", **env)
        self.good("output-sizes", "--to", "dst", "--edge", "2", "1", "2", **env)
        told = [(line["edge"], len(line["bytes"])) for line in self.agent.ops("output")]
        self.assertEqual(told, [(5, 5), (2, 2)])
        self.assertEqual(self.run_it("output-sizes", "--to", "dst", "--edge", "x", "1", **env)[0], 2)

    def test_lists_what_to_restore(self):
        env = {**SUBTASK, "PLIANT_RESTORE": "/c/0-3:/c/1-3"}
        self.assertEqual(self.good("restore-parts", **env), "32-42 /c/0-3\n43-63 /c/1-3\n")
        parts = json.loads(self.good("restore-parts", "--json", **env))["parts"]
        self.assertEqual((parts[0]["dir"], parts[0]["last_key_group"]), ("/c/0-3", 42))
        self.assertEqual(self.good("restore-parts"), "")

    def test_not_under_pliant_it_does_nothing(self):
        alone = {"PLIANT_WORKER_SOCKET": None}
        for command in (("report", "--metric", "a=1"), ("end-of-data",), ("part", "1")):
            self.assertEqual(self.run_it(*command, **alone), (0, "", ""))
        self.assertEqual(self.run_it("get-checkpoint", **alone)[0], 1)
        self.assertEqual(self.run_it("wait-checkpoint", **alone)[0], 1)

    def test_refusals_have_their_exit_codes(self):
        self.agent.answers["end_of_data"] = {"ok": False, "code": "failed", "text": "not a source"}
        code, _, err = self.run_it("end-of-data")
        self.assertEqual((code, err), (1, "pliant-worker: end-of-data: not a source\n"))
        self.agent.answers["end_of_data"] = {"ok": False, "code": "unavailable", "text": "no daemon"}
        self.assertEqual(self.run_it("end-of-data")[0], 3)
        absent = {"PLIANT_WORKER_SOCKET": os.path.join(self.dir, "absent")}
        self.assertEqual(self.run_it("end-of-data", "--patience", "10 ms", **absent)[0], 3)

    def test_bad_usage_is_exit_code_2(self):
        for args in (
            (),
            ("reprot",),
            ("report", "--metric", "x"),
            ("report", "--metric", "=1"),
            ("report", "--checkpoint", "a/b"),
            ("report", "--checkpoint", "absent"),
            ("report", "more"),
            ("report", "--timeout", "1 s"),
            ("wait-checkpoint", "--timeout", "soon"),
            ("part",),
            ("part", "1", "2"),
            ("end-of-data", "--patience", "-1 s"),
        ):
            with self.subTest(args=args):
                code, out, err = self.run_it(*args)
                self.assertEqual((code, out), (2, ""))
                self.assertIn("pliant-worker", err)
        code, _, err = self.run_it("restore-parts", PLIANT_SUBTASK="9")
        self.assertEqual((code, "PLIANT_SUBTASK" in err), (2, True))

    def test_a_full_disk_is_exit_code_4(self):
        with open("/dev/full", "w") as full:
            run = subprocess.run([PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(run.returncode, 4)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
