#!/usr/bin/env python3
"""Which rules of the scheduler no test names, and which tests are named that do not exist.

tests/rules.txt lists the rules, one a line; words after an id that begin with "not tested:" are
the argument why it needs no test, and with "later:" say that what it is about is not there yet. A test names its rules in brackets in a comment: [S-PAR-6],
[S-WFR-3, S-WFR-8], [S-DRN-1..4]. Ends with 1 if a rule has neither, or if a test names a rule
that is not in the list.

tests/reference-tests.md names `suite.test`, `vectors/...`, `cases/...` and rules that are argued;
each must be there.
"""
import pathlib
import re
import sys

RULE = re.compile(r"([SWP]-[A-Z]+-)(\d+)(?:\.\.(\d+))?")
BRACKETS = re.compile(r"\[([^\[\]]*[SWP]-[A-Z]+-\d[^\[\]]*)\]")


def named(text):
    for inside in BRACKETS.findall(text):
        for kind, first, last in RULE.findall(inside):
            for number in range(int(first), int(last or first) + 1):
                yield f"{kind}{number}"


def missing(tests, argued):
    """What tests/reference-tests.md names in vain."""
    sources = "".join(path.read_text() for path in tests.rglob("*.c"))
    there = {f"{suite}.{name}" for suite, name in re.findall(r"\bTest\(\s*(\w+),\s*(\w+)", sources)}
    text = (tests / "reference-tests.md").read_text()
    for name in re.findall(r"`(\w+\.\w+|[\w-]+/[\w./-]+\.jsonl?)`", text):
        if name not in there and name != "suite.test" and not (tests / "data" / name).is_file():
            yield name
    yield from sorted({f"{kind}{number}" for kind, number, _ in RULE.findall(text)} - set(argued))


def main():
    tests = pathlib.Path(__file__).resolve().parent.parent / "tests"
    rules, argued, later = [], {}, set()
    for line in (tests / "rules.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            rule, _, words = line.partition(" ")
            rules.append(rule)
            if words.strip().startswith("not tested:"):
                argued[rule] = words.strip()
            elif words.strip().startswith("later:"):
                later.add(rule)

    where = {}
    for path in sorted(path for path in tests.rglob("*") if path.suffix in (".c", ".py")):
        for rule in named(path.read_text()):
            where.setdefault(rule, path.relative_to(tests))

    untested = [rule for rule in rules if rule not in where and rule not in argued and rule not in later]
    unknown = sorted(set(where) - set(rules))
    for rule in untested:
        print(f"{rule}: no test names it")
    for rule in unknown:
        print(f"{rule}: named in tests/{where[rule]}, not in tests/rules.txt")
    for rule in sorted(set(argued) & set(where)):
        print(f"{rule}: tested in tests/{where[rule]}, though rules.txt argues that it is not")
    in_vain = list(missing(tests, argued))
    for name in in_vain:
        print(f"{name}: named in tests/reference-tests.md, but there is none")
    print(
        f"check-rules: {len(rules)} rules, {sum(rule in where for rule in rules)} with a test, "
        f"{len(argued)} argued, {len(later - set(where))} later, {len(untested)} without"
    )
    return 1 if untested or unknown or in_vain or set(argued) & set(where) else 0


if __name__ == "__main__":
    sys.exit(main())
