#!/usr/bin/env bash
# What can be learnt on a machine with an NVIDIA driver, in one run and from outside.
#
#   tests/on-gpu.sh [BINARY] [FOLDER]
#
# BINARY is target/release/infertop unless it is given; nothing is built. FOLDER is made and filled:
# a summary (summary.md), the documents it was made of, the screens. Without a driver it says so and
# ends with success. Needs bash, coreutils and python3; tmux draws the screens where it is there.
#
#   ON_GPU_SECONDS=60   how long the dashboard and the sampler run, each
#   INFERTOP_NVML_LIB   another driver library, such as the stand-in of the tests
#
# It reads only: no mode is set, no process is ended, nothing is written outside FOLDER. As root it
# runs the program once more as nobody, to see what that user may read.
set -euo pipefail

binary=${1:-target/release/infertop}
folder=${2:-on-gpu-$(date +%Y%m%dT%H%M%S)}
seconds=${ON_GPU_SECONDS:-60}

say() { printf '%s\n' "$*"; }
die() {
    printf 'error: %s\n' "$1" >&2
    printf '  help: %s\n' "$2" >&2
    exit 1
}

has_driver() {
    [[ -n ${INFERTOP_NVML_LIB:-} || -e /proc/driver/nvidia/version || -e /dev/dxg ]]
}

if ! has_driver; then
    say "skipped: no NVIDIA driver here"
    exit 0
fi
[[ -x $binary ]] || die "no program at $binary" "build it with cargo build --release, or name another one"
command -v python3 >/dev/null || die "python3 is not found" "install it; the documents are compared with it"
binary=$(realpath "$binary")
mkdir -p "$folder/screens"
folder=$(realpath "$folder")

# Runs a command and notes how it ended; a failure is a result too.
note() {
    local name=$1 code=0
    shift
    "$@" >"$folder/$name" 2>"$folder/$name.errors" || code=$?
    printf '%s\t%s\n' "$name" "$code" >>"$folder/exit-codes.tsv"
    [[ -s $folder/$name.errors ]] || rm -f "$folder/$name.errors"
}

rm -f "$folder/exit-codes.tsv"
say "one snapshot, as table and as JSON"
note once.txt "$binary" once
note once.json "$binary" once --json

say "another one after $seconds s: what calls cost, how counters move"
note later.json "$binary" once --json --after "${seconds}s"

if [[ $(id -u) == 0 ]] && command -v setpriv >/dev/null; then
    say "as nobody"
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    # The program may lie where nobody may not look.
    cp "$binary" "$copy/infertop"
    chmod 755 "$copy" "$copy/infertop"
    note nobody.json setpriv --reuid=65534 --regid=65534 --clear-groups "$copy/infertop" once --json
fi

if command -v nvidia-smi >/dev/null && [[ -z ${INFERTOP_NVML_LIB:-} ]]; then
    say "what nvidia-smi says"
    query=index,uuid,memory.total,memory.reserved,memory.used,memory.free,utilization.gpu,power.draw,temperature.gpu
    note smi-gpus.csv nvidia-smi "--query-gpu=$query" --format=csv,noheader,nounits
    note smi-processes.csv nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv,noheader,nounits
    note smi-full.txt nvidia-smi -q
    # Closest in time to nvidia-smi's own answers.
    note beside-smi.json "$binary" once --json
fi

panels=(overview memory processes bus host gpu about)
each=$((seconds / ${#panels[@]}))
((each > 0)) || each=1

screens_in_tmux() {
    local session="on-gpu-$$" number=0 panel
    tmux -L "$session" -f /dev/null new-session -d -s "$session" -x 80 -y 24 "$binary"
    for panel in "${panels[@]}"; do
        number=$((number + 1))
        tmux -L "$session" send-keys -t "$session" "$number"
        sleep "$each"
        tmux -L "$session" capture-pane -p -t "$session" >"$folder/screens/$number-$panel.txt" || return 0
    done
    tmux -L "$session" resize-window -t "$session" -x 200 -y 50
    tmux -L "$session" send-keys -t "$session" 1
    sleep 2
    tmux -L "$session" capture-pane -p -t "$session" >"$folder/screens/1-overview-200x50.txt" || true
    tmux -L "$session" send-keys -t "$session" q
    sleep 1
    tmux -L "$session" kill-server 2>/dev/null || true
}

# Without tmux: what was written to the terminal, to be looked at with cat.
screens_in_python() {
    python3 - "$binary" "$folder/screens" "$each" "${panels[@]}" <<'PYTHON'
import fcntl, os, pty, select, struct, sys, termios, time

binary, folder, each, panels = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4:]
child, terminal = pty.fork()
if child == 0:
    os.environ.setdefault("TERM", "xterm-256color")
    os.execv(binary, [binary])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))


def listen(seconds):
    """Everything that is written within so many seconds, or until the end."""
    written, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:
                break
            if not part:
                break
            written += part
    return written


listen(1)
for number, panel in enumerate(panels, 1):
    os.write(terminal, str(number).encode())
    with open(f"{folder}/{number}-{panel}.raw", "wb") as file:
        file.write(listen(each))
begin = time.monotonic()
os.write(terminal, b"q")
listen(10)
os.waitpid(child, 0)
with open(f"{folder}/quit-ms.txt", "w") as file:
    file.write(f"{(time.monotonic() - begin) * 1000:.0f}\n")
PYTHON
}

