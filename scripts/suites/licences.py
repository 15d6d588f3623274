"""Prints the licence texts of the crates in the binary, equal ones once.

usage: licences.py TREE METADATA, the outputs of `cargo tree --prefix none` and `cargo metadata`.
Crates that come without a text are listed with their licence, authors and source.
"""

import json
import sys
from pathlib import Path

NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")


def texts(package):
    """The texts that a crate comes with."""
    folder = Path(package["manifest_path"]).parent
    files = [file for file in folder.iterdir() if file.is_file() and file.name.upper().startswith(NAMES)]
    if package["license_file"]:
        files.append(folder / package["license_file"])
    return [file.read_text(errors="replace").strip() for file in sorted(set(files)) if file.suffix != ".spdx"]


def main(tree, metadata):
    shipped = {tuple(line.split()[:2]) for line in Path(tree).read_text().splitlines() if line.strip()}
    users, without = {}, []
    for package in json.loads(Path(metadata).read_text())["packages"]:
        name = (package["name"], "v" + package["version"])
        if package["source"] is None or name not in shipped:
            continue
        crate = f"{package['name']} {package['version']} ({package['license'] or 'see the text'})"
        found = texts(package)
        if not found:
            without.append((crate, package["authors"], package["repository"]))
        for text in found:
            users.setdefault(text, []).append(crate)
    crates = {crate for crates in users.values() for crate in crates}
    assert len(crates) > 100, f"only {len(crates)} crates with a licence text"
    print("The binary of Galley contains these libraries under the licences below.")
    for text, crates in sorted(users.items(), key=lambda it: it[1]):
        print("\n" + "=" * 80, *sorted(set(crates)), "-" * 80, text, sep="\n")
    if without:
        print("\n" + "=" * 80)
        print("These come without a text; their authors and sources are:")
        for crate, authors, source in sorted(without):
            print(f"{crate}: {', '.join(authors) or 'unnamed authors'}, {source}")


main(*sys.argv[1:])
