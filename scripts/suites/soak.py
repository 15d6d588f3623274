"""Repeats the kill harness and adds up its reports; see scripts/soak."""

import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEST = "smoke::kill::acknowledged_writes_of_8_writers_survive_kills_completely"
# What the harness prints: a name of the summary, and the pattern of its number.
COUNTED = {
    "kills": r"kill harness: (\d+) kills under load",
    "acknowledged": r"acknowledged: (\d+)",
    "unknown": r"unknown: +(\d+)",
    "applied": r"of these applied: (\d+)",
    "violations": r"violations: (\d+)",
    "events": r"webhooks: (\d+) events",
    "duplicates": r"duplicates: +(\d+)",
}


def harness():
    """Builds the harness, and returns its path."""
    cargo = os.environ.get("CARGO", "cargo")
    build = [cargo, "test", "--locked", "-p", "galley", "--test", "smoke", "--no-run", "--message-format=json"]
    built = subprocess.run(build, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        sys.exit("scripts/soak: the harness does not build")
    messages = map(json.loads, built.stdout.splitlines())
    return next(it["executable"] for it in messages if it.get("executable") and it["target"]["name"] == "smoke")


def run_round(binary, kills, seed):
    """Runs the harness once; returns its output, and whether it passed."""
    variables = os.environ | {"GALLEY_KILL_SEED": str(seed), "GALLEY_KILL_CYCLES": str(kills)}
    run = subprocess.run(
        [binary, "--exact", TEST, "--nocapture"], cwd=ROOT / "crates/cli", env=variables, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
    )
    return run.stdout, run.returncode == 0 and "1 passed" in run.stdout


def main():
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("minutes", type=float, nargs="?", default=30)
    parser.add_argument("--kills", type=int, default=100, help="kills of each store")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="the first seed; each round adds 1")
    options = parser.parse_args()
    binary, started = harness(), time.monotonic()
    totals, medians, slowest, rounds = dict.fromkeys(COUNTED, 0), [], 0, 0
    while time.monotonic() < started + 60 * options.minutes:
        seed = options.seed + rounds
        output, passed = run_round(binary, options.kills, seed)
        if not passed:
            print(output)
            sys.exit(f"scripts/soak: failed in round {rounds + 1}; GALLEY_KILL_CYCLES={options.kills} GALLEY_KILL_SEED={seed} repeats it")
        for name, pattern in COUNTED.items():
            totals[name] += int(re.search(pattern, output).group(1))
        median, longest = map(int, re.search(r"restarts: +median (\d+) ms, slowest (\d+) ms", output).groups())
        medians, slowest, rounds = medians + [median], max(slowest, longest), rounds + 1
        print(f"round {rounds}: {totals['kills']} kills, {totals['acknowledged']} acknowledged writes, "
              f"{(time.monotonic() - started) / 60:.1f} minutes", flush=True)
    print(
        f"soak: {(time.monotonic() - started) / 60:.1f} minutes, {rounds} stores, seeds from {options.seed}\n"
        f"  {totals['kills']} kills under load\n"
        f"  {totals['acknowledged']} acknowledged writes, 0 lost\n"
        f"  {totals['unknown']} writes of unknown outcome, {totals['applied']} of them applied, completely\n"
        f"  {totals['events']} webhook events, 0 lost; {totals['duplicates']} sent again because a kill came before the record\n"
        f"  restarts: median {sorted(medians)[len(medians) // 2]} ms, slowest {slowest} ms\n"
        f"  {totals['violations']} violations"
    )


if __name__ == "__main__":
    main()
