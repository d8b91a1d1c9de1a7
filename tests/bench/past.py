#!/usr/bin/env python3
"""A day of snapshots pushed through the daemon at speed, then seven of them asked for their past.

Measures what docs/performance.md states of the store: bytes of a day, memory over it, and how soon a
moment, a metric and a window of seven days are answered over the socket. The week is the day seven times,
with the times beside its chunks moved. Needs curl.

    cargo build --release --workspace --examples
    python3 tests/bench/past.py [--frames 86400]
"""

import argparse
import json
import os
import random
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

RELEASE = Path(__file__).resolve().parents[2] / "target" / "release"
RELEASE = Path(os.environ.get("INFERTOP_RELEASE", RELEASE))
DAY_MS = 86_400_000


class Daemon:
    def __init__(self, folder, *flags):
        self.socket = folder / "infertop.sock"
        command = [RELEASE / "infertop", "daemon", "--state", folder, "--socket", self.socket, *flags]
        environment = {**os.environ, "INFERTOP_STORE_RAW_DAYS": "30", "INFERTOP_NVML_LIB": "/dev/null"}
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        while not self.socket.exists():
            time.sleep(0.05)
        time.sleep(1)

    def curl(self, target, *flags):
        url = f"http://infertop{target}"
        return subprocess.check_output(["curl", "-s", "--unix-socket", self.socket, *flags, url])

    def json(self, target):
        return json.loads(self.curl(target))

    def resident_kib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def times_ms(self, targets):
        flags = ["-o", "/dev/null", "-w", "%{time_total}", "-H", "accept: application/vnd.msgpack"]
        return sorted(float(self.curl(target, *flags)) * 1000 for target in targets)

    def end(self):
        self.process.terminate()
        self.process.wait()


def push(folder, frames):
    start = int(time.time() - frames) * 1000
    sampler = folder / "sampler"
    day = RELEASE / "examples" / "day"
    sampler.write_text(f'#!/bin/sh\nexec {day} --frames {frames} --start {start} "$@"\n')
    sampler.chmod(0o755)
    daemon = Daemon(folder, "--sampler-program", sampler)
    shown = -1
    while (store := daemon.json("/v1/health")["store"])["frames_kept"] < frames:
        if (step := store["frames_kept"] * 8 // frames) != shown:
            shown = step
            print(f"{store['frames_kept']:6} snapshots, {daemon.resident_kib()} KiB resident", flush=True)
        time.sleep(0.5)
    print(f"{frames:6} snapshots, {daemon.resident_kib()} KiB resident, {store['frames_lost']} lost")
    daemon.end()
    size = (folder / "infertop.db").stat().st_size
    print(f"{size} bytes on disk, {size / frames:.0f} a snapshot")


def first_varint(blob):
    value = shift = at = 0
    while True:
        byte = blob[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def make_week(file):
    store = sqlite3.connect(file)
    chunks = store.execute("SELECT from_ms, to_ms, frames, data FROM chunks ORDER BY id").fetchall()
    hours = store.execute("SELECT metric, hour, data FROM hours").fetchall()
    store.execute("DELETE FROM chunks")
    for back in range(6, -1, -1):
        for begin, end, frames, data in chunks:
            # The times of a chunk are differences from the first, which is zigzag coded.
            _, rest = first_varint(frames)
            begin, end = begin - back * DAY_MS, end - back * DAY_MS
            row = (begin, end, varint(begin << 1) + frames[rest:], data)
            store.execute("INSERT INTO chunks (from_ms, to_ms, frames, data) VALUES (?, ?, ?, ?)", row)
        for metric, hour, data in hours:
            store.execute("INSERT OR IGNORE INTO hours VALUES (?, ?, ?)", (metric, hour - back * 24, data))
    store.commit()
    store.close()


def ask(folder):
    daemon = Daemon(folder)
    span = daemon.json("/v1/span")
    begin, end = span["from_ms"], span["to_ms"]

    def say(what, targets):
        times = daemon.times_ms(targets)
        print(f"{what}: median {times[len(times) // 2]:.1f} ms, longest {times[-1]:.1f} of {len(times)}")

    def moments(count):
        return [random.randint(begin, end) for _ in range(count)]

    print(f"{(end - begin) / DAY_MS:.1f} days")
    say("a moment", [f"/v1/snapshot?at={at}" for at in moments(100)])
    say("300 snapshots before a moment", [f"/v1/window?until={at}&ticks=300" for at in moments(20)])
    for metric in ["infertop_gpu_power_draw_watts", "infertop_gpu_sm_active_ratio"]:
        say(metric, [f"/v1/history?metric={metric}&from={begin}&to={end}&step=10m"] * 7)
    daemon.end()


def main():
    parse = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parse.add_argument("--frames", type=int, default=86_400)
    frames = parse.parse_args().frames
    with tempfile.TemporaryDirectory(prefix="infertop-past-") as name:
        folder = Path(name)
        push(folder, frames)
        make_week(folder / "infertop.db")
        ask(folder)


if __name__ == "__main__":
    main()