say "the dashboard for $seconds s"
if command -v tmux >/dev/null; then
    screens_in_tmux
    # What is left is how long it takes to leave.
    each=0.2
fi
screens_in_python

say "the summary"
python3 - "$folder" "$seconds" <<'PYTHON'
import csv, json, os, sys

folder, seconds = sys.argv[1], sys.argv[2]
lines = []


def put(text=""):
    lines.append(text)


def path(name):
    return os.path.join(folder, name)


def read(name):
    try:
        with open(path(name)) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def rows(name):
    try:
        with open(path(name)) as file:
            return [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    except OSError:
        return None


def pick(subject, dotted):
    """The value at a path, or the reason for its absence in words."""
    value = subject
    for key in dotted.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if value is None:
        return f"absent: {subject.get('absent', {}).get(dotted, 'no such key')}"
    return value


def table(heads, body):
    put("| " + " | ".join(heads) + " |")
    put("|" + " --- |" * len(heads))
    for row in body:
        put("| " + " | ".join(str(cell) for cell in row) + " |")
    put()


def mib(value):
    return f"{value / 2**20:.0f}" if isinstance(value, (int, float)) else value


def label(gpu):
    mig = gpu.get("mig")
    return gpu["index"] if not mig else f"{gpu['index']} {gpu['uuid']}"


once, later, nobody = read("once.json"), read("later.json"), read("nobody.json")
document = later or once
if not document:
    sys.exit("error: infertop once --json gave no document\n  help: look at once.json.errors in " + folder)
gpus, driver = document["gpus"], document["driver"]

put("# On a GPU")
put()
put(f"Made by tests/on-gpu.sh, {seconds} s each for the dashboard and the sampler.")
put()
table(
    ["what", "answer"],
    [
        ["GPUs", ", ".join(sorted({str(pick(gpu, "name")) for gpu in gpus})) + f" ({len(gpus)} rows)"],
        ["module", pick(driver, "module_version")],
        ["flavour", pick(driver, "module_flavour")],
        ["library", f"{pick(driver, 'version')} ({pick(driver, 'library_path')})"],
        ["NVML", pick(driver, "nvml_version")],
        ["CUDA", pick(driver, "cuda_version")],
        ["session", driver["session"]["state"]],
        ["problem", (driver.get("problem") or {}).get("cause", "none")],
        ["kernel", pick(document["host"], "kernel")],
        ["profiling for root only", pick(driver, "profiling_admin_only")],
    ],
)
put("Exit codes: " + ", ".join(": ".join(row) for row in (
    line.rstrip("\n").split("\t") for line in open(path("exit-codes.tsv")))))
put()

put("## What is wrong, by itself")
put()
for finding in document["findings"]:
    put(f"- {finding['cause']}: {finding['title']}")
if not document["findings"]:
    put("- nothing")
put()

put("## Memory, MiB")
put()
beside, smi = read("beside-smi.json"), rows("smi-gpus.csv")
told = {row[1]: row for row in smi or []}
body = []
for gpu in (beside or document)["gpus"]:
    memory = [pick(gpu, f"memory.{key}_bytes") for key in ("total", "reserved", "used", "free", "unattributed")]
    other = told.get(gpu.get("uuid"))
    differs = "nvidia-smi was not asked"
    if other:
        names = ("total", "reserved", "used", "free")
        pairs = [(name, memory[at], other[2 + at]) for at, name in enumerate(names)]
        wrong = [f"{name}: {mib(ours)} against {theirs}" for name, ours, theirs in pairs
                 if not isinstance(ours, int) or not theirs.isdigit() or abs(ours / 2**20 - int(theirs)) > 2]
        differs = "; ".join(wrong) or "the same as nvidia-smi's"
    elif smi:
        differs = "nvidia-smi does not list it"
    body.append([label(gpu), *map(mib, memory), differs])
table(["GPU", "total", "reserved", "used", "free", "nobody's", "compared"], body)

put("## Processes")
put()
source = beside or document
ours = {(row["pid"], row["gpu_index"]): row for row in source["processes"] if row.get("gpu_index") is not None}
index_of = {gpu.get("uuid"): gpu["index"] for gpu in source["gpus"]}
apps = rows("smi-processes.csv")
if apps is not None:
    theirs = {(int(row[1]), index_of.get(row[0])): row[2] for row in apps if len(row) == 3 and row[1].isdigit()}
    only_theirs = [key for key in theirs if key not in ours]
    compute = [key for key, row in ours.items() if "compute" in str(row.get("kind"))]
    only_ours = [key for key in compute if key not in theirs]
    put(f"nvidia-smi lists {len(theirs)}, here {len(compute)} of kind compute; "
        f"only there: {only_theirs or 'none'}; only here: {only_ours or 'none'} (pid, GPU)")
    put()
body = []
for row in source["processes"]:
    node = f"nvidia{row.get('gpu_index')}"
    count = lambda key: (
        {one["node"]: one["count"] for one in row[key]} if isinstance(row.get(key), list) else pick(row, key))
    files, maps = count("device_files"), count("device_maps")
    share = theirs.get((row["pid"], row.get("gpu_index")), "") if apps is not None else ""
    body.append([row["pid"], row.get("gpu_index"), row.get("kind", ""), mib(pick(row, "gpu_bytes")), share,
                 str(pick(row, "command"))[:40].replace("|", "/"), files, maps, node])
table(["pid", "GPU", "kind", "MiB", "nvidia-smi", "command", "descriptors", "mappings", "its node"], body)

put("## GPM, and L2 through metrics 160 to 165")
put()
L2 = ["l2_host_hit_ratio", "l2_host_miss_ratio", "l2_peer_hit_ratio", "l2_peer_miss_ratio",
      "l2_dram_hit_ratio", "l2_dram_miss_ratio"]
body = []
for gpu in gpus:
    body.append([label(gpu), pick(gpu, "gpm.supported"), pick(gpu, "gpm.sm_active_ratio"),
                 *[pick(gpu, f"gpm.{key}") for key in L2]])
table(["GPU", "supported", "SM active", *L2], body)
if nobody:
    for gpu in nobody["gpus"][:1]:
        put(f"As nobody, GPU {gpu['index']}: supported {pick(gpu, 'gpm.supported')}, "
            f"SM active {pick(gpu, 'gpm.sm_active_ratio')}, DRAM {pick(gpu, 'gpm.dram_bandwidth_ratio')}; "
            f"problem {(nobody['driver'].get('problem') or {}).get('cause', 'none')}")
else:
    put("Nobody was not asked: not run as root, or without setpriv.")
put()

put("## PCIe byte counters, fields 197 and 198")
put()
body = []
for gpu in gpus:
    first = next((one for one in (once or {}).get("gpus", []) if one.get("uuid") == gpu.get("uuid")), None)
    for field, key in ((197, "tx"), (198, "rx")):
        now = pick(gpu, f"pcie.{key}_bytes_total")
        before = pick(first, f"pcie.{key}_bytes_total") if first else "not read"
        judged = "not both were read"
        if isinstance(now, int) and isinstance(before, int):
            judged = "rose" if now > before else "the same" if now == before else "fell: it has wrapped or was reset"
            if max(now, before) < 2**32:
                judged += ", below 2^32"
        body.append([label(gpu), field, before, now, judged,
                     pick(gpu, f"pcie.{key}_bytes_per_second"), pick(gpu, "pcie.rate_source")])
table(["GPU", "field", "first", f"{seconds} s later", "judged", "rate, B/s", "rate from"], body)

put("## Temperatures")
put()
table(
    ["GPU", "core", "memory", "margin (its sign!)", "slowdown", "slowdown margin", "shutdown margin"],
    [[label(gpu), *[pick(gpu, f"temperature.{key}_celsius") for key in
      ("gpu", "memory", "margin", "slowdown", "slowdown_margin", "shutdown_margin")]] for gpu in gpus],
)

put("## What looking costs")
put()
cost = document["self"]
table(["call", "count", "mean, µs", "longest, µs"],
      [[call["call"], call["count"], f"{call['mean_us']:.1f}", call["max_us"]] for call in cost["calls"]])
put(f"{cost['nvml_calls_total']} calls in all, {cost['nvml_seconds_total']:.3f} s inside them; "
    f"{cost['nvml_calls_per_gpu']} in the last interval for the GPU that had the most; "
    f"{pick(cost, 'cpu_ratio')} of one core, {mib(pick(cost, 'rss_bytes'))} MiB; "
    f"GPUs read {cost['spread_us']} µs apart; {cost['dropped_values_total']} values dropped")
put()
table(["source", "last read, µs", "why it gave nothing"],
      [[one["name"], one["took_us"], one["absent"] or ""] for one in cost["sources"]])

put("## What this box does not tell")
put()
absent = {}
for gpu in gpus:
    for key, why in gpu["absent"].items():
        absent.setdefault((key, why), []).append(label(gpu))
table(["reading", "why", "GPUs"],
      [[key, why, "all" if len(who) == len(gpus) else who] for (key, why), who in sorted(absent.items())])

put("## Screens")
put()
screens = sorted(os.listdir(path("screens")))
put(", ".join(screens) or "none")
quit_ms = path("screens/quit-ms.txt")
if os.path.exists(quit_ms):
    put()
    put(f"q took {open(quit_ms).read().strip()} ms.")
put()
put("Not told from outside: whether one wedged GPU blocks calls about the others, and the value types of "
    "the T.Limit fields.")

with open(path("summary.md"), "w") as file:
    file.write("\n".join(lines) + "\n")
PYTHON
say "done: $folder/summary.md"
