"""What all scenarios share: a store, requests while calls fail, and checks after a restart."""

import json
import time

from service import Client, Service, Violation, document, outcome, wait_until

# The templates of a prepared store.
EXISTING = [f"existing_{number}" for number in range(4)]

# A case waits for background work until no call was made for this long, at most for the second time.
QUIET_SECONDS, MAX_QUIET_SECONDS = 0.06, 1.5


class Scenario:
    """A running service, and requests to it."""

    name = ""
    # Whether the search index's files are left out, because its calls come at any time.
    without_search = False

    def prepare(self, galley, directory):
        """Creates the store that every case begins with."""
        service = Service(galley, directory)
        client = Client(service)
        for name in EXISTING:
            self.must_create(client, name)
        self.fill(galley, directory, client)
        service.stop()

    def fill(self, galley, directory, client):
        """Adds what only this scenario needs."""

    @staticmethod
    def must_create(client, name):
        status, response = client.call("POST", "/message_templates", document(name))
        if status != 201:
            raise Violation(f"a create is answered {status}: {response}")
        return response["id"]

    def run(self, case):
        """Starts the service, acts while calls fail, and stops it unless the fault killed it."""
        service = Service(case.galley, case.directory, case.control)
        case.logs.append(service)
        case.before = self.snapshot(Client(service))
        case.arm()
        self.act(case, service)
        wait_for_quiet(case.control)
        case.disarm()
        if case.is_killed:
            wait_until(lambda: not service.is_running, 10, "the kill takes effect")
        elif service.is_running:
            self.recovers(Client(service), "in_place")
            service.stop()

    def snapshot(self, client):
        """What the requests change, before they do."""
        return {name: found[0] for name, found in client.templates().items()}

    def act(self, case, service):
        """Sends the requests."""

    def check_after_restart(self, case):
        """Restarts the service without the shim, and checks that it has kept every promise."""
        service = Service(case.galley, case.directory)
        case.logs.append(service)
        try:
            self.check(case, service)
            self.recovers(Client(service), "restarted")
        finally:
            service.stop()

    def check(self, case, service):
        """Checks what the requests left behind."""

    @staticmethod
    def recovers(client, name):
        """The service accepts writes again without a repair, and finds what was written."""
        deadline = time.monotonic() + 15
        while True:
            status, response = client.call("POST", "/message_templates", document(name))
            if status == 201:
                break
            # A create of unknown outcome may have happened.
            if status == 409 and client.templates().get(name):
                break
            if status != 503 or time.monotonic() > deadline:
                raise Violation(f"after the fault, a create is answered {status}: {response}")
            time.sleep(0.05)
        # The search index may take a moment longer than the store, and answers 503 until then.
        path = f"/message_templates?q=text+{name}"
        wait_until(lambda: name in json.dumps(client.call("GET", path)), 15, f"the search finds the template {name}")


class Change(Scenario):
    """Two requests that each change one template."""

    account = ()
    names = ("existing_0", "existing_1")

    def change(self, client, name, id):
        """Sends the request that changes a template."""

    def is_changed(self, template):
        """Whether a template has been changed; `None` is one that does not exist."""

    def snapshot(self, client):
        return super().snapshot(Client(client.service, *self.account))

    def act(self, case, service):
        client = Client(service, *self.account)
        case.changed = [(name, outcome(*self.change(client, name, case.before[name]["id"]))) for name in self.names]

    def check(self, case, service):
        client = Client(service, *self.account)
        events = client.events()
        for name, result in case.changed:
            before = case.before[name]
            status, template = client.call("GET", f"/message_templates/{before['id']}")
            if status not in (200, 404):
                raise Violation(f"{name} is answered {status}: {template}")
            changed = self.is_changed(template if status == 200 else None)
            if result == "done" and not changed:
                raise Violation(f"the acknowledged change of {name} is lost: {template}")
            if result == "refused" and changed:
                raise Violation(f"the change of {name} was refused, and happened")
            if not changed and (status == 404 or template["updated_at"] != before["updated_at"]):
                raise Violation(f"{name} is half changed: {template}")
            number = sum(it["template_id"] == before["id"] for it in events)
            if number != 1 + changed:
                raise Violation(f"{name} has {number} events, and is {'' if changed else 'not '}changed")
            if not changed and outcome(*self.change(client, name, before["id"])) != "done":
                raise Violation(f"the change of {name} cannot be repeated")


def missing(expected, found, path):
    """Where `found` lacks something of `expected`; empty if nowhere. Ignores what a service that started
    in spite of the fault has created, and the counters that include it."""
    if isinstance(found, list):
        found = [it for it in found if "in_place" not in json.dumps(it)]
    if isinstance(expected, dict) and isinstance(found, dict):
        names = [name for name in expected if name not in ("paging", "behind")]
        parts = (missing(expected[name], found.get(name), f"{path}/{name}") for name in names)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        parts = (missing(*pair, f"{path}/{index}") for index, pair in enumerate(zip(expected, found)))
    else:
        return "" if expected == found else f"{path} is {found}, not {expected}"
    return next((part for part in parts if part), "")


def check_text(client, stored, name, text):
    """Fails unless the template exists once, with this text."""
    found = stored.get(name, [])
    if len(found) != 1:
        raise Violation(f"{name} is stored {len(found)} times")
    template = client.read(f"/message_templates/{found[0]['id']}")
    if template["components"] != [{"type": "BODY", "text": text}]:
        raise Violation(f"{name} has other content: {template}")


def wait_for_quiet(control, at_least=QUIET_SECONDS):
    """Waits until the process makes no more calls."""
    end, seen, since = time.monotonic() + MAX_QUIET_SECONDS, control.page.count, time.monotonic()
    while time.monotonic() < min(end, since + at_least):
        time.sleep(0.005)
        if control.page.count != seen:
            seen, since = control.page.count, time.monotonic()
