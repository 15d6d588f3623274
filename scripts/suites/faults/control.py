"""Builds the shim, and controls it in a running process through a shared page."""

import ctypes
import mmap
import os
import pathlib
import subprocess
import sys

FAULTS = {"EIO": 1, "ENOSPC": 2, "kill": 3}


class Page(ctypes.Structure):
    """`struct control` of shim.c."""

    _fields_ = [
        ("armed", ctypes.c_uint32), ("fault", ctypes.c_uint32), ("lasting", ctypes.c_uint32), ("at", ctypes.c_uint32),
        ("count", ctypes.c_uint32), ("fired", ctypes.c_uint32), ("without_search", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32), ("log_bytes", ctypes.c_uint64), ("failed", ctypes.c_char * 128),
        ("mapped", ctypes.c_char * 128),
    ]


def build_shim(directory):
    """Compiles the shim into the directory and returns its path."""
    source, shim = pathlib.Path(__file__).with_name("shim.c"), pathlib.Path(directory) / "shim.so"
    command = ["cc", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-pthread", "-o", str(shim), str(source)]
    if subprocess.run(command).returncode != 0:
        sys.exit("scripts/faults: the shim does not compile; it needs cc on Linux")
    return shim


class Control:
    """The shared page of one process, and the variables that load the shim into it."""

    def __init__(self, shim, directory, file, log=None, more=None):
        self.shim, self.directory, self.file, self.log = shim, os.path.realpath(directory), file, log
        # Further variables of the process.
        self.more = more or {}
        file.write_bytes(bytes(4096))
        with file.open("r+b") as shared:
            self.map = mmap.mmap(shared.fileno(), 4096)
        self.page = Page.from_buffer(self.map)
        if log:
            log.write_bytes(b"")

    def variables(self):
        variables = {"LD_PRELOAD": self.shim, "FAULTS_DIR": self.directory, "FAULTS_CONTROL": self.file, **self.more}
        if self.log:
            variables["FAULTS_LOG"] = self.log
        return {name: str(value) for name, value in variables.items()}

    def arm(self, fault, at, without_search=False):
        """Fails call `at`, counted from now on. A fault that ends with "+" lasts. With 0, only counts."""
        page = self.page
        page.fault, page.lasting, page.at = FAULTS[fault.rstrip("+")], fault.endswith("+"), at
        page.count, page.fired, page.without_search = 0, 0, without_search
        page.armed = 1

    def disarm(self):
        self.page.armed = 0

    @property
    def fired(self):
        return self.page.fired > 0

    @property
    def failed(self):
        """The first failed call, and its file."""
        return self.page.failed.decode()
