"""The scenarios: what the service or a command does while a call fails, and what must hold afterwards.

A scenario prepares a store once. Each case runs on a copy of it: `act` runs while the shim counts and
fails calls, `check` runs after a restart without the shim.
"""

import http.server
import json
import pathlib
import sqlite3
import threading
import time

from scenario import EXISTING, Change, Scenario, check_text, missing, wait_for_quiet
from service import Client, Service, StartFailed, Violation, document, must_run, outcome, run, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[3]
DESK = ("key-of-the-desk", "token-of-the-desk", "15550002222")
WABA = ("key-of-the-waba", "token-of-the-waba", "15550003333")
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 160


class Create(Scenario):
    name = "create"

    def act(self, case, service):
        client = Client(service)
        case.created = [self.create(client, f"new_{number}") for number in range(2)]
        client.call("GET", f"/message_templates/{case.before[EXISTING[0]]['id']}")

    @staticmethod
    def create(client, name):
        status, response = client.call("POST", "/message_templates", document(name), **{"Idempotency-Key": name})
        return name, outcome(status, response), response.get("id")

    def check(self, case, service):
        client = Client(service)
        stored, events = client.templates(), client.events()
        for name in EXISTING:
            check_text(client, stored, name, f"Text of {name}")
        for name, result, id in case.created:
            found = stored.get(name, [])
            created = [it for it in events if it["data"]["name"] == name]
            if len(found) > 1 or len(created) != len(found):
                raise Violation(f"{name} is stored {len(found)} times, with {len(created)} events")
            if result == "done" and [it["id"] for it in found] != [id]:
                raise Violation(f"the acknowledged template {name} is lost")
            if result == "refused" and found:
                raise Violation(f"{name} was refused, and is stored")
            if found:
                check_text(client, stored, name, f"Text of {name}")
            _, again, again_id = self.create(client, name)
            if again != "done" or again_id != (found[0]["id"] if found else again_id):
                raise Violation(f"repeating the create of {name} gives {again} {again_id}, stored was {found}")


class Edit(Change):
    name = "edit"

    def change(self, client, name, id):
        body = {"components": [{"type": "BODY", "text": f"Edited text of {name}"}]}
        return client.call("PATCH", f"/message_templates/{id}", body)

    def is_changed(self, template):
        return template["version"] == 2 and template["components"][0]["text"] == f"Edited text of {template['name']}"


class Review(Change):
    name, account, names = "review", DESK, ("desk_0", "desk_1")

    def fill(self, galley, directory, client):
        key, token, phone = DESK
        must_run(galley, directory, "account", "create", "desk", "--review", "manual", "--phone", phone,
                 "--key", key, "--token", token)
        desk = Client(client.service, *DESK)
        for name in self.names:
            self.must_create(desk, name)

    def change(self, client, name, id):
        decision = {"desk_0": "approve", "desk_1": "reject"}[name]
        return client.call("POST", f"/message_templates/{id}/review", {"decision": decision, "reason": "Because."})

    def is_changed(self, template):
        return template["status"] == {"desk_0": "APPROVED", "desk_1": "REJECTED"}[template["name"]]


class Delete(Change):
    name = "delete"

    def change(self, client, name, id):
        return client.call("DELETE", f"/message_templates/{id}")

    def is_changed(self, template):
        return template is None


