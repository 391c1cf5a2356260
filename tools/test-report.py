#!/usr/bin/env python3
"""What ctest runs came to: test-report.py RESULTS.xml...

RESULTS.xml is what `ctest --output-junit` has written; the folder that it is in names the build. The
end of each failed test's output comes first, then the names of all that failed, then the totals.
Exit code: 1 if a test has failed or a file is missing.
"""
import pathlib
import sys
import xml.etree.ElementTree

LINES, WIDTH, SHOWN = 40, 300, 12  # of a test's output, of a line, tests whose output is shown


def results(path):
    """[(name, has it passed, output)]; None: there is no such file."""
    try:
        root = xml.etree.ElementTree.parse(path).getroot()
    except (OSError, xml.etree.ElementTree.ParseError):
        return None
    return [(case.get("name"), case.get("status") == "run", case.findtext("system-out") or "")
            for case in root.iter("testcase")]


def show(title, output):
    print(f"\n---- {title} failed; the end of its output:")
    for line in output.rstrip().splitlines()[-LINES:]:
        print(line[:WIDTH])


def main(paths):
    passed, failed, missing = 0, [], []
    for path in map(pathlib.Path, paths):
        tests = results(path)
        if tests is None:
            missing.append(path.parent.name)
            continue
        passed += sum(good for _, good, _ in tests)
        failed += [(f"{path.parent.name}: {name}", output) for name, good, output in tests if not good]
    for title, output in failed[:SHOWN]:
        show(title, output)
    print()
    for title, _ in failed:
        print(f"failed: {title}")
    for build in missing:
        print(f"no tests were run: {build}")
    print(f"tests in all builds: {passed} passed, {len(failed)} failed")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
