"""A temporary cluster of three PostgreSQL servers under Patroni, with one etcd. It uses free ports and
a temporary directory, and does not affect other processes of the machine.

The working directory of every process of a node is inside the node's directory. This identifies the
processes to kill when a node fails and when the cluster is removed.
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

from instances import wait_until

NODES = 3
# The shortest times that Patroni allows (ttl >= loop_wait + 2 * retry_timeout). A lost primary is
# detected after TTL seconds.
TTL, LOOP_WAIT, RETRY_TIMEOUT = 8, 1, 3

DYNAMIC_CONFIGURATION = {
    "ttl": TTL,
    "loop_wait": LOOP_WAIT,
    "retry_timeout": RETRY_TIMEOUT,
    "maximum_lag_on_failover": 1048576,
    "synchronous_mode": True,
    # Otherwise Patroni stops waiting for a standby when there is none. Writes acknowledged in that
    # state, including the first ones of a new primary, are on one disk only.
    "synchronous_mode_strict": True,
    "postgresql": {
        "use_pg_rewind": True,
        "use_slots": True,
        # Copy a node that cannot be rewound again, instead of waiting for an operator.
        "remove_data_directory_on_rewind_failure": True,
        "remove_data_directory_on_diverged_timelines": True,
        "parameters": {
            "synchronous_commit": "on",
            "max_connections": 100,
            "shared_buffers": "32MB",
            "wal_keep_size": "256MB",
            # Retry interval of a standby that has lost its primary.
            "wal_retrieve_retry_interval": "500ms",
        },
    },
}


def free_ports(count):
    """Returns distinct free ports; all sockets stay open until the last port is found."""
    sockets = [socket.socket() for _ in range(count)]
    for it in sockets:
        it.bind(("127.0.0.1", 0))
    ports = [it.getsockname()[1] for it in sockets]
    for it in sockets:
        it.close()
    return ports


def newest_postgres():
    """Returns the program directory of the newest PostgreSQL; Debian installs versions side by side."""
    found = [path for path in pathlib.Path("/usr/lib/postgresql").glob("*/bin") if (path / "initdb").exists()]
    if found:
        return max(found, key=lambda path: float(path.parent.name))
    initdb = shutil.which("initdb") or sys.exit("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    return pathlib.Path(initdb).parent


def processes_in(directory):
    """Returns the processes whose working directory is inside the directory."""
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
    """Kills all processes in the directory, including those that are started meanwhile."""
    end = time.monotonic() + 10
    while found := processes_in(directory):
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if time.monotonic() > end:
            sys.exit(f"processes that do not terminate: {found}")


class Node:
    """One simulated machine: Patroni and the PostgreSQL server that it runs."""

    def __init__(self, cluster, number, port, api):
        self.cluster, self.name, self.port, self.api = cluster, f"n{number}", port, api
        self.directory = cluster.create_directory(self.name)
        self.log = self.directory / "log"
        settings = {
            "scope": "galley",
            "name": self.name,
            "restapi": {"listen": f"127.0.0.1:{api}", "connect_address": f"127.0.0.1:{api}"},
            "etcd3": {"host": f"127.0.0.1:{cluster.etcd_port}"},
            "bootstrap": {
                "dcs": DYNAMIC_CONFIGURATION,
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
        # JSON is valid YAML.
        (self.directory / "patroni.yml").write_text(json.dumps(settings, indent=1))
        self.process = None

    def start(self):
        command = ["patroni", str(self.directory / "patroni.yml")]
        self.process = self.cluster.start(command, self.directory, self.log)

    def kill(self):
        """Kills all processes at once, as a machine failure would. Connections are closed."""
        kill_all_in(self.directory)
        self.process.wait()

    def freeze(self):
        """Stops all processes, as a hanging disk would. Connections stay open, and the kernel accepts
        new ones."""
        # The second pass finds processes that were started during the first.
        for _ in range(2):
            for process in processes_in(self.directory):
                # A process that has terminated since counts as stopped.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGSTOP)

    def senders(self):
        """Returns the processes that send the write-ahead log to the standbys."""
        pids = self.cluster.sql("SELECT pid FROM pg_stat_replication", [self]) or ""
        return sorted({int(pid) for pid in pids.split()} & set(processes_in(self.directory)))


class Cluster:
    """The whole cluster, as a context manager."""

    def __init__(self):
        self.programs = newest_postgres()
        # PostgreSQL refuses to run as root.
        self.user = None
        if os.getuid() == 0:
            names = {entry.pw_name for entry in pwd.getpwall()}
            self.user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="galley-cluster-")).resolve()
        self.set_owner(self.work)
        self.started = []
        self.etcd_port, peer, *ports = free_ports(2 + 2 * NODES)
        self.etcd = self.create_directory("etcd"), peer
        self.nodes = [Node(self, number + 1, *ports[2 * number:2 * number + 2]) for number in range(NODES)]

    def __enter__(self):
        try:
            self.start_etcd()
            # Start the first node alone until it is the leader, so that it initialises the cluster.
            self.nodes[0].start()
            wait_until(lambda: self.primary() is self.nodes[0], 60, "the first node accepts writes", 0.2)
            for node in self.nodes[1:]:
                node.start()
            wait_until(self.is_complete, 90, "three nodes with one synchronous standby", 0.2)
            self.sql("CREATE TABLE probe (at timestamptz)")
            self.sql("CREATE ROLE galley LOGIN")
            self.sql("CREATE DATABASE galley OWNER galley")
            return self
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def __exit__(self, kind, *_):
        # A second signal must not interrupt the cleanup.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        kill_all_in(self.work)
        for process in self.started:
            process.wait()
        if kind not in (None, KeyboardInterrupt):
            for node in self.nodes:
                if node.log.exists():
                    lines = node.log.read_text(errors="replace").splitlines()[-6:]
                    print(f"\nlast log lines of {node.name}:", *lines, sep="\n  ", file=sys.stderr)
        shutil.rmtree(self.work)

    def set_owner(self, path):
        if self.user:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def create_directory(self, name):
        path = self.work / name
        path.mkdir(mode=0o700)
        self.set_owner(path)
        return path

    def environment(self):
        """Returns the environment without variables that affect PostgreSQL, etcd, Patroni or Python."""
        names = [name for name in os.environ if not name.startswith(("PG", "ETCD_", "PATRONI_", "PYTHON"))]
        return {name: os.environ[name] for name in names} | {"HOME": str(self.work), "LC_ALL": "C.UTF-8"}

    def start(self, command, directory, log):
        credentials = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}
        # A new session, so that Ctrl-C reaches only this program, which then stops the process.
        with log.open("a") as output:
            process = subprocess.Popen(
                command, cwd=directory, env=self.environment(), stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True, **credentials,
            )
        self.started.append(process)
        return process

    def start_etcd(self):
        """Starts a single etcd. It is not under test and is never killed."""
        directory, peer = self.etcd
        client_url, peer_url = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{peer}"
        command = [
            "etcd", "--name", "e1", "--data-dir", str(directory / "data"), "--listen-client-urls", client_url,
            "--advertise-client-urls", client_url, "--listen-peer-urls", peer_url, "--logger", "zap",
            "--initial-advertise-peer-urls", peer_url, "--initial-cluster", f"e1={peer_url}",
        ]
        self.start(command, directory, directory / "log")
        wait_until(lambda: self.request(self.etcd_port, "/health"), 30, "etcd responds", 0.1)

    def request(self, port, path, patch=None):
        """Sends a request to Patroni or etcd; returns the JSON body, or None without a response."""
        data = json.dumps(patch).encode() if patch else None
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, method="PATCH" if patch else "GET")
        try:
            with urllib.request.urlopen(request, timeout=5) as response:
                return json.load(response)
        except (OSError, ValueError):
            return None

    def address(self):
        """Returns the database address for the service."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"postgres://galley@{hosts}/galley?target_session_attrs=read-write&sslmode=disable"

    def sql(self, statement, nodes=None, seconds=30):
        """Runs a statement on the node that accepts writes; returns its output, or None on failure.
        Uses psql, which is independent of the service."""
        nodes = nodes or self.nodes
        hosts, ports = ",".join("127.0.0.1" for _ in nodes), ",".join(str(node.port) for node in nodes)
        conninfo = f"host={hosts} port={ports} user=postgres dbname=postgres target_session_attrs=read-write connect_timeout=2"
        command = [str(self.programs / "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement, conninfo]
        try:
            done = subprocess.run(
                command, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    def primary(self, nodes=None):
        """Returns the node that accepts writes, if any."""
        port = self.sql("SHOW port", nodes)
        return next((node for node in self.nodes if str(node.port) == port), None)

    def is_complete(self, synchronous=True):
        """Whether both standbys stream, and PostgreSQL and Patroni agree on the synchronous standby (or,
        without synchronous replication, that there is none)."""
        counts = self.sql(
            "SELECT count(*) FILTER (WHERE state = 'streaming'), count(*) FILTER (WHERE sync_state = 'sync') "
            "FROM pg_stat_replication WHERE application_name IN ('n1', 'n2', 'n3')"
        )
        if counts != f"{NODES - 1}|{int(synchronous)}":
            return False
        primary = self.primary()
        members = (primary and self.request(primary.api, "/cluster") or {}).get("members", [])
        roles = sorted(member["role"] for member in members if member["state"] in ("running", "streaming"))
        return roles == ["leader", "replica", "sync_standby" if synchronous else "replica"]

    def set_synchronous(self, synchronous):
        """Switches synchronous replication on or off and waits until it takes effect."""
        change = {"synchronous_mode": synchronous, "synchronous_mode_strict": synchronous}
        if not self.request(self.primary().api, "/config", change):
            sys.exit("Patroni rejected the change of its configuration")
        wait_until(lambda: self.is_complete(synchronous), 60, "the replication mode has changed", 0.2)