class Receiver(http.server.BaseHTTPRequestHandler):
    """Accepts every event, and remembers its number by the name of its template."""

    received = {}

    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Receiver.received.setdefault(event["data"]["name"], []).append(event["seq"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Delivery(Create):
    """A template is created, and its event is delivered and recorded."""

    name = "delivery"

    def fill(self, galley, directory, client):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        body = {"url": f"http://127.0.0.1:{server.server_port}/", "events": ["template.created"]}
        status, self.endpoint = client.call("POST", "/webhooks", body)
        if status != 201:
            raise Violation(f"an endpoint is answered {status}: {self.endpoint}")

    def act(self, case, service):
        # Every case has the same receiver: the name tells them apart.
        name = f"delivered_{case.number}_{time.monotonic_ns()}"
        case.created = [self.create(Client(service), name)]
        if case.created[0][1] == "done":
            wait_until(lambda: name in Receiver.received or case.control.fired, 10, "the event is delivered")

    def check(self, case, service):
        client, name = Client(service), case.created[0][0]
        stored = bool(client.templates().get(name))
        if stored:
            seq = next(it["seq"] for it in client.events() if it["data"]["name"] == name)
            wait_until(lambda: self.status(client, seq) == "delivered", 20, f"the delivery of {name} is recorded")
        if stored != (name in Receiver.received):
            raise Violation(f"{name} is stored: {stored}; its event was received {Receiver.received.get(name)}")
        super().check(case, service)

    def status(self, client, seq):
        """The status of an event's delivery."""
        deliveries = client.read(f"/webhooks/{self.endpoint['id']}/deliveries?limit=100")["data"]
        return next((it["status"] for it in deliveries if it["seq"] == seq), None)


class Upload(Scenario):
    """A file is declared and sent, and a template refers to it."""

    name = "upload"

    def fill(self, galley, directory, client):
        key, token, _ = WABA
        created = must_run(galley, directory, "account", "create", "waba", "--rulebook", "whatsapp",
                           "--key", key, "--token", token, "--json")
        self.account = json.loads(created)["account_id"]

    def act(self, case, service):
        client = Client(service, *WABA)
        case.upload, case.handle, case.template = None, None, None
        query = f"?file_name=picture.png&file_length={len(PICTURE)}&file_type=image/png"
        status, response = client.call("POST", f"/v23.0/app/uploads{query}")
        if status == 200:
            case.upload = response["id"]
            case.handle = self.send(client, case.upload, 0)
        if case.handle:
            case.template = self.use(client, case.handle)

    @staticmethod
    def send(client, upload, offset):
        status, response = client.call("POST", f"/v23.0/{upload}", PICTURE[offset:], file_offset=str(offset))
        return response["h"] if status == 200 else None

    def use(self, client, handle):
        """Creates a template with the file, and returns its id."""
        header = {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [handle]}}
        template = document("with_picture") | {"components": [header, {"type": "BODY", "text": "Look."}]}
        status, response = client.call("POST", f"/v23.0/{self.account}/message_templates", template)
        return response["id"] if status == 200 else None

    def check(self, case, service):
        client = Client(service, *WABA)
        if case.upload and not case.handle:
            # The client resumes where the service says it stopped.
            offset = client.read(f"/v23.0/{case.upload}")["file_offset"]
            case.handle = self.send(client, case.upload, int(offset))
            if not case.handle:
                raise Violation(f"the upload cannot be resumed at {offset}")
        found = self.find(client)
        if case.template and not found:
            raise Violation("the acknowledged template with the file is lost")
        if case.handle and not found and not self.use(client, case.handle):
            raise Violation("the handle of an acknowledged file is unknown")
        if case.handle:
            url = self.find(client)["components"][0]["example"]["header_handle"][0]
            _, content = service.send("GET", url.removeprefix("https://galley.example"))
            if content != PICTURE:
                raise Violation(f"the file has {len(content)} other bytes")

    def find(self, client):
        page = client.read(f"/v23.0/{self.account}/message_templates?name=with_picture")
        return page["data"][0] if page["data"] else None


class Checkpoint(Scenario):
    """The idle service copies its WAL into the database file, and again when it stops."""

    name, without_search = "checkpoint", True
    # More WAL pages than the threshold of an idle service.
    creates = 25

    def run(self, case):
        service = Service(case.galley, case.directory, case.control)
        case.logs.append(service)
        client = Client(service)
        case.created = [Create.create(client, f"new_{number}") for number in range(self.creates)]
        case.arm()
        wait_for_quiet(case.control, at_least=0.2)
        if service.is_running:
            try:
                service.stop()
            except Violation:
                if not case.is_killed:
                    raise
        case.disarm()

    def check(self, case, service):
        Create().check(case, service)


class Backup(Scenario):
    """`galley backup` beside a store that no service uses."""

    name = "backup"

    def run(self, case):
        case.arm()
        done = run(case.galley, case.directory, "backup", str(case.directory / "copy.db"), control=case.control)
        case.disarm()
        case.output += done.stderr
        case.succeeded = done.returncode == 0
        if not case.succeeded and not case.is_killed and "galley: " not in done.stderr:
            raise Violation(f"the backup ends with {done.returncode} and no message: {done.stderr}")

    def check(self, case, service):
        copy = case.directory / "copy.db"
        if not case.succeeded and not copy.exists():
            # The same command must succeed now, without a repair. A file with the final name is complete.
            must_run(case.galley, case.directory, "backup", str(copy))
        restored = case.directory.with_name(case.directory.name + "-copy")
        restored.mkdir()
        copy.rename(restored / "galley.db")
        must_run(case.galley, restored, "doctor")
        service = Service(case.galley, restored)
        client = Client(service)
        stored = client.templates()
        for name in EXISTING:
            check_text(client, stored, name, f"Text of {name}")
        service.stop()
        left = [it.name for it in case.directory.iterdir() if "copy" in it.name]
        if left and case.succeeded:
            raise Violation(f"the backup leaves {left}")


class Starting(Scenario):
    """The service's start itself."""

    def run(self, case):
        case.arm()
        try:
            service = Service(case.galley, case.directory, case.control)
        except StartFailed as failed:
            case.disarm()
            case.output += str(failed)
            if not case.is_killed and "galley: " not in str(failed):
                raise Violation(f"the start fails without a message: {failed}") from None
            return
        case.logs.append(service)
        wait_for_quiet(case.control)
        case.disarm()
        if service.is_running and not case.is_killed:
            self.recovers(Client(service, *self.credentials()), "in_place")
            service.stop()

    def credentials(self):
        return ()


class FirstStart(Starting):
    name = "first-start"

    def prepare(self, galley, directory):
        pass

    def check(self, case, service):
        Client(service).templates()


class Recorded(Starting):
    """The service opens a recorded store, and migrates it if its schema is older."""

    def __init__(self, name, fixture):
        self.name, fixtures = name, ROOT / "crates/cli/tests/fixtures"
        self.statements = (fixtures / f"{fixture}.sql").read_text()
        self.recorded = json.loads((fixtures / f"{fixture}.json").read_text())

    def prepare(self, galley, directory):
        with sqlite3.connect(directory / "galley.db") as store:
            store.executescript(self.statements)
            # Messages expire after a day.
            store.execute("UPDATE message SET created_at = unixepoch() * 1000")
        store.close()

    def credentials(self):
        return tuple(self.recorded[name] for name in ("key", "token", "phone"))

    def check(self, case, service):
        for reading in self.recorded["readings"]:
            status, response = service.send("GET", reading["path"], token=reading["token"])
            difference = missing(reading["answer"], json.loads(response), "")
            if reading["status"] != status or difference:
                raise Violation(f"{reading['path']}: {status}, {difference}")


ALL = [
    Create(), Edit(), Review(), Delete(), Delivery(), Upload(), Backup(), Recorded("recorded", "sqlite-schema-19"),
    FirstStart(), Checkpoint(),
]
