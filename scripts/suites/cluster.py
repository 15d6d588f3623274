"""Three PostgreSQL servers under Patroni, with one etcd, on ports of their own and in a directory
of their own that is thrown away. Whatever else runs on the machine is left alone.

Every process of a node has its working directory inside the node's directory: that is how a node
is killed as a whole, and how nothing stays behind.
"""

import contextlib
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from instances import wait

NODES = 3
# As short as Patroni's own rule allows (ttl >= loop_wait + 2 * retry_timeout): a lost primary is
# missed after so many seconds.
TTL, LOOP_WAIT, RETRY_TIMEOUT = 8, 1, 3

DYNAMIC = {
    "ttl": TTL,
    "loop_wait": LOOP_WAIT,
    "retry_timeout": RETRY_TIMEOUT,
    "maximum_lag_on_failover": 1048576,
    "synchronous_mode": True,
    # Without it Patroni gives up waiting for a standby when there is none: what is acknowledged
    # then, which includes the first moments of a new primary, is on one disk.
    "synchronous_mode_strict": True,
    "postgresql": {
        "use_pg_rewind": True,
        "use_slots": True,
        # A node that cannot be rewound is copied anew instead of waiting for somebody.
        "remove_data_directory_on_rewind_failure": True,
        "remove_data_directory_on_diverged_timelines": True,
        "parameters": {
            "synchronous_commit": "on",
            "max_connections": 100,
            "shared_buffers": "32MB",
            "wal_keep_size": "256MB",
            # So long a standby that has lost its primary waits before it asks again.
            "wal_retrieve_retry_interval": "500ms",
        },
    },
}


