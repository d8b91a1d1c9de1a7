#!/usr/bin/env python3
"""infertop beside nvitop and gpustat (and nvtop, where it is installed), on the stand-in box.

Measures what docs/performance.md states, with the same box, terminal and clock for every program:
CPU time and memory of the whole process tree, driver calls, real refresh rate, time to the first
GPUs on the screen. Prepares what it needs:

    cargo build --release --workspace
    python3 -m venv target/peers && target/peers/bin/pip install nvitop==1.7.2 gpustat==1.1.1 pyte msgpack
    target/peers/bin/python tests/bench/side_by_side.py [--seconds 60] [--only infertop]

CPU is measured on a box whose calls cost nothing, so that it is the program's own; times and rates on
one with latencies like a real driver's. Nothing here is a test: figures belong to the machine.
"""

import argparse
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import msgpack
import pyte

ROOT = Path(__file__).resolve().parents[2]
RELEASE = Path(os.environ.get("INFERTOP_RELEASE", ROOT / "target" / "release"))
PEERS = Path(sys.executable).parent
SCENARIOS = ROOT / "tests" / "gpubox" / "scenarios"
TICKS = os.sysconf("SC_CLK_TCK")


class Box:
    """A state folder, the library under its public name, and the environment for a program."""

    def __init__(self, scenario, pids=()):
        self.folder = tempfile.TemporaryDirectory(prefix="infertop-bench-")
        state = Path(self.folder.name)
        self.state = state / "state"
        self.state.mkdir()
        library = state / "lib"
        library.mkdir()
        for name in ("libnvidia-ml.so.1", "libnvidia-ml.so"):
            (library / name).symlink_to(RELEASE / "libgpubox_nvml.so")
        path = state / "scenario.toml"
        path.write_text(scenario)
        (self.state / "pids").write_text("".join(f"{pid}\n" for pid in pids))
        self.environment = {
            **os.environ,
            "GPUBOX_SCENARIO": str(path),
            "GPUBOX_STATE": str(self.state),
            "LD_LIBRARY_PATH": str(library),
            "INFERTOP_NVML_LIB": str(library / "libnvidia-ml.so.1"),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
        }

    def calls(self):
        """Driver calls so far, by symbol, from the box's own counters."""
        counts = {}
        for file in filter(Path.is_file, self.state.iterdir()):
            data = file.read_bytes()
            if not data.startswith(b"gpubox01"):
                continue
            for at in range(4096, len(data) - 127, 128):
                hashed, count = struct.unpack_from("<QQ", data, at)
                name = data[at + 16 : at + 128].split(b"\0")[0].decode()
                if hashed and name:
                    counts[name] = count
        return counts


