#!/usr/bin/env python3
"""Writes the recorded machines below this folder.

    python3 tests/machines/make.py            writes every machine anew
    python3 tests/machines/make.py --check    only says whether what is here differs; exit 1 if so

The machines are in `boxes.py`, one function each; this file knows how the kernel and the driver
write what a box says about itself. Files of one machine:

    machine.toml     title, where the figures come from, what is not recorded, and how to run it
    scenario.toml    for the stand-in NVML library; missing where no library can answer
    proc/ sys/ root/ parts of procfs, sysfs and the root file system, as they are read

The same input gives the same bytes: nothing here asks the clock, the machine or a random source.
Everything shown happens at or before NOW; panels are drawn as of that moment.
"""

import datetime
import hashlib
import os
import shutil
import sys
import tempfile

NOW = datetime.datetime(2026, 12, 1, 3, 12, 7, tzinfo=datetime.timezone.utc)
NVIDIA_MAJOR, UVM_MAJOR, CAPS_MAJOR = 195, 510, 235
GENERATION_SPEED = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}
SXM_BUSES = ["19", "3b", "4c", "5d", "9b", "bb", "cb", "db"]


def digest(*words):
    return hashlib.sha256("/".join(str(word) for word in words).encode()).hexdigest()


def uuid(prefix, *words):
    h = digest(*words)
    text = f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:32]}"
    return f"{prefix}-{text}" if prefix else text


def mib(gib):
    return round(gib * 1024)


class Gpu:
    """One GPU as the driver, the bus and the scenario know it."""

    def __init__(self, box, index, model, name, device, bus, **keys):
        self.index, self.model, self.name, self.device = index, model, name, device
        self.bus = bus  # 0000:19:00.0
        self.uuid = uuid("GPU", box.name, index)
        self.minor = index
        self.vbios = keys.pop("vbios", "96.00.a5.00.01")
        self.link = keys.pop("link", (5, 16))
        self.max_link = keys.pop("max_link", self.link)
        self.numa = keys.pop("numa", -1)
        self.cpus = keys.pop("cpus", "0-127")
        self.pci_class = keys.pop("pci_class", "0x030200")
        self.driver = keys.pop("driver", "nvidia")
        self.on_bus = keys.pop("on_bus", True)
        self.aer = keys.pop("aer", 0)
        self.firmware = keys.pop("firmware", True)
        self.keys = keys  # further keys of the scenario's [[gpu]]
        self.mig = []

    def scenario_bus(self):
        domain, rest = self.bus.split(":", 1)
        return f"{int(domain, 16):08X}:{rest.upper()}"


