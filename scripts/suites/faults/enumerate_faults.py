"""Fails each call that changes files, one after another, and checks that nothing acknowledged is lost."""

import collections
import concurrent.futures
import pathlib
import re
import shutil
import threading
import time
import traceback

import scenarios
from control import Control
from service import StartFailed, Violation, must_run

FAULTS = ["EIO", "ENOSPC", "EIO+", "ENOSPC+", "kill"]
# Cases of each scenario in a short run.
SHORT_CASES = 15
# A run may make a few more calls than the counted one.
MAX_MORE_CALLS = 200
# Makes a debug build respond before it commits, so that a kill loses acknowledged writes.
EARLY_RESPONSE = ("GALLEY_TEST_ACKNOWLEDGE", "before-commit")
# Spread over the calls of two creates.
CONTROL_CALLS = range(2, 26, 3)


class Case:
    """One run of a scenario with one fault."""

    numbers, lock = 0, threading.Lock()

    def __init__(self, rig, scenario, fault, at):
        with Case.lock:
            Case.numbers += 1
            self.number = Case.numbers
        self.galley, self.scenario, self.fault, self.at = rig.galley, scenario, fault, at
        self.directory = rig.work / f"case{self.number}"
        shutil.copytree(rig.bases[scenario.name], self.directory)
        self.control = Control(rig.shim, self.directory, rig.work / f"control{self.number}", more=rig.variables)
        self.logs, self.output, self.violation = [], "", None

    def arm(self):
        self.control.arm(self.fault, self.at, self.scenario.without_search)

    def disarm(self):
        self.control.disarm()

    @property
    def is_killed(self):
        return self.fault == "kill" and self.control.fired

    def run(self):
        try:
            self.scenario.run(self)
            self.scenario.check_after_restart(self)
            must_run(self.galley, self.directory, "doctor")
            self.check_output()
        except (Violation, StartFailed) as violation:
            self.violation = str(violation) or type(violation).__name__
        except Exception:
            self.violation = traceback.format_exc()
        finally:
            for service in self.logs:
                service.kill()
        return self

    def check_output(self):
        output = self.output + "".join(service.log for service in self.logs)
        if "panicked" in output:
            raise Violation(f"a thread panicked: {output}")
        if self.control.page.mapped:
            raise Violation(f"{self.control.page.mapped.decode()} is written through a mapping, which no fault reaches")

    def remove(self):
        for path in self.directory.parent.glob(f"{self.directory.name}*"):
            if path.name == self.directory.name or path.name[len(self.directory.name)] in ".-":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.control.file.unlink()

    def __str__(self):
        return f"scripts/faults --only {self.scenario.name} --at {self.at} --fault {self.fault}"


class Rig:
    """The prepared stores, and the threads that run cases."""

    def __init__(self, galley, work, shim, jobs, keep):
        self.galley, self.work, self.shim, self.jobs, self.keep = galley, work, shim, jobs, keep
        self.bases, self.variables = {}, {}

    def prepare(self, scenario):
        base = self.work / f"base-{scenario.name}"
        base.mkdir()
        scenario.prepare(self.galley, base)
        self.bases[scenario.name] = base

    def run(self, scenario, fault, at):
        case = Case(self, scenario, fault, at).run()
        if not (case.violation and self.keep):
            case.remove()
        return case

    def count(self, scenario):
        """The number of calls of the scenario without a fault."""
        case = self.run(scenario, "EIO", 0)
        if case.violation:
            raise SystemExit(f"scripts/faults: {scenario.name} fails without a fault: {case.violation}")
        return case.control.page.count

    def enumerate(self, scenario, short):
        """Runs the cases of a scenario; returns the number of calls and the cases."""
        calls = self.count(scenario)
        every = [(fault, at) for at in range(1, calls + 1) for fault in FAULTS]
        if short:
            # Evenly spread; the step shares no factor with the number of faults, so all of them occur.
            step = max(1, len(every) // SHORT_CASES)
            step += step % len(FAULTS) == 0
            every = every[step // 2 :: step]
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            cases = list(pool.map(lambda it: self.run(scenario, *it), every))
        if not short:
            cases += self.beyond(scenario, calls)
        return calls, cases

    def beyond(self, scenario, calls):
        """Cases behind the counted calls, until a run ends before it makes as many."""
        cases = []
        for at in range(calls + 1, calls + MAX_MORE_CALLS):
            found = [self.run(scenario, fault, at) for fault in FAULTS]
            cases += found
            if not any(case.control.fired for case in found):
                break
        return cases


def loses_if_it_responds_early(rig):
    """The control: a service that responds before it commits must lose an acknowledged template."""
    if EARLY_RESPONSE[0].encode() not in pathlib.Path(rig.galley).read_bytes():
        print("control: not run, because a release build cannot respond before it commits")
        return True
    rig.variables = dict([EARLY_RESPONSE])
    scenario = scenarios.ALL[0]
    with concurrent.futures.ThreadPoolExecutor(rig.jobs) as pool:
        cases = list(pool.map(lambda at: rig.run(scenario, "kill", at), CONTROL_CALLS))
    rig.variables = {}
    lost = [it for it in cases if it.violation and "is lost" in it.violation]
    print(f"control: responding before the commit loses a template in {len(lost)} of {len(cases)} kills", flush=True)
    return bool(lost)


def report(scenario, calls, cases, seconds):
    """Prints the result of a scenario; returns the number of faults and of violations."""
    reached, bad = [it for it in cases if it.control.fired], [it for it in cases if it.violation]
    print(f"{scenario.name:12} {calls:5} calls, {len(reached):5} faults, {len(bad):4} violations, {seconds:6.0f} s", flush=True)
    # Numbers and paths apart, the same message is the same violation: show one case of each.
    kinds = collections.defaultdict(list)
    for case in bad:
        kinds[re.sub(r"\d+", "#", re.sub(r"/\S*/", "", case.violation.strip()))[:200]].append(case)
    for kind, cases in kinds.items():
        case = cases[0]
        print(f"  {len(cases)} times: {case.violation.strip()[:1500]}\n    {case}  # {case.control.failed or 'not reached'}", flush=True)
    return len(reached), len(bad)


def run_all(galley, work, shim, only, short, jobs, keep):
    """Enumerates the faults of the scenarios; returns whether all promises were kept."""
    rig, started, totals = Rig(galley, work, shim, jobs, keep), time.monotonic(), [0, 0, 0]
    for scenario in scenarios.ALL:
        if only and scenario.name not in only:
            continue
        begun = time.monotonic()
        rig.prepare(scenario)
        calls, cases = rig.enumerate(scenario, short)
        faults, bad = report(scenario, calls, cases, time.monotonic() - begun)
        totals = [totals[0] + calls, totals[1] + faults, totals[2] + bad]
    control = scenarios.ALL[0].name not in rig.bases or loses_if_it_responds_early(rig)
    print(f"faults: {totals[0]} calls, {totals[1]} faults, {totals[2]} violations, {time.monotonic() - started:.0f} s")
    return totals[1] > 0 and totals[2] == 0 and control


def run_one(galley, work, shim, name, at, fault, keep):
    """Runs a single case, and prints its result."""
    rig = Rig(galley, work, shim, 1, keep)
    scenario = next(it for it in scenarios.ALL if it.name == name)
    rig.prepare(scenario)
    case = rig.run(scenario, fault, at)
    print(f"{case}  # {case.control.failed or 'not reached'}: {case.violation or 'no violation'}")
    return case.violation is None
