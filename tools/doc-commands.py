#!/usr/bin/env python3
"""Run the commands that the documentation shows and compare their output with what is shown there.

doc-commands.py [--update] BUILD_DIR FILE...

A block ```console holds commands, each behind "$ ", and their output; a line "..." stands for any
number of lines, "..." in a line for any text. A block ```sh holds commands whose output is not shown. `build/` in a command is
BUILD_DIR. A block ```yaml with vertices is a job, and must be one. Links to files must lead
somewhere. Ends with 1 if anything differs; --update puts the
present output there instead, as many lines before and after the "..." as there were.
"""
import os
import pathlib
import re
import subprocess
import sys

# These build or test everything, install, or have no end: only their program must be there.
NOT_RUN = re.compile(r"^(tools/(demo|test|nightly|coverage|fuzz)\.sh|tools/check-docs\.sh|\.ci/run|"
                     r"cmake|ctest|git clone|cc|sudo|tests/bench/)\b")
LINK = re.compile(r"\]\(([^)#:]+)(#[^)]*)?\)")


class Check:
    def __init__(self, build, update):
        self.build, self.update, self.bad, self.done = build, update, 0, 0

    def complain(self, place, text):
        self.bad += 1
        print(f"{place}: {text}")

    def run(self, place, command):
        if NOT_RUN.match(command):
            program = pathlib.Path(command.split()[0])
            if "/" in str(program) and not program.exists():
                self.complain(place, f"{program} is not there")
            return None
        self.done += 1
        done = subprocess.run(["bash", "-c", re.sub(r"\bbuild/", f"{self.build}/", command)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                              timeout=300)
        if done.returncode != 0:
            self.complain(place, f"`{command}` ends with {done.returncode}\n{done.stdout[-500:]}")
        return done.stdout.replace(f"{self.build}/", "build/").splitlines()

    def compare(self, place, command, shown):
        """The lines that should be shown."""
        got = self.run(place, command)
        if got is None or matches(shown, got):
            return shown
        if self.update:
            return renewed(shown, got)
        self.complain(place, f"`{command}` gives something else:\n" + first_difference(shown, got))
        return shown

    def job(self, place, lines):
        self.done += 1
        done = subprocess.run([f"{self.build}/pliant-sim", "run", "--job", "-", "--until", "0",
                               "--trace", "examples/aws-p3-named.jsonl"],
                              input="\n".join(lines), capture_output=True, encoding="utf-8")
        if done.returncode != 0 or done.stderr:
            self.complain(place, f"this is no job: {done.stderr}")

    def block(self, place, kind, lines):
        if kind == "yaml" and any(line.startswith("vertices:") for line in lines):
            self.job(place, lines)
        if kind not in ("console", "sh"):
            return lines
        out, i = [], 0
        while i < len(lines):
            command = lines[i]
            out.append(lines[i])
            while command.endswith("\\"):
                i += 1
                out.append(lines[i])
                command = command[:-1] + lines[i]
            i += 1
            if kind == "sh":
                if command.strip() and not command.startswith("#"):
                    self.run(place, command)
                continue
            shown = []
            while i < len(lines) and not lines[i].startswith("$ "):
                shown.append(lines[i])
                i += 1
            out += self.compare(place, command[2:], shown)
        return out

    def file(self, path):
        out, block, kind = [], [], None
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if kind is None:
                for target, _ in LINK.findall(line):
                    if not (path.parent / target).exists():
                        self.complain(f"{path}:{number}", f"a link to {target} leads nowhere")
                if line.startswith("```"):
                    kind, block, begin = line[3:], [], number
                out.append(line)
            elif line == "```":
                out += self.block(f"{path}:{begin}", kind, block) + [line]
                kind = None
            else:
                block.append(line)
        if self.update:
            path.write_text("\n".join(out) + "\n", "utf-8")


def parts(shown):
    """Runs of lines between the "..." lines."""
    runs = [[]]
    for line in shown:
        if line == "...":
            runs.append([])
        else:
            runs[-1].append(line.rstrip())
    return runs


def same(want, line):
    if "..." not in want:
        return want == line.rstrip()
    return re.fullmatch(".*".join(re.escape(part) for part in want.split("...")), line) is not None


def same_run(run, got):
    return len(run) == len(got) and all(same(want, line) for want, line in zip(run, got))


def matches(shown, got):
    runs = parts(shown)
    at, end = len(runs[0]), len(got) - len(runs[-1])
    if not same_run(runs[0], got[:at]):
        return False
    if len(runs) == 1:
        return len(got) == at
    for run in runs[1:-1]:
        while at <= end and not same_run(run, got[at:at + len(run)]):
            at += 1
        at += len(run)
    return at <= end and same_run(runs[-1], got[end:])


def renewed(shown, got):
    """As many lines as there were of each run; one in the middle is found by how it begins."""
    runs = parts(shown)
    if len(runs) == 1:
        return got
    out = got[:len(runs[0])]
    for run in runs[1:-1]:
        at = next((i for i, line in enumerate(got) if line[:12] == run[0][:12]), len(got))
        out += ["..."] + got[at:at + len(run)]
    return out + ["..."] + got[len(got) - len(runs[-1]):]


def first_difference(shown, got):
    for want, is_ in zip(shown, got):
        if want == "...":
            break
        if not same(want.rstrip(), is_):
            return f"  shown: {want}\n  is:    {is_}"
    return f"  {len(shown)} lines shown, {len(got)} given"


def main():
    args = sys.argv[1:]
    update = args[:1] == ["--update"]
    args = args[update:]
    if len(args) < 2:
        sys.exit(__doc__)
    os.environ["LC_ALL"] = "C.UTF-8"  # what is shown has blocks, not "#"
    check = Check(args[0].rstrip("/"), update)
    for name in args[1:]:
        check.file(pathlib.Path(name))
    print(f"documentation: {check.done} commands run, {check.bad} complaints")
    sys.exit(1 if check.bad else 0)


if __name__ == "__main__":
    main()