class Running:
    """A process, `self.pid`, and everything below it."""

    def tree(self):
        """The program and everything below it."""
        parents = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    rest = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
                    parents.setdefault(int(rest[1]), []).append(int(entry))
                except (OSError, IndexError):
                    pass
        found, todo = [], [self.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            todo += parents.get(pid, [])
        return found

    def cpu_seconds(self, pids=None):
        # The scheduler's own nanoseconds; clock ticks would be too coarse.
        total = 0
        for pid in pids or self.tree():
            for task in Path(f"/proc/{pid}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9

    def pss_mib(self):
        total = 0
        for pid in self.tree():
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += int(re.search(r"^Pss:\s+(\d+)", text, re.M).group(1))
        return total / 1024


class Program(Running):
    """A program in a terminal of so many rows and columns."""

    def __init__(self, command, box, rows=40, columns=120):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.started = time.monotonic()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(command[0], command, box.environment)

    def watch(self, seconds, until=None):
        """Reads the terminal for a while, or until the screen shows what is wanted."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select([self.terminal], [], [], min(left, 0.05))
            if ready:
                try:
                    data = os.read(self.terminal, 1 << 16)
                except OSError:
                    return None
                if until is None:
                    continue
                self.stream.feed(data)
            if until and until(self.screen.display):
                return time.monotonic() - self.started
        return None

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def end(self, key="q"):
        try:
            self.type(key)
        except OSError:
            pass
        start = time.monotonic()
        while time.monotonic() - start < 5:
            self.watch(0.005)
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                os.close(self.terminal)
                return time.monotonic() - start
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)
        return None


def programs():
    found = {
        "infertop": [str(RELEASE / "infertop")],
        "nvitop": [str(PEERS / "nvitop"), "-m", "full", "--interval", "1"],
        "gpustat": [str(PEERS / "gpustat"), "-i", "1", "-cpu"],
    }
    if shutil.which("nvtop"):
        found["nvtop"] = ["nvtop", "-d", "10"]
    return found


def shows_gpus(count):
    """Whether so many lines carry a share in per cent."""
    return lambda lines: sum(bool(re.search(r"\d ?%", line)) for line in lines) >= count


def sleepers(count):
    return [subprocess.Popen(["sleep", "1000000"]) for _ in range(count)]


def bench(name):
    return (SCENARIOS / f"{name}.toml").read_text()


def gpus(scenario, count):
    return re.sub(r"count = \d+", f"count = {count}", scenario)


def costs(name, command, pids, seconds):
    box = Box(bench("bench-cheap-8"), pids)
    program = Program(command, box)
    program.watch(8)
    cpu, calls, start = program.cpu_seconds(), box.calls(), time.monotonic()
    program.watch(seconds)
    took = time.monotonic() - start
    cpu = (program.cpu_seconds() - cpu) / took
    after = box.calls()
    made = {k: v - calls.get(k, 0) for k, v in after.items() if v > calls.get(k, 0)}
    pss = program.pss_mib()
    program.end()
    rate = sum(made.values()) / took / 8
    print(f"{name:10} cpu {cpu * 100:6.2f} % of a core   PSS {pss:6.1f} MiB   "
          f"{rate:5.1f} calls a GPU and second")
    return made, took


def rates(name, command, pids, seconds):
    for count in (1, 8, 16, 64):
        box = Box(gpus(bench("bench-8"), count), pids)
        program = Program(command, box)
        first = program.watch(20, shows_gpus(min(count, 8)))
        program.watch(2)
        before, start = box.calls(), time.monotonic()
        program.watch(seconds)
        took, after = time.monotonic() - start, box.calls()
        symbol = "nvmlDeviceGetUtilizationRates"
        rate = (after.get(symbol, 0) - before.get(symbol, 0)) / count / took
        program.end()
        shown = "never" if first is None else f"{first * 1000:5.0f} ms"
        print(f"{name:10} {count:3} GPUs   on the screen after {shown}   real refresh {rate:5.3f}")


def spread(pids):
    """How far apart the cheap counters of the first and the last GPU are read, from the frames."""
    for count in (8, 64):
        box = Box(gpus(bench("bench-8"), count), pids)
        command = [str(RELEASE / "infertop"), "sampler"]
        child = subprocess.Popen(
            command, env=box.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        found = []
        for _ in range(33):
            length = struct.unpack("<I", child.stdout.read(4))[0]
            snapshot = msgpack.unpackb(child.stdout.read(length), strict_map_key=False)
            found.append(snapshot["self"]["spread_us"] / 1000)
        child.stdin.close()
        child.wait()
        found = sorted(found[3:])
        print(f"infertop   {count:3} GPUs   cheap counters apart: median {found[15]:.2f} ms, "
              f"most {found[-1]:.2f} ms of 30 ticks; last frame {length} bytes")


def quits(name, command, pids):
    box = Box(bench("hang-from-start"), pids)
    program = Program(command, box)
    program.watch(4)
    tree = program.tree()
    took = program.end()
    time.sleep(0.3)
    left = [pid for pid in tree if Path(f"/proc/{pid}").exists()]
    words = "not within 5 s" if took is None else f"{took * 1000:.0f} ms"
    print(f"{name:10} with a GPU that hangs: quits in {words}, {len(left)} processes left")


class Crowd:
    """So many idle processes that have nothing to do with a GPU."""

    def __init__(self, count):
        self.pids = []
        for _ in range(count):
            pid = os.fork()
            if pid == 0:
                while True:
                    signal.pause()
            self.pids.append(pid)

    def end(self):
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
        for pid in self.pids:
            os.waitpid(pid, 0)


def crowd(command, pids, seconds):
    for count in (0, 2_000, 10_000):
        others = Crowd(count)
        box = Box(bench("bench-cheap-8"), pids)
        program = Program(command, box)
        # One whole sweep passes before the count begins.
        program.watch(75)
        cpu, start = program.cpu_seconds(), time.monotonic()
        program.watch(seconds)
        cpu = (program.cpu_seconds() - cpu) / (time.monotonic() - start)
        program.end()
        others.end()
        print(f"infertop   with {count:6} other processes: cpu {cpu * 100:5.2f} % of a core")


def main():
    parse = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parse.add_argument("--seconds", type=float, default=60)
    parse.add_argument("--only", help="one program")
    parse.add_argument("--part", choices=["cost", "rate", "spread", "quit", "crowd"], action="append")
    options = parse.parse_args()
    parts = options.part or ["cost", "rate", "spread", "quit", "crowd"]
    chosen = {n: c for n, c in programs().items() if options.only in (None, n)}
    children = sleepers(64)
    pids = [child.pid for child in children]
    try:
        if "cost" in parts:
            for name, command in chosen.items():
                made, took = costs(name, command, pids, options.seconds)
                if name == "infertop":
                    for symbol, count in sorted(made.items(), key=lambda kv: -kv[1]):
                        print(f"           {count / took / 8:6.2f}  {symbol}")
        if "rate" in parts:
            for name, command in chosen.items():
                rates(name, command, pids, min(options.seconds, 20))
        if "spread" in parts and "infertop" in chosen:
            spread(pids)
        if "quit" in parts:
            for name, command in chosen.items():
                quits(name, command, pids)
        if "crowd" in parts and "infertop" in chosen:
            crowd(chosen["infertop"], pids, max(options.seconds, 60))
    finally:
        for child in children:
            child.kill()
            child.wait()


if __name__ == "__main__":
    main()
