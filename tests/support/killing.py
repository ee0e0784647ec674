"""Processes that export, forked from a warm process, and faults in their system calls."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager

REFUSED, BROKEN = 3, 4
CREATES = re.compile(r"O_CREAT|O_WRONLY|O_RDWR|O_TMPFILE")
OPENS = ("openat", "open", "creat")
CHANGING = (
    *OPENS, "write", "pwrite64", "writev", "pwritev", "truncate", "ftruncate", "fallocate", "fsync",
    "fdatasync", "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat",
    "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "chmod", "fchmod", "fchmodat",
    "copy_file_range", "sendfile",
)  # fmt: skip
"""System calls that change files."""

# The process has all imports but no threads: one with threads cannot be forked safely.
SERVER = """
import importlib, os, pkgutil, sys, traceback
import httpx, polars, pyarrow.parquet
import beaconframes as bf
from beaconframes import client, dataset, endpoint, v1
from beaconframes import exports
from beaconframes.dataset import Dataset
from beaconframes.errors import DatasetError
from beaconframes.endpoint.chain_metadata import ChainMetadata

for package in (client, dataset, endpoint, exports, v1):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
url, data, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
facts = ChainMetadata.parse(Dataset.open(data).meta)

def work(target):
    try:
        with bf.Explorer(url, chain=facts.chain, head=facts.head, store=False) as explorer:
            bf.export(
                bf.load_balance_history, target, validators=range(30), since=0, until=last,
                explorer=explorer,
            )
    except DatasetError as error:
        with open(target + ".error", "w") as file:
            file.write(str(error))
        os._exit(REFUSED)
    except BaseException:
        with open(target + ".error", "w") as file:
            file.write(traceback.format_exc())
        os._exit(BROKEN)
    os._exit(0)

print("ready", flush=True)
for line in sys.stdin:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(reader, 1)
        work(line.rstrip("\\n"))
    os.close(reader)
    print(pid, flush=True)
    sys.stdin.readline()
    try:
        os.write(writer, b"!")
    except BrokenPipeError:
        pass  # It was killed before it began.
    os.close(writer)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
""".replace("REFUSED", str(REFUSED)).replace("BROKEN", str(BROKEN))


class Workers:
    """A process that forks for every export."""

    def __init__(self, url, data, last):
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, url, str(data), str(last)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "POLARS_MAX_THREADS": "1"},
        )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n"

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def run(self, target, meanwhile=None):
        """Export to *target* and return the status; *meanwhile* is called when it starts."""
        self._write_line(target)
        pid = int(self.process.stdout.readline())
        self._write_line("go")
        if meanwhile is not None:
            meanwhile(pid)
        return self._read_status()

    def traced(self, target, *options):
        """Export to *target* under strace with *options*, and return the status."""
        self._write_line(target)
        pid = int(self.process.stdout.readline())
        command = ["strace", "-f", "-y", "-s", "0", *options, "-p", str(pid)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
            assert "attached" in tracer.stderr.readline()
            self._write_line("go")
            status = self._read_status()
            tracer.stderr.read()
        return status

    def _write_line(self, text):
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()

    def _read_status(self):
        return int(self.process.stdout.readline())


@contextmanager
def workers(server, last):
    """Yield workers that request from *server*."""
    found = Workers(server.url, server.service.dataset.path, last)
    try:
        yield found
    finally:
        found.close()


def points(lines, target):
    """Return every call that changes something in *target*: its name, its path, its number.

    The path is the filter for strace; of a call with two paths, it is the first.
    """
    seen = Counter()
    for line in lines:
        name = re.match(r"\d+ +(\w+)\(", line)
        paths = re.findall(rf"[<\"]({re.escape(str(target))}[^>\"]*)[>\"]", line)
        if not name or not paths or "resumed>" in line:
            continue
        call = name[1]
        first = re.search(rf'"({re.escape(str(target))}[^"]*)"', line) if call in OPENS else None
        where = (call, first[1] if first else paths[0])
        seen[where] += 1
        # A file opened to read is not changed, but strace counts the call.
        if call not in OPENS or CREATES.search(line):
            yield (*where, seen[where])


def killed(status):
    return status == -signal.SIGKILL
