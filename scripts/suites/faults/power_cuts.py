"""Records what the service writes under load, cuts the power at random points of the record, and checks
that the service finds every write that it acknowledged before the cut."""

import concurrent.futures
import random
import threading
import time

import disk
from control import Control
from scenario import wait_for_quiet
from service import Client, Service, StartFailed, Violation, document, must_run

CLIENTS = 4
# Each process of the service serves several bursts of writes. Between them it is idle and checkpoints.
SESSIONS, BURSTS, WRITES_PER_BURST = 3, 4, 12
# The control repeats this share of the images without the syncs of `synchronous=FULL`.
CONTROL_SHARE = 4


class Acknowledged:
    """A template, and the log's length when each of its versions was acknowledged."""

    def __init__(self, name, id, position):
        self.name, self.id, self.positions = name, id, [position]

    def version_at(self, cut):
        """The newest version acknowledged before the cut; 0 is none."""
        return sum(position <= cut for position in self.positions)


def text(name, version):
    return f"Text of {name}, version {version}"


class Recording:
    """The log of all writes, and what clients know."""

    def __init__(self, galley, work, shim):
        self.galley, self.directory = galley, work / "recorded"
        self.directory.mkdir()
        self.control = Control(shim, self.directory, work / "recorded-control", work / "recorded-log")
        self.templates, self.lock = [], threading.Lock()

    def run(self):
        for session in range(SESSIONS):
            service = Service(self.galley, self.directory, self.control)
            # The page counts calls, to see when the service is idle.
            self.control.arm("EIO", 0)
            for burst in range(BURSTS):
                with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
                    list(pool.map(lambda number: self.write(service, f"t_{session}_{burst}_{number}"), range(CLIENTS)))
                wait_for_quiet(self.control, at_least=0.3)
            # Every other process is killed, and the next one recovers the WAL.
            service.kill() if session % 2 == 0 else service.stop()
        if self.control.page.mapped:
            raise SystemExit(f"scripts/faults: {self.control.page.mapped.decode()} is written through a mapping, not recorded")
        return disk.read_log(self.control.log.read_bytes())

    def write(self, service, prefix):
        client = Client(service)
        for number in range(WRITES_PER_BURST):
            name = f"{prefix}_{number}"
            status, response = client.call("POST", "/message_templates", document(name, text(name, 1)))
            position = self.control.page.log_bytes
            if status != 201:
                raise SystemExit(f"scripts/faults: a create is answered {status}: {response}")
            template = Acknowledged(name, response["id"], position)
            if number % 3 == 0:
                body = {"components": [{"type": "BODY", "text": text(name, 2)}]}
                status, response = client.call("PATCH", f"/message_templates/{template.id}", body)
                if status != 200:
                    raise SystemExit(f"scripts/faults: an edit is answered {status}: {response}")
                template.positions.append(self.control.page.log_bytes)
            with self.lock:
                self.templates.append(template)


def check(galley, image, templates, cut):
    """Opens an image with the service; returns what is lost, or fails if the store is damaged."""
    expected = {it.name: it.version_at(cut) for it in templates if it.version_at(cut)}
    lost = read_image(galley, image, expected)
    must_run(galley, image, "doctor")
    return lost


def read_image(galley, image, expected):
    """Starts the service on an image, and returns which of the expected versions it does not have."""
    service = Service(galley, image)
    try:
        client = Client(service)
        status, response = client.call("POST", "/message_templates", document("after_the_cut"))
        if status != 201:
            raise Violation(f"a create is answered {status}: {response}")
        stored = client.templates()
        events = {it["template_id"] for it in client.events()}
        for found in stored.values():
            template = found[0]
            is_whole = len(found) == 1 and template["id"] in events
            if not is_whole or template["name"] in expected and not is_consistent(template):
                raise Violation(f"{template['name']} is stored in part: {found}")
        if "panicked" in service.log:
            raise Violation(f"a thread panicked: {service.log}")
        return [name for name, version in expected.items() if name not in stored or stored[name][0]["version"] < version]
    finally:
        service.kill()
        service.log_file.unlink()


def is_consistent(template):
    return template["components"] == [{"type": "BODY", "text": text(template["name"], template["version"])}]


class Images:
    """Builds images at the cuts, and checks them in threads."""

    def __init__(self, galley, work, jobs, templates):
        self.galley, self.work, self.templates = galley, work, templates
        self.pool, self.places = concurrent.futures.ThreadPoolExecutor(jobs), threading.Semaphore(2 * jobs)

    def check_all(self, records, cuts, seed, ignored_syncs, label):
        """Returns the checked cuts: losses and violations of each."""
        built, checks, position = disk.Disk(ignored_syncs), [], 0
        for number, cut in enumerate(cuts):
            for record in records[position:cut]:
                built.replay(record)
            position = cut
            image = self.work / f"{label}{number}"
            self.places.acquire()
            image.mkdir()
            built.image(random.Random(f"{seed}-{number}"), image)
            checks.append(self.pool.submit(self.check, image, records[cut - 1].end, number))
        return [check.result() for check in checks]

    def check(self, image, cut, number):
        try:
            return number, check(self.galley, image, self.templates, cut), None
        except (Violation, StartFailed) as violation:
            return number, [], str(violation)
        finally:
            self.places.release()
            remove(image)


def remove(image):
    for path in image.iterdir():
        path.unlink()
    image.rmdir()


def run(galley, work, shim, images, seed, jobs):
    """Records, cuts and checks; returns whether nothing was lost and the control lost something."""
    started = time.monotonic()
    recording = Recording(galley, work, shim)
    records = recording.run()
    cuts = sorted(random.Random(seed).choices(range(1, len(records) + 1), k=images))
    rig = Images(galley, work, jobs, recording.templates)
    omitted = disk.syncs_only_in_full_mode(records)
    syncs = sum(it.op == disk.SYNC_BEGIN for it in records)
    print(f"power cuts: {len(records)} records with {syncs} syncs, {len(recording.templates)} templates, seed {seed}", flush=True)
    full = rig.check_all(records, cuts, seed, frozenset(), "full")
    lost, bad = summarise("synchronous=FULL", full, seed)
    control = rig.check_all(records, cuts[::CONTROL_SHARE], seed, omitted, "normal")
    lost_by_control, bad_control = summarise(f"control: without the {len(omitted)} syncs of FULL", control, seed)
    print(f"power cuts: {time.monotonic() - started:.0f} s")
    if not lost_by_control:
        print("power cuts: the control loses nothing, so the rig cannot find a loss")
    return not lost and not bad and lost_by_control and not bad_control


def summarise(label, results, seed):
    """Prints the results; returns the number of images with losses and with violations."""
    lost, bad = [it for it in results if it[1]], [it for it in results if it[2]]
    writes = sum(len(names) for _, names, _ in lost)
    print(f"{label}: {len(results)} images, {len(lost)} with losses ({writes} writes), {len(bad)} damaged", flush=True)
    for number, _, violation in bad[:10]:
        print(f"  image {number} of seed {seed}: {violation.strip()[:1000]}", flush=True)
    return len(lost), len(bad)
