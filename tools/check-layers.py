#!/usr/bin/env python3
"""Who includes whom, and what the core asks of the outside.

check-layers.py [libpliant.a]

1. Includes point up the list of layers, never down or across.
2. The core includes only headers of C that have no effects.
3. The core, as joined in libpliant.a, leaves only the names below undefined.
Prints each breach and ends with 1 if there is any.
"""
import pathlib
import re
import subprocess
import sys

# From the foundation to the programs. Folders of one row don't know each other.
LAYERS = [
    ["util"],
    ["graph"],
    ["allocator", "transition", "failover"],
    ["states"],
    ["."],  # src/*.c: the public functions
    ["spec"],
    ["sim"],
    ["store"],
    ["rpc"],
    ["daemon"],
    ["agent"],
    ["worker"],
]
RANK = {folder: rank for rank, row in enumerate(LAYERS) for folder in row}
CORE = RANK["."]

# Headers of C that bring neither clock nor threads nor input and output (stdio: snprintf only,
# which the check of symbols sees to), and uthash for names.
CORE_HEADERS = set(
    "assert errno float inttypes math stdarg stdbool stddef stdint stdio stdlib string "
    "uthash".split()
)

SYMBOLS = {
    "realloc": "util/alloc.c: the default of the allocation hook",
    "malloc": "the same, as gcc writes realloc(NULL, n)",
    "free": "util/alloc.c: the same",
    "memcpy": "no effect but on its arguments",
    "memmove": "the same",
    "memset": "the same",
    "memcmp": "the same",
    "bcmp": "the same, as clang writes memcmp() == 0",
    "memchr": "the same",
    "strlen": "the same",
    "strcmp": "the same",
    "strchr": "the same",
    "strcspn": "the same",
    "snprintf": "texts of errors and of options",
    "vsnprintf": "the same",
    "pow": "back-off: initial x multiplier^k",
    "floor": "percentiles of the rescale statistics",
    "__assert_fail": "assert",
    "__stack_chk_fail": "compilers with -fstack-protector",
    "_GLOBAL_OFFSET_TABLE_": "position-independent code",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def includes(root):
    """Breaches among the files of src/ and include/."""
    for path in sorted(root.glob("include/**/*.h")):
        for _, name in INCLUDE.findall(path.read_text()):
            if not name.startswith("pliant/") and name not in ("stdbool.h", "stddef.h", "stdint.h"):
                yield f"{path.relative_to(root)} includes {name}: a public header stands alone"

    src = root / "src"
    for path in sorted(src.rglob("*.[ch]")):
        where = path.relative_to(root)
        parts = path.relative_to(src).parts
        folder = parts[0] if len(parts) > 1 else "."
        if folder not in RANK:
            yield f"{where}: no layer has the folder {folder}"
            continue
        for bracket, name in INCLUDE.findall(path.read_text()):
            if name.startswith("pliant/"):
                continue
            if bracket == "<" or name == "uthash.h":
                if RANK[folder] <= CORE and name.removesuffix(".h") not in CORE_HEADERS:
                    yield f"{where} includes {name}: not for the core"
                continue
            other = name.split("/")[0] if "/" in name else "."
            if not (src / name).is_file():
                yield f"{where} includes {name}: name it from src/, as in \"util/vec.h\""
            elif other != folder and RANK.get(other, len(LAYERS)) >= RANK[folder]:
                yield f"{where} includes {name}: {other} is not above {folder}"


def symbols(library):
    """Breaches among the undefined names of the core, and public names of its own."""
    undefined = subprocess.run(
        ["nm", "-u", library], check=True, capture_output=True, text=True
    ).stdout
    for name in sorted(set(re.findall(r"^\s+[Uw] (\S+)$", undefined, re.MULTILINE))):
        if name not in SYMBOLS:
            yield f"{library}: the core asks for {name}"
    defined = subprocess.run(
        ["nm", "-g", "--defined-only", library], check=True, capture_output=True, text=True
    ).stdout
    for name in sorted(set(re.findall(r"^[0-9a-f]+ \w (\S+)$", defined, re.MULTILINE))):
        if not name.startswith("pliant_"):
            yield f"{library}: shows {name}"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    breaches = list(includes(root))
    for library in sys.argv[1:]:
        breaches += symbols(library)
    for breach in breaches:
        print(breach)
    what = "includes and symbols" if sys.argv[1:] else "includes"
    print(f"check-layers: {what}, {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