class Box:
    def __init__(self, name, **about):
        self.name = name
        self.about = about
        self.files = {}
        self.links = {}
        self.binary = {}
        self.gpus = []
        self.scenario_processes = []
        self.scenario_box = {}
        self.scenario_faults = []
        self.secrets = []
        self.driver = None
        self.pids = []
        self.scenario_clock = 100

    # files -----------------------------------------------------------------------------------

    def write(self, path, text):
        assert path not in self.files, path
        self.files[path] = text

    def link(self, path, target):
        assert path not in self.links, path
        self.links[path] = target

    # the host --------------------------------------------------------------------------------

    def host(self, hostname, kernel, os_name, cpus, nodes, memory_gib, available_gib, cpu_model,
             uptime_days=41.0, load="3.12 2.98 2.71", processes="2/2147 61990", swap_gib=0.0,
             users=(), arch="x86_64", hugepages=True):
        self.hostname, self.kernel, self.arch = hostname, kernel, arch
        self.cpus, self.nodes = cpus, nodes
        uptime = int(uptime_days * 86400)
        self.boot = int(NOW.timestamp()) - uptime
        total, available = int(memory_gib * 2**20), int(available_gib * 2**20)
        busy = uptime * cpus * 100 // 12
        idle = uptime * cpus * 100 - busy
        self.write("proc/stat", f"cpu  {busy * 7 // 8} 0 {busy // 8} {idle} {idle // 900} 0 {busy // 400} 0 0 0\n"
                   f"intr 0\nctxt 91827364\nbtime {self.boot}\nprocesses 2147483\nprocs_running 3\nprocs_blocked 0\n")
        cached = (total - available) // 3 + available // 2
        self.write("proc/meminfo", "".join(f"{key + ':':<16}{value:>8} kB\n" for key, value in [
            ("MemTotal", total), ("MemFree", available // 2), ("MemAvailable", available),
            ("Buffers", 418240), ("Cached", cached // 2), ("SwapCached", 0),
            ("Shmem", total // 40), ("SwapTotal", int(swap_gib * 2**20)),
            ("SwapFree", int(swap_gib * 2**20))]))
        self.write("proc/loadavg", f"{load} {processes}\n")
        self.write("proc/uptime", f"{uptime}.25 {idle // 100}.10\n")
        if arch == "x86_64":
            self.write("proc/cpuinfo", f"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: {cpu_model}\n"
                       if "Intel" in cpu_model or "INTEL" in cpu_model else
                       f"processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: {cpu_model}\n")
        else:
            self.write("proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 2000.00\nCPU implementer\t: 0x41\n"
                       "CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd87\nCPU revision\t: 1\n")
        self.write("proc/sys/kernel/hostname", hostname + "\n")
        self.write("proc/sys/kernel/osrelease", kernel + "\n")
        self.write("proc/sys/kernel/random/boot_id", uuid("", self.name, "boot") + "\n")
        self.write("root/etc/os-release", f'PRETTY_NAME="{os_name}"\nNAME="{os_name.split()[0]}"\n')
        passwd = [("root", 0, "/root"), ("daemon", 1, "/usr/sbin")] + list(users)
        self.write("root/etc/passwd", "".join(f"{u}:x:{n}:{n}::{home}:/bin/sh\n" for u, n, home in passwd))
        self.write("root/etc/group", "root:x:0:\nadm:x:4:\nvideo:x:44:\n")
        self.write("sys/devices/system/cpu/online", f"0-{cpus - 1}\n")
        for node in range(nodes):
            low, high = cpus * node // nodes, cpus * (node + 1) // nodes - 1
            base = f"sys/devices/system/node/node{node}"
            self.write(f"{base}/cpulist", f"{low}-{high}\n")
            self.write(f"{base}/meminfo", f"Node {node} MemTotal:       {total // nodes} kB\n"
                       f"Node {node} MemFree:        {available // 2 // nodes} kB\n")
        if hugepages:
            for size in (2048, 1048576):
                folder = f"sys/kernel/mm/hugepages/hugepages-{size}kB"
                self.write(f"{folder}/nr_hugepages", "0\n")
                self.write(f"{folder}/free_hugepages", "0\n")
            self.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")

    def node_of(self, index, count):
        return index * self.nodes // max(count, 1)

    def local_cpus(self, node):
        return f"{self.cpus * node // self.nodes}-{self.cpus * (node + 1) // self.nodes - 1}"

    # the driver ------------------------------------------------------------------------------

    def module(self, version, flavour="proprietary", library=None, refcnt=120, gsp=18,
               modules=("nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia"), admin_only=1,
               nodes=True):
        """The kernel module, loaded; `library` is the version on disk where it differs."""
        self.driver = version
        self.scenario_box.setdefault("driver_branch", f"r{version.split('.')[0]}_00")
        arch = "x86_64" if self.arch == "x86_64" else "aarch64"
        built = "Release Build  (dvs-builder@U22-I3-G01-1-1)  Thu Nov  6 08:24:51 UTC 2025"
        if flavour == "open":
            line = f"NVRM version: NVIDIA UNIX Open Kernel Module for {arch}  {version}  {built}\n"
        else:
            line = f"NVRM version: NVIDIA UNIX {arch} Kernel Module  {version}  Thu Nov  6 08:24:51 UTC 2025\n"
        self.write("proc/driver/nvidia/version", line + "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n")
        self.write("proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nRmLogonRC: 1\nModifyDeviceFiles: 1\n"
                   "DeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\nInitializeSystemMemoryAllocations: 1\n"
                   "UsePageAttributeTable: 4294967295\nEnableMSI: 1\nEnablePCIeGen3: 0\nMemoryPoolSize: 0\n"
                   f"RmProfilingAdminOnly: {admin_only}\nPreserveVideoMemoryAllocations: 0\nDynamicPowerManagement: 3\n"
                   f"EnableGpuFirmware: {gsp}\nEnableResizableBar: 0\nOpenRmEnableUnsupportedGpus: 1\n"
                   'ImexChannelCount: 2048\nRegistryDwords: ""\nRmMsg: ""\nExcludedGpus: ""\n')
        self.write("sys/module/nvidia/version", version + "\n")
        self.write("sys/module/nvidia/refcnt", f"{refcnt}\n")
        self.write("sys/module/nvidia/initstate", "live\n")
        users = {"nvidia_uvm": "-", "nvidia_drm": "-", "nvidia_modeset": "nvidia_drm,",
                 "nvidia": "nvidia_uvm,nvidia_modeset,"}
        self.write("proc/modules", "".join(
            f"{m} {900000 + len(m)} {refcnt if m == 'nvidia' else 2} {users.get(m, '-')} Live 0x0000000000000000 (POE)\n"
            for m in modules))
        self.write("proc/devices", f"Character devices:\n  1 mem\n{NVIDIA_MAJOR} nvidia\n{NVIDIA_MAJOR} nvidia-modeset\n"
                   f"{NVIDIA_MAJOR} nvidiactl\n{CAPS_MAJOR} nvidia-caps\n{UVM_MAJOR} nvidia-uvm\n\nBlock devices:\n259 blkext\n")
        self.library(library or version)
        if nodes:
            for node in ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"]:
                self.write(f"root/dev/{node}", "")

    def library(self, version):
        folder = f"root/usr/lib/{self.arch}-linux-gnu"
        self.write(f"{folder}/libnvidia-ml.so.{version}", "")
        self.link(f"{folder}/libnvidia-ml.so.1", f"libnvidia-ml.so.{version}")
        self.link(f"{folder}/libnvidia-ml.so", "libnvidia-ml.so.1")
        self.scenario_box.setdefault("driver_version", version)

    def gpu(self, *args, **keys):
        gpu = Gpu(self, len(self.gpus), *args, **keys)
        self.gpus.append(gpu)
        self.pci(gpu.bus, gpu.pci_class, "0x10de", gpu.device, gpu.driver, gpu)
        if self.driver and gpu.driver == "nvidia":
            irq = 180 + gpu.index * 7
            firmware = self.driver if gpu.firmware else "N/A"
            self.write(f"proc/driver/nvidia/gpus/{gpu.bus}/information",
                       f"Model: \t\t {gpu.name}\nIRQ:   \t\t {irq}\nGPU UUID: \t {gpu.uuid}\nVideo BIOS: \t {gpu.vbios}\n"
                       f"Bus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\nBus Location: \t {gpu.bus}\n"
                       f"Device Minor: \t {gpu.minor}\nGPU Firmware: \t {firmware}\nGPU Excluded:\t No\n")
            if "root/dev/nvidiactl" in self.files:
                self.write(f"root/dev/nvidia{gpu.minor}", "")
        return gpu

    def pci(self, bus, pci_class, vendor, device, driver="", gpu=None):
        folder = f"sys/bus/pci/devices/{bus}"
        self.write(f"{folder}/class", pci_class + "\n")
        self.write(f"{folder}/vendor", vendor + "\n")
        self.write(f"{folder}/device", device + "\n")
        if driver:
            self.link(f"{folder}/driver", f"../../../bus/pci/drivers/{driver}")
        if gpu is None:
            return
        ids = bytes.fromhex(vendor[4:] + vendor[2:4] + device[4:] + device[2:4])
        self.binary[f"{folder}/config"] = (ids + bytes(60)) if gpu.on_bus else bytes([0xff] * 64)
        speed = lambda generation: f"{GENERATION_SPEED[generation]} GT/s PCIe\n"
        now = (speed(gpu.link[0]), f"{gpu.link[1]}\n") if gpu.on_bus else ("Unknown\n", "63\n")
        self.write(f"{folder}/current_link_speed", now[0])
        self.write(f"{folder}/current_link_width", now[1])
        self.write(f"{folder}/max_link_speed", speed(gpu.max_link[0]))
        self.write(f"{folder}/max_link_width", f"{gpu.max_link[1]}\n")
        self.write(f"{folder}/numa_node", f"{gpu.numa}\n")
        self.write(f"{folder}/local_cpulist", gpu.cpus + "\n")
        self.write(f"{folder}/power/runtime_status", "active\n")
        self.write(f"{folder}/aer_dev_correctable",
                   f"RxErr {gpu.aer}\nBadTLP 0\nBadDLLP 0\nRollover 0\nTimeout 0\nNonFatalErr 0\n"
                   f"CorrIntErr 0\nHeaderOF 0\nTOTAL_ERR_COR {gpu.aer}\n")
        for kind in ("nonfatal", "fatal"):
            self.write(f"{folder}/aer_dev_{kind}", f"Undefined 0\nDLP 0\nSDES 0\nTLP 0\nTOTAL_ERR_{kind.upper()} 0\n")

    def kernel_log(self, lines):
        """(seconds before NOW, text) pairs."""
        out = ""
        for before, text in lines:
            at = (NOW - datetime.timedelta(seconds=before)).strftime("%Y-%m-%dT%H:%M:%S.%f+00:00")
            uptime = int(NOW.timestamp()) - before - self.boot
            out += f"{at} {self.hostname} kernel: [{uptime}.104223] {text}\n"
        self.write("root/var/log/kern.log", out)

    # processes -------------------------------------------------------------------------------

    def process(self, pid, comm, argv, parent=1, state="S", uid=0, cgroup="/init.scope",
                inner=None, rss_gib=0.1, threads=8, started=3600.0, cpu_seconds=100.0, fds=(),
                libraries=(), device_maps=(), ports=(), net="4026531840", wchan="0", kernel=False,
                padded=False, children=None, pid_namespace=None, pinned_gib=0.0):
        """One folder below proc. `started` is in seconds before NOW."""
        self.pids.append(pid)
        base = f"proc/{pid}"
        comm = comm[:15]
        ticks = int((NOW.timestamp() - started - self.boot) * 100)
        flags = 0x208040 if kernel else 0x400100
        pages = 0 if state == "Z" or kernel else int(rss_gib * 2**18)
        size = 0 if kernel else int(rss_gib * 2**30) + 2**36
        user, system = int(cpu_seconds * 90), int(cpu_seconds * 10)
        self.write(f"{base}/stat", f"{pid} ({comm}) {state} {parent} {pid} {pid} 0 -1 {flags} 81234 0 12 0 {user} {system} 0 0 "
                   f"20 0 {threads} 0 {ticks} {size} {pages} 18446744073709551615 0 0 0 0 0 0 0 16781312 0 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0\n")
        self.write(f"{base}/comm", comm + "\n")
        numbers = "\t".join(str(n) for n in [pid] + ([inner] if inner else []))
        words = {"S": "sleeping", "D": "disk sleep", "R": "running", "Z": "zombie"}[state]
        memory = "" if kernel or state == "Z" else (
            f"VmPeak:\t{size // 1024} kB\nVmLck:\t       0 kB\nVmPin:\t{int(pinned_gib * 2**20)} kB\n"
            f"VmRSS:\t{pages * 4} kB\nVmSwap:\t       0 kB\n")
        self.write(f"{base}/status", f"Name:\t{comm}\nUmask:\t0022\nState:\t{state} ({words})\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t{parent}\n"
                   f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t{uid}\t{uid}\t{uid}\t{uid}\nNStgid:\t{numbers}\nNSpid:\t{numbers}\n{memory}Threads:\t{threads}\n")
        self.write(f"{base}/cgroup", f"0::{cgroup}\n")
        if kernel:
            self.write(f"{base}/cmdline", "")
            return
        words = argv.split(" ") if isinstance(argv, str) else argv
        # A title is one string over the old arguments; what is left of those is blanked.
        line = "\0".join(words) + ("\0" * 41 if padded else "\0")
        self.write(f"{base}/cmdline", line)
        self.write(f"{base}/wchan", wchan)
        self.link(f"{base}/ns/net", f"net:[{net}]")
        self.link(f"{base}/ns/pid", f"pid:[{pid_namespace or (4026532900 if inner else 4026531836)}]")
        targets = ["/dev/null", "pipe:[818231]", "pipe:[818232]"] + list(fds)
        table = ""
        for at, port in enumerate(ports):
            inode = pid * 10 + at
            targets.append(f"socket:[{inode}]")
            table += (f"{at:>4}: 00000000:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 "
                      f"{uid:>5}        0 {inode} 1 0000000000000000 100 0 0 10 0\n")
        if ports or any(target.startswith("socket") for target in targets):
            heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
            self.write(f"{base}/net/tcp", heading + table)
        for fd, target in enumerate(targets):
            self.link(f"{base}/fd/{fd}", target)
        self.write(f"{base}/maps", maps(device_maps, libraries))

    def cuda_process(self, pid, comm, argv, gpus, extra_libraries=(), driver=None, deleted=False,
                     caps=(), **keys):
        """A process with a CUDA context on these GPUs (indices)."""
        minors = [self.gpus[i].minor for i in gpus]
        fds = ["/dev/nvidiactl", "/dev/nvidia-uvm"] + [f"/dev/nvidia-caps/nvidia-cap{c}" for c in caps]
        device_maps = ["nvidiactl"] * 3
        for minor in minors:
            fds += [f"/dev/nvidia{minor}"] * 4
            device_maps += [f"nvidia{minor}"] * 3
        folder = f"/usr/lib/{self.arch}-linux-gnu"
        gone = " (deleted)" if deleted else ""
        libraries = [f"{folder}/libcuda.so.{driver or self.driver}{gone}"] + list(extra_libraries)
        self.process(pid, comm, argv, fds=fds, libraries=libraries,
                     device_maps=device_maps + ["nvidia-uvm"], **keys)

    def holds(self, gpu, pid, gib, **keys):
        """What the driver says that a process holds; `gpu` an index or a list of them."""
        entry = {"gpu": gpu, "pid": pid, "bytes": gib if isinstance(gib, str) else f"{mib(gib)}MiB"}
        entry.update(keys)
        self.scenario_processes.append(entry)

    def init(self, name="systemd"):
        """Process 1, the kernel's 2, and ourselves."""
        self.process(1, name, "/sbin/init", parent=0, rss_gib=0.012, threads=1, started=NOW.timestamp() - self.boot)
        self.process(2, "kthreadd", "", parent=0, kernel=True, threads=1, started=NOW.timestamp() - self.boot)
        self.ourselves(61990)

    def ourselves(self, pid, pid_namespace="4026531836", cgroup_namespace="4026531835"):
        self.process(pid, "infertop", "infertop sampler", parent=1, rss_gib=0.01, threads=4,
                     cgroup="/user.slice/user-1000.slice/session-4.scope" if cgroup_namespace == "4026531835" else "/",
                     started=2.0, cpu_seconds=0.1, pid_namespace=pid_namespace)
        self.link("proc/self", str(pid))
        self.link(f"proc/{pid}/ns/cgroup", f"cgroup:[{cgroup_namespace}]")

    def container(self, key, name):
        """A Docker container: its id, its control group, and the file that knows its name."""
        identity = digest(self.name, key)
        self.write(f"root/var/lib/docker/containers/{identity}/config.v2.json",
                   f'{{"ID":"{identity}","Name":"/{name}","Driver":"overlay2"}}')
        return f"/system.slice/docker-{identity}.scope"

    # output ----------------------------------------------------------------------------------

    def scenario(self):
        if self.driver is None and not self.scenario_box:
            return None
        out = "# Written by make.py; see machine.toml.\n[box]\n"
        box = {"numa_nodes": self.nodes, "cpus": self.cpus, **self.scenario_box}
        out += "".join(f"{key} = {toml(value)}\n" for key, value in box.items())
        for gpu in self.gpus:
            out += f'\n[[gpu]]\nmodel = {toml(gpu.model)}\nuuid = "{gpu.uuid}"\npci_bus_id = "{gpu.scenario_bus()}"\n'
            out += "".join(f"{key} = {toml(value)}\n" for key, value in gpu.keys.items())
            for instance in gpu.mig:
                out += "\n[[gpu.mig]]\n" + "".join(f"{k} = {toml(v)}\n" for k, v in instance.items())
        for entry in self.scenario_processes:
            out += "\n[[process]]\n" + "".join(f"{k} = {toml(v)}\n" for k, v in entry.items())
        for entry in self.scenario_faults:
            out += "\n[[fault]]\n" + "".join(f"{k} = {toml(v)}\n" for k, v in entry.items())
        return out

    def finish(self):
        about = dict(self.about)
        about["clock"] = self.scenario_clock
        if self.secrets:
            about["secrets"] = self.secrets
        text = "# Written by make.py.\n" + "".join(f"{key} = {toml(value)}\n" for key, value in about.items())
        self.write("machine.toml", text)
        scenario = self.scenario()
        if scenario:
            self.write("scenario.toml", scenario)
        return self

    def save(self, below):
        folder = os.path.join(below, self.name)
        for path, text in self.files.items():
            self.save_one(folder, path, text.encode())
        for path, data in self.binary.items():
            self.save_one(folder, path, data)
        for path, target in self.links.items():
            full = os.path.join(folder, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            os.symlink(target, full)

    @staticmethod
    def save_one(folder, path, data):
        full = os.path.join(folder, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            file.write(data)


def maps(devices, libraries):
    """An excerpt of a listing of mappings: code, heap, the driver's nodes, its libraries."""
    lines, address = ["5588e1200000-5588e1201000 r-xp 00000000 fd:01 131110 /usr/bin/python3.12"], 0x200000000
    for node in devices:
        size = 0x10000 if node[-1].isdigit() else 0x200000
        lines.append(f"{address:x}-{address + size:x} rw-s 00000000 00:06 640 /dev/{node}")
        lines.append(f"{address + size:x}-{address + 2 * size:x} ---p 00000000 00:00 0 ")
        address += 2 * size
    address = 0x7f1200000000
    for path in libraries:
        for bits in ("r-xp", "r--p", "rw-p"):
            lines.append(f"{address:x}-{address + 0x1000:x} {bits} 00000000 fd:01 262200 {path}")
            address += 0x1000
        address += 0x100000
    lines.append("7ffd11000000-7ffd11021000 rw-p 00000000 00:00 0 [stack]")
    return "\n".join(lines) + "\n"


def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"""\n' + value + '"""' if "\n" in value else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + " }"
    return str(value)


def listing(folder):
    """Every file and link below a folder with its content."""
    found = {}
    for base, folders, files in os.walk(folder):
        for name in files + [f for f in folders if os.path.islink(os.path.join(base, f))]:
            path = os.path.join(base, name)
            if os.path.islink(path):
                content = "-> " + os.readlink(path)
            else:
                with open(path, "rb") as file:
                    content = file.read()
            found[os.path.relpath(path, folder)] = content
    return found


def main():
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.modules["make"] = sys.modules["__main__"]
    import boxes

    here = os.path.dirname(os.path.abspath(__file__))
    made = [make().finish() for make in boxes.BOXES]
    if "--check" in sys.argv:
        with tempfile.TemporaryDirectory() as folder:
            stale = []
            for box in made:
                box.save(folder)
                fresh, kept = listing(os.path.join(folder, box.name)), listing(os.path.join(here, box.name))
                stale += [f"{box.name}/{p}" for p in sorted(fresh.keys() | kept.keys()) if fresh.get(p) != kept.get(p)]
        for path in stale[:20]:
            print("differs:", path)
        sys.exit(1 if stale else 0)
    for box in made:
        shutil.rmtree(os.path.join(here, box.name), ignore_errors=True)
        box.save(here)


if __name__ == "__main__":
    main()