def free_ports(count):
    """Of the system, all different because all are held until the last is found."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def newest_postgres():
    """Where its programs are; Debian keeps versions beside one another, and out of the path."""
    found = [path for path in pathlib.Path("/usr/lib/postgresql").glob("*/bin") if (path / "initdb").exists()]
    if found:
        return max(found, key=lambda path: float(path.parent.name))
    initdb = shutil.which("initdb") or sys.exit("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    return pathlib.Path(initdb).parent


def processes_in(directory):
    """Whose working directory is in there. Those that are gone or belong to others do not count."""
    found, inside = [], str(directory) + "/"
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            if (os.readlink(f"/proc/{entry.name}/cwd") + "/").startswith(inside):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def kill_all_in(directory):
    """Until none is left: what is killed may just have started another."""
    end = time.monotonic() + 10
    while found := processes_in(directory):
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if time.monotonic() > end:
            sys.exit(f"these do not end: {found}")


class Node:
    """One machine, as it were: a Patroni and the PostgreSQL that it runs."""

    def __init__(self, cluster, number, port, api):
        self.cluster, self.name, self.port, self.api = cluster, f"n{number}", port, api
        self.directory = cluster.make_directory(self.name)
        self.log = self.directory / "log"
        settings = {
            "scope": "galley",
            "name": self.name,
            "restapi": {"listen": f"127.0.0.1:{api}", "connect_address": f"127.0.0.1:{api}"},
            "etcd3": {"host": f"127.0.0.1:{cluster.etcd_port}"},
            "bootstrap": {
                "dcs": DYNAMIC,
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, {"auth": "trust"}, "data-checksums"],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{port}",
                "connect_address": f"127.0.0.1:{port}",
                "data_dir": str(self.directory / "data"),
                "bin_dir": str(cluster.programs),
                "pgpass": str(self.directory / "pgpass"),
                "authentication": {"superuser": {"username": "postgres"}, "replication": {"username": "replicator"}},
                "pg_hba": ["host all all 127.0.0.1/32 trust", "host replication replicator 127.0.0.1/32 trust"],
                "parameters": {"unix_socket_directories": str(self.directory)},
            },
            "watchdog": {"mode": "off"},
        }
        # JSON is YAML, too.
        (self.directory / "patroni.yml").write_text(json.dumps(settings, indent=1))
        self.process = None

    def start(self):
        command = ["patroni", str(self.directory / "patroni.yml")]
        self.process = self.cluster.start(command, self.directory, self.log)

    def kill(self):
        """Everything at once, as when a machine goes. Its connections are closed."""
        kill_all_in(self.directory)
        self.process.wait()

    def freeze(self):
        """Everything stands still, as when a disk hangs. Its connections stay open, and new ones are
        accepted by the kernel."""
        # The newest last: who was started meanwhile is found the second time.
        for _ in range(2):
            for process in processes_in(self.directory):
                # One that has ended since stands still, too.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGSTOP)

    def senders(self):
        """The processes that send the log to the standbys."""
        pids = self.cluster.sql("SELECT pid FROM pg_stat_replication", [self]) or ""
        return sorted({int(pid) for pid in pids.split()} & set(processes_in(self.directory)))


class Cluster:
    """All of it. To be used with `with`."""

    def __init__(self):
        self.programs = newest_postgres()
        # PostgreSQL refuses to run as root.
        self.user = None
        if os.getuid() == 0:
            names = {entry.pw_name for entry in pwd.getpwall()}
            self.user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="galley-cluster-")).resolve()
        self.own(self.work)
        self.started = []
        self.etcd_port, peer, *ports = free_ports(2 + 2 * NODES)
        self.etcd = self.make_directory("etcd"), peer
        self.nodes = [Node(self, number + 1, *ports[2 * number:2 * number + 2]) for number in range(NODES)]

    def __enter__(self):
        try:
            self.start_etcd()
            # The first one is alone until it is the leader, so that it is known who makes the data.
            self.nodes[0].start()
            wait(lambda: self.primary() is self.nodes[0], 60, "the first node takes writes", 0.2)
            for node in self.nodes[1:]:
                node.start()
            wait(self.is_whole, 90, "three nodes, one of them a synchronous standby", 0.2)
            self.sql("CREATE TABLE probe (at timestamptz)")
            self.sql("CREATE ROLE galley LOGIN")
            self.sql("CREATE DATABASE galley OWNER galley")
            return self
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def __exit__(self, kind, *_):
        # Nobody in a hurry keeps this from ending what it has started.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        kill_all_in(self.work)
        for process in self.started:
            process.wait()
        if kind not in (None, KeyboardInterrupt):
            for node in self.nodes:
                if node.log.exists():
                    lines = node.log.read_text(errors="replace").splitlines()[-6:]
                    print(f"\nthe last lines of {node.name}:", *lines, sep="\n  ", file=sys.stderr)
        shutil.rmtree(self.work)

    def own(self, path):
        if self.user:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def make_directory(self, name):
        path = self.work / name
        path.mkdir(mode=0o700)
        self.own(path)
        return path

    def environment(self):
        """Without what would lead PostgreSQL's or etcd's programs elsewhere."""
        names = [name for name in os.environ if not name.startswith(("PG", "ETCD_", "PATRONI_", "PYTHON"))]
        kept = {name: os.environ[name] for name in names}
        return kept | {"HOME": str(self.work), "LC_ALL": "C.UTF-8"}

    def start(self, command, directory, log):
        to = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}
        # In a session of its own, so that Ctrl-C reaches this program only, which then ends it.
        with log.open("a") as output:
            process = subprocess.Popen(
                command, cwd=directory, env=self.environment(), stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True, **to,
            )
        self.started.append(process)
        return process

    def start_etcd(self):
        """One is enough: it is not what is tested, and is not killed."""
        directory, peer = self.etcd
        client, between = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{peer}"
        command = [
            "etcd", "--name", "e1", "--data-dir", str(directory / "data"), "--listen-client-urls", client,
            "--advertise-client-urls", client, "--listen-peer-urls", between, "--logger", "zap",
            "--initial-advertise-peer-urls", between, "--initial-cluster", f"e1={between}",
        ]
        self.start(command, directory, directory / "log")
        wait(lambda: self.ask(self.etcd_port, "/health"), 30, "etcd answers", 0.1)

    def ask(self, port, path, patch=None):
        """The document that Patroni or etcd answers with; none if there is no answer."""
        data = json.dumps(patch).encode() if patch else None
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, method="PATCH" if patch else "GET")
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return None

    def address(self):
        """Of the database, for the service."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"postgres://galley@{hosts}/galley?target_session_attrs=read-write&sslmode=disable"

    def sql(self, statement, nodes=None, seconds=30):
        """What the node that takes writes says; none if there is none. Asked with psql, which knows
        nothing of the service."""
        nodes = nodes or self.nodes
        hosts, ports = ",".join("127.0.0.1" for _ in nodes), ",".join(str(node.port) for node in nodes)
        where = f"host={hosts} port={ports} user=postgres dbname=postgres target_session_attrs=read-write connect_timeout=2"
        command = [str(self.programs / "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement, where]
        try:
            done = subprocess.run(
                command, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    def primary(self, nodes=None):
        """The node that takes writes, if there is one."""
        port = self.sql("SHOW port", nodes)
        return next((node for node in self.nodes if str(node.port) == port), None)

    def is_whole(self, synchronous=True):
        """Whether both standbys stream, and whether PostgreSQL and Patroni agree that one of them is
        waited for and may take over (or, without synchronous replication, that none is)."""
        seen = self.sql(
            "SELECT count(*) FILTER (WHERE state = 'streaming'), count(*) FILTER (WHERE sync_state = 'sync') "
            "FROM pg_stat_replication WHERE application_name IN ('n1', 'n2', 'n3')"
        )
        if seen != f"{NODES - 1}|{int(synchronous)}":
            return False
        primary = self.primary()
        members = (primary and self.ask(primary.api, "/cluster") or {}).get("members", [])
        roles = sorted(member["role"] for member in members if member["state"] in ("running", "streaming"))
        return roles == ["leader", "replica", "sync_standby" if synchronous else "replica"]

    def set_synchronous(self, synchronous):
        """Tells Patroni, and waits until it is so."""
        change = {"synchronous_mode": synchronous, "synchronous_mode_strict": synchronous}
        if not self.ask(self.primary().api, "/config", change):
            sys.exit("Patroni does not take the change of its settings")
        wait(lambda: self.is_whole(synchronous), 60, "the standbys are as they should be", 0.2)
