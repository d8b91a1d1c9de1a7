#!/usr/bin/env python3
"""The daemon of infertop beside nvitop-exporter, on the stand-in box.

Measures what docs/performance.md states of the daemon: CPU time and memory of daemon and sampler, driver
calls, time and size of a scrape, whether many scrapes change the pace, and how the cost grows with GPUs
and with other processes. Box, clock and counting are those of side_by_side.py. Prepares what it needs:

    cargo build --release --workspace
    python3 -m venv target/peers
    target/peers/bin/pip install nvitop==1.7.2 nvitop-exporter==1.7.2 pyte msgpack
    target/peers/bin/python tests/bench/daemon.py [--seconds 60] [--only infertop] [--part cost]

CPU is measured on a box whose calls cost nothing, so that it is the program's own; the pace on one with
latencies like a real driver's. Nothing here is a test: figures belong to the machine.
"""

import argparse
import re
import signal
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from side_by_side import PEERS, RELEASE, Box, Crowd, Running, bench, gpus, sleepers

# A full sweep of the descriptors of all processes takes a minute, and the first one is dearer.
SETTLE = 75
CHEAP = "bench-cheap-8"
SLOW = "bench-8"


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Service(Running):
    """A program without a terminal that serves metrics."""

    def __init__(self, name, box):
        self.folder = tempfile.TemporaryDirectory(prefix="infertop-bench-")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/metrics"
        own = Path(self.folder.name)
        command = {
            "infertop": [
                str(RELEASE / "infertop"), "daemon", "--listen", f"127.0.0.1:{port}",
                "--state", str(own / "state"), "--socket", str(own / "socket"),
            ],
            "nvitop-exporter": [
                str(PEERS / "nvitop-exporter"), "--bind-address", "127.0.0.1",
                "--port", str(port), "--interval", "1",
            ],
        }[name]
        self.log = open(own / "log", "wb")
        self.child = subprocess.Popen(
            command, env=box.environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )
        self.pid = self.child.pid
        self.box = box
        end = time.monotonic() + 60
        while "_gpu_" not in self.scrape_or_nothing() and time.monotonic() < end:
            time.sleep(0.1)

    def scrape(self):
        # As Prometheus asks.
        accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
        request = urllib.request.Request(self.url, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()

    def scrape_or_nothing(self):
        try:
            return self.scrape().decode()
        except OSError:
            return ""

    def sample(self, name):
        found = re.search(rf"^{name} (\S+)$", self.scrape().decode(), re.M)
        return float(found.group(1)) if found else 0.0

    def end(self):
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.log.close()


class Cost:
    """What a service does in so many seconds, scraped as often as `every` says."""

    def __init__(self, service, seconds, every=15):
        parts = service.tree()
        before = [service.cpu_seconds([pid]) for pid in parts]
        calls, start = service.box.calls(), time.monotonic()
        self.scrapes = 0
        due = start + every
        while (now := time.monotonic()) < start + seconds:
            time.sleep(min(due, start + seconds) - now if due > now else 0)
            if time.monotonic() >= due:
                service.scrape()
                self.scrapes += 1
                due += every
        self.took = time.monotonic() - start
        after = [service.cpu_seconds([pid]) for pid in parts]
        self.parts = [(b - a) / self.took * 100 for a, b in zip(before, after)]
        made = service.box.calls()
        self.calls = sum(made.values()) - sum(calls.values())
        pace = "nvmlDeviceGetUtilizationRates"
        self.looks = made.get(pace, 0) - calls.get(pace, 0)

    def cpu(self):
        each = " + ".join(f"{part:.2f}" for part in self.parts)
        return f"{sum(self.parts):5.2f} % of a core ({each})"


def scrape_time(service, times=40):
    """Median and longest time, and size, of scrapes that fall anywhere between two snapshots."""
    took, size = [], 0
    for _ in range(times):
        time.sleep(0.137)
        start = time.monotonic()
        size = len(service.scrape())
        took.append((time.monotonic() - start) * 1000)
    return f"/metrics {statistics.median(took):.1f} ms, at most {max(took):.1f} ms, {size} bytes"


def end(children):
    for child in children:
        child.kill()
        child.wait()


def cost(names, pids, options):
    print("8 GPUs, 64 GPU processes, 2,000 other processes, 1 s, a scrape every 15 s")
    others = Crowd(2000)
    for name in names:
        service = Service(name, Box(bench(CHEAP), pids))
        time.sleep(options.settle)
        spent = Cost(service, options.seconds)
        print(f"{name:16} cpu {spent.cpu()}   PSS {service.pss_mib():.1f} MiB   "
              f"{spent.calls / spent.took / 8:.1f} calls a GPU and second")
        print(f"{'':16} {scrape_time(service)}")
        service.end()
    others.end()


def scrapes(names, pids, options):
    print("20 scrapes a second, calls as slow as a driver's")
    for name in names:
        service = Service(name, Box(bench(SLOW), pids))
        time.sleep(5)
        for every, words in ((1e9, "unscraped"), (0.05, "20 a second")):
            spent = Cost(service, options.seconds, every)
            print(f"{name:16} {words:12} cpu {spent.cpu()}   real refresh {spent.looks / 8 / spent.took:.3f} a "
                  f"second   {spent.scrapes / spent.took:.1f} scrapes a second")
        service.end()


def grow(names, _, options):
    print("more GPUs, 8 processes on each")
    for name in names:
        for count in (8, 16, 32, 64):
            # All of them: the stand-in looks again and again for those that are missing.
            children = sleepers(8 * count)
            pids = [child.pid for child in children]
            service = Service(name, Box(gpus(bench(SLOW), count), pids))
            time.sleep(5)
            pace = Cost(service, options.seconds)
            service.end()
            service = Service(name, Box(gpus(bench(CHEAP), count), pids))
            time.sleep(min(options.settle, 20))
            spent = Cost(service, options.seconds)
            print(f"{name:16} {count:3} GPUs   cpu {spent.cpu()}   PSS {service.pss_mib():.1f} MiB   "
                  f"real refresh {pace.looks / count / pace.took:.3f}   {scrape_time(service)}")
            service.end()
            end(children)


def crowd(names, pids, options):
    print("other processes")
    for name in names:
        for count in (0, 2000):
            others = Crowd(count)
            service = Service(name, Box(bench(CHEAP), pids))
            time.sleep(options.settle)
            spent = Cost(service, options.seconds)
            print(f"{name:16} {count:5} others   cpu {spent.cpu()}   PSS {service.pss_mib():.1f} MiB")
            service.end()
            others.end()


PARTS = {"cost": cost, "scrapes": scrapes, "grow": grow, "crowd": crowd}


def main():
    parse = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parse.add_argument("--seconds", type=float, default=60)
    parse.add_argument("--settle", type=float, default=SETTLE, help="seconds before counting begins")
    parse.add_argument("--only", choices=["infertop", "nvitop-exporter"])
    parse.add_argument("--part", choices=PARTS, action="append")
    options = parse.parse_args()
    names = [options.only] if options.only else ["infertop", "nvitop-exporter"]
    children = sleepers(64)
    pids = [child.pid for child in children]
    try:
        for part in options.part or PARTS:
            PARTS[part](names, pids, options)
    finally:
        end(children)


if __name__ == "__main__":
    main()
