"""Finds the crates with unsafe code in the binary and compares them with a list: TREE METADATA DOCUMENT.

TREE is the output of `cargo tree`, which knows exactly what is built; METADATA that of `cargo metadata`, which
knows where the sources are. Counts are uses of the keyword in the sources of a crate, without
comments, strings and tests, whether or not its features compile them: an upper bound. Crates that only run
while Galley is built (macros and build scripts) are not part of the binary. DOCUMENT has a section HEADING with
a table whose cells name the crates in backticks.
"""

import json
import pathlib
import re
import sys

HEADING = "## Unsafe code in dependencies"
# Comments, strings, characters: what may contain the word without meaning it.
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|b?r(#+)".*?"\1|b?r"[^"]*"|b?"(?:\\.|[^"\\])*"|' r"b?'(?:\\.|[^'\\\n])'", re.DOTALL
)
# A lint level names the keyword too: #![forbid(unsafe_code)] does not match, because it is a longer word.
UNSAFE = re.compile(r"\bunsafe\b")
NOT_SHIPPED = {"tests", "benches", "examples", "fuzz"}


def shipped(tree, metadata):
    """The packages from a registry that are part of the binary."""
    # A line begins with NAME vVERSION.
    built = {tuple(line.split()[:2]) for line in tree.splitlines() if line.strip()}
    packages = [package for package in metadata["packages"] if package["source"]]
    return [package for package in packages if (package["name"], f"v{package['version']}") in built]


def uses(package):
    root = pathlib.Path(package["manifest_path"]).parent
    count = 0
    for path in root.rglob("*.rs"):
        inner = path.relative_to(root)
        if not NOT_SHIPPED & set(inner.parts) and inner.name not in ("build.rs", "tests.rs"):
            count += len(UNSAFE.findall(NOISE.sub(" ", path.read_text(errors="replace"))))
    return count


def main():
    tree, metadata, document = (pathlib.Path(path).read_text() for path in sys.argv[1:4])
    packages = shipped(tree, json.loads(metadata))
    assert len(packages) > 100, f"{len(packages)} packages in {sys.argv[1]}"
    counts = {}
    for package in packages:
        counts[package["name"]] = counts.get(package["name"], 0) + uses(package)
    found = {name for name, count in counts.items() if count > 0}
    for name in sorted(found, key=lambda name: -counts[name]):
        print(f"{counts[name]:6} {name}")
    print(f"{len(found)} of {len(counts)} crates of the binary contain unsafe code")

    section = document.partition(HEADING)[2].partition("\n## ")[0]
    rows = "\n".join(line for line in section.splitlines() if line.startswith("|"))
    listed = set(re.findall(r"`([a-zA-Z0-9_-]+)`", rows))
    for name in sorted(found - listed):
        print(f"{sys.argv[3]}: add `{name}` to the list of crates with unsafe code")
    for name in sorted(listed - found):
        print(f"{sys.argv[3]}: remove `{name}` from the list of crates with unsafe code")
    sys.exit(0 if found == listed else 1)


main()
