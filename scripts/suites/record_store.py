#!/usr/bin/env python3
"""Records a store: fills it with a program and writes its contents and the responses of the program
into fixtures. Tests check that later programs open it. See crates/cli/tests/fixtures/README.md.

usage: GALLEY_BIN=… scripts/suites/record_store.py NAME                               (SQLite)
       GALLEY_BIN=… scripts/suites/with-postgres scripts/suites/record_store.py NAME  (PostgreSQL)
"""

import contextlib
import functools
import http.client
import http.server
import json
import os
import pathlib
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import threading
import urllib.parse

from instances import KEY, PHONE, TOKEN, Provider, Service, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
SETTINGS = {
    "GALLEY_SECRET_KEY": "the secret key of the fixtures",
    "GALLEY_PUBLIC_URL": "https://galley.example",
    "GALLEY_WEBHOOKS_ALLOW_PRIVATE": "true",
    "GALLEY_WEBHOOKS_RETRIES": "0s",
    "GALLEY_EMULATOR": "true",
    "GALLEY_UPSTREAM_ALLOW_PRIVATE": "true",
}


class Receiver(http.server.BaseHTTPRequestHandler):
    """Webhook receiver that rejects events of templates whose name contains "fails", and collects statuses."""

    statuses = []

    def do_GET(self):
        """Answers the verification of a URL in Meta's format."""
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(query["hub.challenge"][0].encode())

    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.statuses += re.findall(r'"status": "(\w+)"', json.dumps(event))
        self.send_response(500 if "fails" in event.get("data", {}).get("name", "") else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Account:
    """Client of one account. Records the readings of all accounts."""

    readings, searches = [], []

    def __init__(self, service, key, token, phone=PHONE):
        self.service, self.token = service, token
        self.base = f"/api/v1.0/{phone}/{key}"
        self.created = []

    def send(self, method, path, body=None, **headers):
        """Sends a request; returns the status and the bytes of the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=20)
        headers = {"Authorization": f"Bearer {self.token}", **headers}
        if not isinstance(body, bytes):
            headers["Content-Type"] = "application/json"
            body = None if body is None else json.dumps(body)
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()

    def call(self, method, path, body=None, **headers):
        """Sends a request that must succeed. Paths belong to API v1.0 unless of the Graph API or the console."""
        path = path if path.startswith(("/v23.0", "/console/")) else self.base + path
        status, response = self.send(method, path, body, **headers)
        if status >= 300:
            sys.exit(f"{method} {path}: {status} {response.decode()}")
        return json.loads(response) if response else {}

    def create(self, name, text, **members):
        id = self.call("POST", "/message_templates", document(name, text, **members))["id"]
        self.created.append(id)
        return id

    def edit(self, id, **members):
        self.call("PATCH", f"/message_templates/{id}", members)

    def review(self, id, decision, **members):
        self.call("POST", f"/message_templates/{id}/review", {"decision": decision, **members})

    def read(self, *paths, into=None):
        """Records the responses to these paths; of an error only its type."""
        for path in paths:
            path = path if path.startswith("/v23.0") else self.base + path
            status, response = self.send("GET", path)
            body = json.loads(response)
            if status >= 300:
                body = {"type": body["type"]}
            reading = {"path": path, "token": self.token, "status": status, "answer": body}
            (Account.readings if into is None else into).append(reading)

    def search(self, words, id):
        """Records the search result once the search index has caught up."""
        path = f"/message_templates?q={words}"
        wait_until(lambda: id in str(self.call("GET", path)), 20, f"the search finds {words}")
        self.read(path, into=Account.searches)


def document(name, text, language="en_US", category="MARKETING", **members):
    components = members.pop("components", [{"type": "BODY", "text": text}])
    return {
        "name": name, "language": language, "category": category, "allow_category_change": True,
        "components": components, **members,
    }


def galley(work, store, *arguments, text=""):
    """Runs a command, which reads this text, and returns its JSON output."""
    command = [os.environ["GALLEY_BIN"], *arguments, "--store", store, "--json"]
    run = subprocess.run(command, cwd=work, env=SETTINGS, input=text, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{arguments}: {run.stderr}")
    return json.loads(run.stdout) if run.stdout else {}


def fill(service, run, provider):
    """Creates data of every kind."""
    shop = Account(service, KEY, TOKEN)
    text = {"type": "BODY", "text": "Grüße {{1}}, your order is on its way 😀."}
    components = [text | {"example": {"body_text": [["Ada"]]}}]
    first = document("order_shipped", "", category="UTILITY", components=components)
    response = shop.call("POST", "/message_templates", first, **{"Idempotency-Key": "order-1"})
    shop.created.append(response["id"])
    facts = {"made_by": version(), "key": KEY, "token": TOKEN, "phone": PHONE}
    # A request is a replay only if its bytes are identical.
    facts["replay"] = {"idempotency_key": "order-1", "body": json.dumps(first), "answer": response}
    facts["edit"] = shop.create("opening_hours", "We are open on Sundays.")
    facts["delete"] = shop.create("farewell", "Good-bye, and thank you.")
    shop.create("with_buttons", "", components=[
        {"type": "HEADER", "format": "TEXT", "text": "A header"},
        {"type": "BODY", "text": "One line\nand another: 'quotes', \"more\" and \\ signs; -- no comment."},
        {"type": "FOOTER", "text": "A footer"},
        {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "Yes"}]},
    ])
    # Other credentials: revoked, rotated, and those of a disabled account.
    old = run("key", "create", "default")
    run("key", "revoke", str(old["id"]))
    fresh = run("token", "rotate", str(run("token", "create", "default")["id"]), "--overlap", "0s")
    run("account", "create", "closed", "--phone", "15550009999", "--key", "key-of-the-closed", "--token", "token-of-the-closed")
    run("account", "disable", "closed")
    secrets = ["--key", "key-of-the-desk", "--token", "token-of-the-desk"]
    run("account", "create", "desk", "--review", "manual", "--phone", "15550002222", *secrets)
    desk = Account(service, "key-of-the-desk", "token-of-the-desk", "15550002222")
    desk.create("parcel_waits", "A parcel waits for you.")
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{receiver.server_port}/"
    change_and_deliver(shop, desk, run, facts, url)
    fill_whatsapp(service, run, facts)
    fill_emulator(service, run, url)
    fill_connection(service, run, provider)
    fill_console(desk, run)
    record_readings(shop, desk, old, fresh)
    facts["events"] = int(shop.call("GET", "/events?after=latest")["paging"]["cursors"]["after"])
    return facts


def change_and_deliver(shop, desk, run, facts, url):
    """Edits, reviews and deletes templates, and delivers their events to an endpoint until it is disabled."""
    endpoint = shop.call("POST", "/webhooks", {"url": url})
    facts["removed"] = desk.call("POST", "/webhooks", {"url": url})["id"]
    hooks = f"/webhooks/{endpoint['id']}"
    edited = shop.create("edited", "The first text.")
    shop.create("fails_to_arrive", "The endpoint refuses this event.")
    shop.edit(edited, components=[{"type": "BODY", "text": "The second text."}], category="UTILITY")
    shop.edit(edited, restore_version=1)
    wait_until(lambda: all_delivered(shop, hooks), 30, "events are delivered")
    shop.call("PATCH", hooks, {"disabled": True})
    paused, disabled = shop.create("paused", "Not for now."), shop.create("disabled", "Never again.")
    shop.review(paused, "pause", reason="Customers asked for fewer messages.")
    shop.review(disabled, "disable")
    shop.call("DELETE", f"/message_templates/{shop.create('deleted', 'Gone.')}")
    for name, decision in [("approved", "approve"), ("rejected", "reject")]:
        desk.review(desk.create(name, f"This was {name}."), decision, reason=f"It was {name}.")
    approved = desk.create("approved_and_edited", "This may be sent.")
    run("review", "approve", approved)
    desk.edit(approved, components=[{"type": "BODY", "text": "This may not be sent yet."}])
    removed = f"/webhooks/{facts['removed']}/deliveries"
    wait_until(lambda: desk.call("GET", removed)["data"], 20, "an event is delivered")
    shop.read("/webhooks", f"{hooks}/deliveries", f"/message_templates/{edited}/versions")
    shop.read(f"/message_templates/{edited}?version=2", "/message_templates?status=paused")
    desk.read(f"/message_templates/{approved}/versions", "/message_templates?status=pending")
    facts["endpoint"] = {name: endpoint[name] for name in ("id", "secret")}
    facts["endpoint"]["behind"] = shop.call("GET", hooks)["behind"]


def fill_whatsapp(service, run, facts):
    """Creates an account with limits, two languages of a template, and a media sample."""
    secrets = ["--key", "key-of-the-waba", "--token", "token-of-the-waba"]
    id = run("account", "create", "waba", "--rulebook", "whatsapp", *secrets)["account_id"]
    run("account", "limit", "waba", "250")
    waba = Account(service, "key-of-the-waba", "token-of-the-waba", "15550003333")
    query = f"?file_name=picture.png&file_length={len(PICTURE)}&file_type=image/png"
    upload = waba.call("POST", f"/v23.0/app/uploads{query}")["id"]
    handle = waba.call("POST", f"/v23.0/{upload}", PICTURE, file_offset="0")["h"]
    header = {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [handle]}}
    for language, text in [("en_US", "Good morning"), ("de", "Guten Morgen")]:
        components = [header, {"type": "BODY", "text": text}]
        template = document("greeting", text, language, components=components)
        waba.call("POST", f"/v23.0/{id}/message_templates", template)
    waba.read(f"/v23.0/{id}/message_templates", "/message_templates", "/events?after=0")
    shown = json.dumps(waba.call("GET", f"/v23.0/{id}/message_templates"))
    sample = re.search(r"https://galley.example(/media/[^\"]+)", shown).group(1)
    facts["media"] = {"path": sample, "bytes": list(PICTURE)}


def fill_emulator(service, run, url):
    """Creates an emulator account whose clock stands still, with steps to come, a fault and messages."""
    secrets = ["--key", "key-of-the-sandbox", "--token", "token-of-the-sandbox"]
    arguments = ["--rulebook", "whatsapp", "--emulator", "--faithful", "--phone", "15550004444", *secrets]
    id = run("account", "create", "sandbox", *arguments)["account_id"]
    sandbox = Account(service, "key-of-the-sandbox", "token-of-the-sandbox", "15550004444")
    sandbox.call("POST", "/emulator/clock", {"advance": "1h"})
    rule = {"name": "ordered_*", "outcome": "reject", "reason": "PROMOTIONAL"}
    sandbox.call("PUT", "/emulator/rules", {"rules": [rule]})
    endpoint = run("webhook", "add", "sandbox", url, "--format", "whatsapp", "--verify-token", "verified")["id"]
    for name in ("greeting", "waits_pending_10m", "ordered_by_rule", "gone_for_good"):
        sandbox.create(name, "Good morning to all of you.")
    sandbox.call("DELETE", f"/message_templates/{sandbox.created.pop()}")
    template = {"name": "greeting", "language": {"code": "en_US"}}
    message = {"messaging_product": "whatsapp", "to": "15550109999", "type": "template", "template": template}
    sandbox.call("POST", "/v23.0/15550004444/messages", message)
    sandbox.call("POST", "/emulator/clock", {"advance": "1m"})
    wait_until(lambda: "read" in Receiver.statuses, 20, "the statuses of the message arrive")
    fault = {"call": "create", "kind": "error", "code": 80008, "name": "never_created", "times": 2}
    sandbox.call("POST", "/emulator/faults", fault)
    override = {"override_callback_uri": url, "verify_token": "verified"}
    sandbox.call("POST", f"/v23.0/{id}/subscribed_apps", override)
    run("webhook", "disable", "sandbox", str(endpoint))
    sandbox.read(*(f"/emulator/{it}" for it in ("clock", "rules", "faults", "messages")))
    sandbox.read("/message_templates", "/events?after=0", "/webhooks", f"/v23.0/{id}/subscribed_apps")


def fill_connection(service, run, provider):
    """Connects an account to a provider, with templates on both sides, and pauses the connection."""
    remote = Account(provider, provider.ready["key"], provider.ready["token"], provider.ready["phone_number_id"])
    for name in ("same_on_both_sides", "changed_at_the_provider"):
        remote.create(name, "Your order was shipped today.")
    run("account", "create", "connected", "--rulebook", "whatsapp", "--key", "key-of-the-connected")
    run("token", "create", "connected", "--secret", "token-of-the-connected", "--scopes", "read,write,upstream")
    at = ["--base-url", f"{provider.ready['url']}/v23.0", "--waba", provider.ready["waba_id"], "--token-file", "-"]
    run("upstream", "connect", "connected", *at, text=provider.ready["token"])
    run("upstream", "import", "connected")
    connected = Account(service, "key-of-the-connected", "token-of-the-connected", "15550005555")
    connected.create("submitted", "Your order arrives tomorrow.")
    done = lambda: connected.call("GET", "/upstream/operations")["data"][0]["state"] == "done"
    wait_until(done, 20, "the template is submitted")
    remote.edit(remote.created[-1], components=[{"type": "BODY", "text": "Your order was lost today."}])
    run("upstream", "sync", "connected")
    run("upstream", "pause", "connected")
    connected.create("waits_for_the_end_of_the_pause", "Your order is late.")
    connected.read("/upstream", "/upstream/operations", "/upstream/templates", "/message_templates", "/events?after=0")


def fill_console(desk, run):
    """Signs in to the console with one link, and leaves another one."""
    link = run("console", "desk")["url"].split("#link=")[1]
    desk.call("POST", "/console/session", {"link": link}, **{"Sec-Fetch-Site": "same-origin"})
    run("console", "desk", "--name", "Mira")


def all_delivered(account, hooks):
    deliveries = account.call("GET", f"{hooks}/deliveries")["data"]
    return len(deliveries) >= 5 and all(it["status"] != "waiting" for it in deliveries)


def record_readings(shop, desk, old, fresh):
    """Records what each account reads, and the errors for credentials without access."""
    Account(shop.service, old["key"], TOKEN).read("/message_templates/1")
    Account(shop.service, KEY, fresh["token"]).read("/message_templates/1")
    Account(shop.service, "key-of-the-closed", "token-of-the-closed", "15550009999").read("/message_templates/1")
    for account in (shop, desk):
        account.read(*(f"/message_templates/{id}" for id in account.created))
        account.read("/message_templates?limit=100", "/events?after=0&limit=100")
    desk.search("parcel", desk.created[0])


def version():
    return subprocess.run([os.environ["GALLEY_BIN"], "--version"], capture_output=True, text=True).stdout.strip()


def dump_sqlite(file):
    """The statements that recreate the file. `iterdump` omits application id and version."""
    with contextlib.closing(sqlite3.connect(file)) as store:
        # Tables are sorted by name and may reference later ones.
        yield "PRAGMA foreign_keys = OFF;"
        for name in ("application_id", "user_version"):
            yield f"PRAGMA {name} = {store.execute(f'PRAGMA {name}').fetchone()[0]};"
        yield from store.iterdump()


def dump_postgres(store):
    """The output of `pg_dump` without psql commands and owners."""
    control = next(word for word in shlex.split(os.environ["GALLEY_TEST_PGCTL"]) if word.endswith("/pg_ctl"))
    dump = [str(pathlib.Path(control).with_name("pg_dump")), "--inserts", "--no-owner", "--no-privileges", store]
    text = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
    text = re.sub(r"^(\\.*|--.*|SET .*|)\n", "", text, flags=re.MULTILINE)
    return text.splitlines()


def document_of(facts):
    """The facts as JSON, with a line for each reading."""
    def dump(value):
        return json.dumps(value, ensure_ascii=False)

    def member(name, value):
        if name not in ("readings", "searches"):
            return f"{dump(name)}: {dump(value)}"
        return f"{dump(name)}: [\n" + ",\n".join(dump(it) for it in value) + "\n]"

    return "{\n" + ",\n".join(member(*it) for it in facts.items()) + "\n}\n"


def main():
    (name,) = sys.argv[1:]
    directory = ROOT / "crates/cli/tests/fixtures"
    on_postgres = "GALLEY_TEST_POSTGRES" in os.environ
    with tempfile.TemporaryDirectory() as work:
        file = f"{work}/galley.db"
        store = os.environ["GALLEY_TEST_POSTGRES"] if on_postgres else f"sqlite:{file}"
        settings = {**SETTINGS, "GALLEY_STORE": store, "GALLEY_BOOTSTRAP_PHONE": PHONE}
        service, provider = Service(work, 0, settings), Provider(work)
        run = functools.partial(galley, work, store)
        try:
            facts = fill(service, run, provider)
        finally:
            service.stop()
            provider.process.terminate()
            provider.process.wait(timeout=30)
        # Without a service, the deliveries of a deleted endpoint stay.
        run("webhook", "remove", "desk", facts.pop("removed"))
        lines = list(dump_postgres(store) if on_postgres else dump_sqlite(file))
    facts |= {"readings": Account.readings, "searches": Account.searches}
    (directory / f"{name}.sql").write_text("\n".join(lines) + "\n")
    (directory / f"{name}.json").write_text(document_of(facts))


if __name__ == "__main__":
    main()
