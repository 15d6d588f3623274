"""The command line of scripts/faults."""

import argparse
import os
import pathlib
import random
import shutil
import tempfile

import enumerate_faults
import power_cuts
import scenarios
from control import build_shim

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Smaller file systems in memory could look like a full disk to the service.
MIN_FREE_BYTES = 2 << 30
SHORT_POWER_CUTS = 60


def work_directory():
    """A directory in memory if possible: what the faults do does not depend on a real disk."""
    memory = pathlib.Path("/dev/shm")
    fits = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > MIN_FREE_BYTES
    return tempfile.TemporaryDirectory(prefix="galley-faults-", dir=memory if fits else None, ignore_cleanup_errors=True)


def arguments():
    names = [scenario.name for scenario in scenarios.ALL]
    parser = argparse.ArgumentParser(prog="scripts/faults", description=__doc__)
    parser.add_argument("--galley", type=pathlib.Path, default=ROOT / "target/debug/galley", help="the binary to test")
    parser.add_argument("--short", action="store_true", help="a sample of all faults and power cuts, in about a minute")
    parser.add_argument("--only", action="append", choices=names, help="only this scenario; may be repeated")
    parser.add_argument("--at", type=int, help="only this call; needs --only and --fault")
    parser.add_argument("--fault", choices=enumerate_faults.FAULTS, help="only this fault; + means that it lasts")
    parser.add_argument("--power-cuts", type=int, metavar="IMAGES", help="only power cuts: so many images of the disk")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="repeats the choices of power cuts")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cases at the same time")
    parser.add_argument("--keep", type=pathlib.Path, help="work in this directory, and keep the stores of violations")
    options = parser.parse_args()
    if (options.at or options.fault) and not (options.at and options.only and options.fault):
        parser.error("--at and --fault need each other and --only")
    if not options.galley.is_file():
        parser.error(f"{options.galley} does not exist: build it with `cargo build --bin galley`, or name another with --galley")
    return options


def main():
    options = arguments()
    # Stores that other users can read are reported by `galley doctor`.
    os.umask(0o077)
    galley = str(options.galley.resolve())
    with work_directory() as temporary:
        work = options.keep or pathlib.Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        shim, keep = build_shim(work), options.keep is not None
        if options.power_cuts:
            good = power_cuts.run(galley, work, shim, options.power_cuts, options.seed, options.jobs)
        elif options.at:
            good = enumerate_faults.run_one(galley, work, shim, options.only[0], options.at, options.fault, keep)
        else:
            good = enumerate_faults.run_all(galley, work, shim, options.only, options.short, options.jobs, keep)
            if options.short and not options.only:
                good &= power_cuts.run(galley, work, shim, SHORT_POWER_CUTS, options.seed, options.jobs)
    raise SystemExit(0 if good else "scripts/faults: failed, see above")


if __name__ == "__main__":
    main()
