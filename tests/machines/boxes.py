"""The machines: one function each, in the order in which one would read them.

Figures of H100, H200 (whole and in instances), L40S and RTX 4080 class parts come from published
nvidia-smi captures of drivers 590 to 610, the others from data sheets. What processes look like
(titles, short names cut to 15 bytes, who is whose child) follows what the engines' own start-up
does. Keys that look like secrets are made up; no output may show them.
"""

from make import SXM_BUSES, Box, digest, mib

CAPTURE = "idle and load figures: nvidia-smi captures of this part; processes and files: constructed"
SHEET = "figures: data sheet of this part; processes and files: constructed"
MADE = "constructed"
NOT = ("descriptors other than device nodes and listening sockets, most mappings, threads, "
       "environments, everything else that runs on the box")

UBUNTU = ("6.8.0-87-generic", "Ubuntu 24.04.3 LTS")
XEON = "INTEL(R) XEON(R) PLATINUM 8558"
TORCH = [f"/usr/local/lib/python3.12/dist-packages/{p}" for p in (
    "nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/lib/libcublas.so.13",
    "nvidia/nccl/lib/libnccl.so.2", "torch/lib/libtorch_cuda.so")]
ALICE, SVC = ("alice", 1000, "/home/alice"), ("llm", 998, "/var/lib/llm")


def hgx(box, count, **keys):
    """GPUs of an SXM board: two sockets, PCIe 5, a switched fabric."""
    for index in range(count):
        node = box.node_of(index, count)
        mine = {k: v for k, v in keys.items() if not isinstance(v, list)}
        mine.update({k: v[index] for k, v in keys.items() if isinstance(v, list)})
        box.gpu(bus=f"0000:{SXM_BUSES[index]}:00.0", numa=node, cpus=box.local_cpus(node), **mine)


H100 = dict(model="H100 80GB HBM3", name="NVIDIA H100 80GB HBM3", device="0x2330")


def vllm(box, pid, ranks, key, name, port, started=190000.0, worker="VLLM::Worker_TP"):
    """A vLLM server in a Docker container: front, engine core, one worker a rank."""
    cgroup = box.container(key, name)
    box.process(pid - 112, "containerd-shim", f"/usr/bin/containerd-shim-runc-v2 -namespace moby -id {digest(box.name, key)}",
                started=started + 1, cgroup="/system.slice/containerd.service", threads=14)
    inside = dict(cgroup=cgroup, net="4026533201")
    return inside


def eight_h100_vllm():
    box = Box("eight-h100-vllm",
              title="Eight H100 SXM serve one model with vLLM, tensor parallel over all, in Docker",
              source=CAPTURE, not_recorded=NOT)
    box.host("node-a", *UBUNTU, cpus=192, nodes=2, memory_gib=2015.5, available_gib=1843.2,
             cpu_model=XEON, users=[ALICE, SVC])
    box.module("590.48.01", "open", refcnt=214)
    box.scenario_box["cuda_version"] = 13010
    hgx(box, 8, **H100, utilization=[98, 97, 98, 97, 98, 96, 98, 97],
        memory_utilization=[61, 60, 61, 62, 61, 60, 61, 61],
        power=[612, 608, 615, 604, 611, 609, 618, 606], temperature=[61, 60, 62, 59, 60, 61, 63, 60],
        unattributed="20MiB", nvlink_rate=142000, pcie_tx=8400, pcie_rx=9150, pcie_replays=[9, 0, 0, 3, 0, 0, 0, 0])
    box.init()
    inside = vllm(box, 48102, 8, "vllm", "vllm-qwen72b", 8000)
    key = "sk-proj-Nq7notARealKeyx3Vd9Lm2TzB"
    box.process(48102, "vllm", f"/usr/bin/python3 /usr/local/bin/vllm serve Qwen/Qwen2.5-72B-Instruct --tensor-parallel-size 8 --port 8000 --api-key {key}",
                parent=47990, inner=1, rss_gib=2.4, threads=71, started=190000, cpu_seconds=40211, ports=[8000], **inside)
    box.process(48233, "VLLM::EngineCore", ["VLLM::EngineCore"], parent=48102, inner=112, rss_gib=4.1, threads=88,
                started=189960, cpu_seconds=152003, padded=True, **inside)
    for rank in range(8):
        box.cuda_process(48240 + rank, "VLLM::Worker_TP0", [f"VLLM::Worker_TP{rank}"], [rank], TORCH, parent=48233,
                         inner=119 + rank, rss_gib=9.6, threads=124, started=189950, cpu_seconds=188000 + rank,
                         padded=True, **inside)
        box.holds(rank, 48240 + rank, 73.2 if rank else 73.4, sm=97, mem=61)
    box.cuda_process(60112, "python3", f"/opt/health/venv/bin/python3 /opt/health/gpu_check.py --endpoint http://127.0.0.1:8000 --api-key {key}",
                     [0], ["/opt/health/venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcudart.so.13"],
                     cgroup="/system.slice/gpu-health.service", uid=998, rss_gib=0.6, started=7200, cpu_seconds=31)
    box.holds(0, 60112, 0.51, sm=0, mem=0)
    box.kernel_log([(3100000, "nvidia-nvswitch0: using MSI-X"),
                    (3100000, "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build  (dvs-builder@U22-I3-G01-1-1)")])
    box.secrets = [key, "notARealKey"]
    return box


def two_h200_mig():
    box = Box("two-h200-mig",
              title="Two H200, the first cut into 3g, 2g and 1g instances for three tenants; Kubernetes",
              source=CAPTURE, not_recorded=NOT)
    box.host("mig-01", *UBUNTU, cpus=96, nodes=2, memory_gib=1007.4, available_gib=931.0, cpu_model=XEON, users=[ALICE])
    box.module("590.48.01", "open", refcnt=61)
    for index, bus in enumerate(("19", "9b")):
        node = box.node_of(index, 2)
        whole = dict(utilization=97, power=627, temperature=52, unattributed="20MiB", memory_utilization=48)
        box.gpu("H200", "NVIDIA H200", "0x2335", f"0000:{bus}:00.0", numa=node, cpus=box.local_cpus(node),
                **(whole if index else dict(power=432, temperature=44)))
    first = box.gpus[0]
    for slot, (profile, gi, total, base, sms, busy) in enumerate(
            [("3g.71gb", 1, 71424, 44, 60, 86), ("2g.35gb", 5, 35264, 29, 32, 20), ("1g.18gb", 9, 17600, 15, 16, None)]):
        row = dict(profile=profile, slot=slot, gi=gi, ci=0, memory_mib=total, base_mib=base, sm_count=sms)
        if busy:
            row["utilization"] = busy
        first.mig.append(row)
        box.write(f"proc/driver/nvidia/capabilities/gpu0/mig/gi{gi}/access", f"DeviceFileMinor: {3 + 9 * gi}\nDeviceFileMode: 438\nDeviceFileModify: 1\n")
        box.write(f"proc/driver/nvidia/capabilities/gpu0/mig/gi{gi}/ci0/access", f"DeviceFileMinor: {4 + 9 * gi}\nDeviceFileMode: 438\nDeviceFileModify: 1\n")
        box.write(f"root/dev/nvidia-caps/nvidia-cap{3 + 9 * gi}", "")
        box.write(f"root/dev/nvidia-caps/nvidia-cap{4 + 9 * gi}", "")
    box.init()
    for pid, key, comm, argv, gpu, mig, gi, gib, pod, ports in [
            (7001, "chat", "VLLM::EngineCore", ["VLLM::EngineCore"], 0, 0, 1, 60.0, "chat-6f9c7", []),
            (7105, "embed", "tritonserver", "tritonserver --model-repository=/models --http-port 8000", 0, 1, 5, 9.2, "embed-0", [8000, 8001, 8002]),
            (7210, "large", "VLLM::EngineCore", ["VLLM::EngineCore"], 1, None, None, 118.4, "large-0", [])]:
        identity, pod_uid = digest(box.name, key), digest(box.name, key, "pod")
        pod_uid = f"{pod_uid[:8]}_{pod_uid[8:12]}_{pod_uid[12:16]}_{pod_uid[16:20]}_{pod_uid[20:32]}"
        cgroup = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{pod_uid}.slice/cri-containerd-{identity}.scope"
        box.link(f"root/var/log/containers/{pod}_llm_server-{identity}.log", f"/var/log/pods/llm_{pod}_{pod_uid.replace('_', '-')}/server/0.log")
        caps = [3 + 9 * gi, 4 + 9 * gi] if gi else []
        box.cuda_process(pid, comm, argv, [gpu], TORCH, caps=caps, parent=pid - 1, inner=57, cgroup=cgroup, rss_gib=6.2,
                         threads=90, started=86000, cpu_seconds=9100, ports=ports, net=f"402653{pid}", padded=len(argv) == 1)
        box.process(pid - 1, "vllm" if "VLLM" in comm else "sh", "vllm serve model --port 8000" if "VLLM" in comm else "sh -c tritonserver",
                    parent=1, inner=1, cgroup=cgroup, rss_gib=1.9, started=86040, net=f"402653{pid}",
                    ports=[8000] if "VLLM" in comm else [])
        box.holds(gpu, pid, gib, **({"mig": mig} if mig is not None else {"sm": 97}))
    return box


def two_a100_sglang():
    box = Box("two-a100-sglang",
              title="Two A100 PCIe without a bridge run SGLang, tensor parallel, under systemd",
              source=SHEET, not_recorded=NOT)
    box.host("pcie-a100", *UBUNTU, cpus=64, nodes=2, memory_gib=503.6, available_gib=421.7,
             cpu_model="AMD EPYC 7543 32-Core Processor", users=[ALICE, SVC])
    box.module("580.95.05", "proprietary", refcnt=24)
    box.scenario_box["cuda_version"] = 13000
    for index, bus in enumerate(("41", "c1")):
        node = box.node_of(index, 2)
        box.gpu("A100 80GB PCIe", "NVIDIA A100 80GB PCIe", "0x20b5", f"0000:{bus}:00.0", numa=node, cpus=box.local_cpus(node),
                link=(4, 16), vbios="92.00.a0.00.05", nvlink={"links": 0}, utilization=[84, 86][index], memory_utilization=52,
                power=[241, 247][index], temperature=[63, 66][index], unattributed="9MiB",
                pcie_tx=6100, pcie_rx=6240)
    box.init()
    unit = dict(cgroup="/system.slice/sglang.service", uid=998)
    box.process(15200, "sglang", "/opt/sglang/bin/python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 2 --port 30000 --enable-metrics",
                rss_gib=1.8, threads=44, started=40000, cpu_seconds=2100, ports=[30000], **unit)
    for rank in range(2):
        box.cuda_process(15260 + rank, "sglang::schedul", [f"sglang::scheduler_TP{rank}"], [rank], TORCH, parent=15200, rss_gib=7.7,
                         threads=96, started=39900, cpu_seconds=38000, padded=True, **unit)
        box.holds(rank, 15260 + rank, 71.8, sm=85, mem=52)
    box.process(15262, "sglang::detoken", ["sglang::detokenizer"], parent=15200, rss_gib=1.1, threads=12, started=39900, padded=True, **unit)
    token = "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"
    box.cuda_process(20411, "python3", ["/opt/eval/bin/python3", "run_eval.py", "--env", f"HF_TOKEN={token}", "--tasks", "gsm8k"], [1], TORCH[:1],
                     uid=1000, cgroup="/user.slice/user-1000.slice/session-9.scope", rss_gib=3.0, started=1300, cpu_seconds=600)
    box.holds(1, 20411, 2.3, sm=1, mem=0)
    box.secrets = [token, "NotARealToken"]
    return box


def l40s_without_persistence():
    box = Box("l40s-without-persistence",
              title="Four L40S, idle, persistence off: each look initialises them and shows them busy",
              source=CAPTURE + "; 100 % busy and 145 W without any process is from the capture", not_recorded=NOT)
    box.host("l40s-7", *UBUNTU, cpus=64, nodes=1, memory_gib=503.6, available_gib=488.1,
             cpu_model="AMD EPYC 9354 32-Core Processor", users=[ALICE], load="0.08 0.05 0.01")
    box.module("595.80", "open", refcnt=2)
    box.scenario_box["cuda_version"] = 13020
    for index, bus in enumerate(("01", "41", "81", "c1")):
        box.gpu("L40S", "NVIDIA L40S", "0x26b9", f"0000:{bus}:00.0", link=(4, 16), vbios="95.02.66.00.02", cpus="0-63", numa=0,
                utilization=100, memory_utilization=0, power=[145, 242, 151, 148][index], temperature=[38, 41, 38, 39][index])
    box.init()
    return box


def rtx_4090_desktop():
    box = Box("rtx-4090-desktop",
              title="A desktop: one RTX 4090 draws the screen and runs llama.cpp",
              source=SHEET, not_recorded=NOT)
    box.host("tower", "6.14.0-33-generic", "Ubuntu 24.04.3 LTS", cpus=32, nodes=1, memory_gib=62.7, available_gib=38.2,
             cpu_model="AMD Ryzen 9 7950X 16-Core Processor", users=[ALICE], swap_gib=8.0, uptime_days=2.0, load="1.21 1.05 0.98",
             processes="1/1204 61990")
    box.module("580.95.05", "open", refcnt=311)
    box.scenario_box.update(cuda_version=13000)
    box.gpu("RTX 4090", "NVIDIA GeForce RTX 4090", "0x2684", "0000:01:00.0", link=(4, 16), pci_class="0x030000",
            vbios="95.02.3c.00.b4", cpus="0-31", utilization=71, memory_utilization=58, power=308, temperature=61, fan=44,
            pcie_tx=38, pcie_rx=112)
    box.pci("0000:01:00.1", "0x040300", "0x10de", "0x22ba", "snd_hda_intel")
    box.init()
    session = "/user.slice/user-1000.slice/user@1000.service/session.slice/org.gnome.Shell@x11.service"
    for pid, comm, argv, gib, cgroup, uid in [
            (2104, "Xorg", "/usr/lib/xorg/Xorg vt2 -displayfd 3 -auth /run/user/1000/gdm/Xauthority", 0.41, "/user.slice/user-1000.slice/session-2.scope", 1000),
            (2290, "gnome-shell", "/usr/bin/gnome-shell", 0.09, session, 1000),
            (3311, "firefox", "/usr/lib/firefox/firefox --new-window", 0.28, "/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox.scope", 1000)]:
        box.process(pid, comm, argv, uid=uid, cgroup=cgroup, rss_gib=0.4, threads=31, started=170000, cpu_seconds=4100,
                    fds=["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-modeset", "/dev/nvidia0"],
                    device_maps=["nvidiactl", "nvidia0"], libraries=["/usr/lib/x86_64-linux-gnu/libnvidia-glcore.so.580.95.05"])
        box.holds(0, pid, gib, kind="graphics", sm=2)
    password = "hunter2butlonger"
    box.cuda_process(8123, "llama-server", f"./build/bin/llama-server -m models/qwen3-30b-a3b-q4_k_m.gguf -ngl 99 -c 16384 --port 8080 --metrics --model-url https://alice:{password}@models.example.org/qwen3.gguf",
                     [0], ["/usr/local/cuda-13.0/targets/x86_64-linux/lib/libcudart.so.13.0.96", "/usr/local/cuda-13.0/targets/x86_64-linux/lib/libcublas.so.13.1.0.3"],
                     uid=1000, parent=2290, cgroup="/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-3.scope", rss_gib=1.6,
                     threads=34, started=9000, cpu_seconds=700, ports=[8080])
    box.holds(0, 8123, 18.9, sm=69, mem=58)
    box.secrets = [password]
    return box


def v100_old_driver():
    box = Box("v100-old-driver",
              title="Two V100 on driver R470: no second memory call, no third process list, no hardware counters",
              source=SHEET, not_recorded=NOT,
              missing_symbols=["nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetComputeRunningProcesses_v3",
                               "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v3",
                               "nvmlDeviceGetRunningProcessDetailList", "nvmlDeviceGetProcessesUtilizationInfo",
                               "nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet",
                               "nvmlDeviceGetGpuFabricInfo", "nvmlDeviceGetGpuFabricInfoV", "nvmlSystemGetDriverBranch"])
    box.host("dgx1-old", "4.18.0-553.el8_10.x86_64", "Rocky Linux 8.10 (Green Obsidian)", cpus=80, nodes=2, memory_gib=503.4,
             available_gib=466.9, cpu_model="Intel(R) Xeon(R) CPU E5-2698 v4 @ 2.20GHz", users=[ALICE, ("bob", 1007, "/home/bob")],
             uptime_days=301.0)
    box.module("470.256.02", "proprietary", refcnt=40, modules=("nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia"))
    box.scenario_box.update(cuda_version=11040)
    for index, bus in enumerate(("06", "85")):
        node = box.node_of(index, 2)
        box.gpu("V100 SXM2 32GB", "Tesla V100-SXM2-32GB", "0x1db5", f"0000:{bus}:00.0", link=(3, 16), vbios="88.00.43.00.03", firmware=False,
                numa=node, cpus=box.local_cpus(node), utilization=[55, 0][index], memory_utilization=[31, 0][index],
                power=[176, 44][index], temperature=[58, 36][index], ecc_corrected=[0, 212][index])
    box.init()
    box.cuda_process(30211, "tritonserver", "tritonserver --model-repository=/models --model-control-mode=explicit", [0],
                     ["/usr/local/cuda-11.4/targets/x86_64-linux/lib/libcudart.so.11.4.148"], uid=1000, rss_gib=5.5, started=2400000,
                     cpu_seconds=900000, ports=[8000, 8001, 8002], cgroup="/system.slice/triton.service")
    box.holds(0, 30211, 21.0, sm=55, mem=31)
    box.cuda_process(41877, "python", "/home/bob/miniconda3/bin/python train_lora.py --base llama-2-7b", [1], TORCH[-1:], uid=1007,
                     cgroup="/system.slice/slurmstepd.scope/job_88123/step_0/user/task_0", rss_gib=11.0, started=250000, cpu_seconds=61000)
    box.holds(1, 41877, 14.2, sm=0, mem=0)
    return box


def t4_in_container():
    box = Box("t4-in-container",
              title="One T4, seen from inside a pod: other PID namespace, relative control groups, no kernel log",
              source=SHEET, not_recorded=NOT + "; the neighbour that holds memory is not in this /proc, on purpose")
    box.host("embed-7d9f8c6b5-x2x4q", "5.15.0-1084-gke", "Debian GNU/Linux 12 (bookworm)", cpus=8, nodes=1, memory_gib=29.4,
             available_gib=17.0, cpu_model="Intel(R) Xeon(R) CPU @ 2.00GHz", uptime_days=11.0, load="0.41 0.40 0.38",
             processes="2/214 412", hugepages=False)
    box.module("550.90.07", "proprietary", refcnt=9, modules=("nvidia_uvm", "nvidia_modeset", "nvidia"), nodes=True)
    box.scenario_box.update(cuda_version=12040, unprivileged=True)
    box.gpu("T4", "Tesla T4", "0x1eb8", "0000:00:04.0", link=(3, 16), vbios="90.04.96.00.01", cpus="0-7", numa=0,
            utilization=43, memory_utilization=22, power=49, temperature=61, virtualization=1)
    box.write("root/.dockerenv", "")
    box.write("root/run/secrets/kubernetes.io/serviceaccount/namespace", "llm\n")
    inside = dict(cgroup="/", net="4026532711", pid_namespace="4026532571")
    box.process(1, "tini", "/usr/bin/tini -- vllm serve BAAI/bge-m3 --dtype half", parent=0, rss_gib=0.001, threads=1, started=86000, **inside)
    box.cuda_process(17, "vllm", "/usr/bin/python3 /usr/local/bin/vllm serve BAAI/bge-m3 --dtype half --port 8000", [0], TORCH, parent=1,
                     rss_gib=3.1, threads=60, started=86000, cpu_seconds=2100, ports=[8000], **inside)
    box.process(380, "bash", "bash", parent=0, rss_gib=0.004, threads=1, started=300, **inside)
    box.ourselves(412, pid_namespace="4026532571", cgroup_namespace="4026532570")
    # An older driver gives numbers of the host: the first is process 17 here, the second a neighbour.
    box.holds(0, 812345, 8.7, sm=40, mem=22)
    box.holds(0, 815501, 0.4, sm=0, mem=0)
    return box


def gb10_unified():
    box = Box("gb10-unified",
              title="A desk-side GB10: GPU and host share one memory, the driver tells no total",
              source=SHEET + "; that memory figures are refused is reported for driver 580", not_recorded=NOT)
    box.host("spark-2", "6.14.0-1013-nvidia", "Ubuntu 24.04.3 LTS", cpus=20, nodes=1, memory_gib=119.7, available_gib=54.1,
             cpu_model="", arch="aarch64", users=[ALICE], swap_gib=16.0, uptime_days=5.0, load="2.02 1.97 1.80", processes="1/811 61990")
    box.module("580.95.05", "open", refcnt=96)
    box.scenario_box.update(cuda_version=13000)
    box.gpu("GB10", "NVIDIA GB10", "0x2e12", "000f:01:00.0", link=(1, 1), max_link=(1, 1), pci_class="0x030200", vbios="9a.0b.09.00.00",
            cpus="0-19", utilization=88, memory_utilization=0, power=61, temperature=71)
    box.init()
    box.process(1800, "gnome-shell", "/usr/bin/gnome-shell", uid=1000, rss_gib=0.4, started=400000, threads=22,
                cgroup="/user.slice/user-1000.slice/user@1000.service/session.slice/org.gnome.Shell@wayland.service",
                fds=["/dev/nvidiactl", "/dev/nvidia0"], device_maps=["nvidiactl", "nvidia0"],
                libraries=["/usr/lib/aarch64-linux-gnu/libnvidia-glcore.so.580.95.05"])
    box.cuda_process(3100, "llama-server", "llama-server -m gpt-oss-120b-mxfp4.gguf -ngl 99 --host 0.0.0.0 --port 8080", [0],
                     ["/usr/local/cuda-13.0/targets/sbsa-linux/lib/libcudart.so.13.0.96"], uid=1000, rss_gib=1.2, threads=24, started=52000,
                     cpu_seconds=2000, ports=[8080], cgroup="/system.slice/llama.service")
    box.holds(0, 3100, 60.4, sm=88)
    box.holds(0, 1800, 0.18, kind="graphics")
    return box


def eight_b200_trtllm():
    box = Box("eight-b200-trtllm",
              title="Eight B200 run TensorRT-LLM over MPI: NVLink 5, open module, L2 figures from hardware counters",
              source=SHEET, not_recorded=NOT)
    box.host("blackwell-3", *UBUNTU, cpus=224, nodes=2, memory_gib=3023.0, available_gib=2711.4, cpu_model="INTEL(R) XEON(R) 6960P",
             users=[SVC], uptime_days=19.0, load="21.1 20.4 19.8")
    box.module("590.48.01", "open", refcnt=260)
    box.scenario_box["cuda_version"] = 13010
    hgx(box, 8, model="B200", name="NVIDIA B200", device="0x2901", vbios="97.00.88.00.0f", utilization=99, memory_utilization=74,
        power=[871, 864, 880, 859, 868, 872, 866, 877], temperature=[57, 56, 58, 55, 57, 58, 56, 57], unattributed="24MiB",
        nvlink_rate=410000, pcie_tx=11200, pcie_rx=12650, gpm_values={"160": 11, "161": 89, "162": 9, "163": 91, "164": 46, "165": 54, "10": 71, "5": 58})
    box.init()
    unit = dict(cgroup="/system.slice/trtllm.service", uid=998)
    box.process(9000, "trtllm-serve", "/usr/bin/python3 /usr/local/bin/trtllm-serve nvidia/DeepSeek-R1-FP4 --tp_size 8 --port 8000", rss_gib=3.0,
                threads=60, started=66000, cpu_seconds=4100, ports=[8000], **unit)
    for rank in range(8):
        box.cuda_process(9100 + rank, "python3", "/usr/bin/python3 -m mpi4py.futures.server", [rank], TORCH, parent=9000, rss_gib=14.0, threads=140,
                         started=65900, cpu_seconds=60000, **unit)
        box.holds(rank, 9100 + rank, 151.3, sm=99, mem=74)
    return box


def one_lost_of_eight():
    box = Box("one-lost-of-eight",
              title="GPU 3 of eight fell off the bus twelve minutes ago; its server's other ranks still hold memory",
              source=CAPTURE + "; kernel lines: as the driver prints them", not_recorded=NOT)
    box.host("node-c", *UBUNTU, cpus=192, nodes=2, memory_gib=2015.5, available_gib=1880.9, cpu_model=XEON, users=[SVC], load="0.90 3.40 7.72")
    box.module("590.48.01", "open", refcnt=190)
    # The link of GPU 3 had been noisy for a while.
    hgx(box, 8, **H100, utilization=0, memory_utilization=0, power=[118, 121, 119, 0, 120, 122, 118, 119],
        temperature=[44, 43, 45, 0, 44, 43, 46, 44], unattributed="20MiB", aer=[0, 0, 0, 4113, 0, 0, 0, 0],
        on_bus=[True] * 3 + [False] + [True] * 4)
    box.gpus[3].keys.update(lost_at=0)
    box.init()
    unit = dict(cgroup="/system.slice/sglang.service", uid=998)
    box.process(5100, "sglang", "/opt/sglang/bin/python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V2.5 --tp 8", rss_gib=2.2,
                threads=50, started=90000, cpu_seconds=5000, ports=[30000], **unit)
    for rank in range(8):
        box.cuda_process(5200 + rank, "sglang::schedul", [f"sglang::scheduler_TP{rank}"], [rank], TORCH, parent=5100, rss_gib=8.8, threads=100,
                         started=89900, cpu_seconds=70000, padded=True, **unit)
        box.holds(rank, 5200 + rank, 70.0, sm=0, mem=0)
    bus = box.gpus[3].bus[:-2]
    box.kernel_log([
        (780, "pcieport 0000:57:01.0: AER: Multiple Corrected error message received from 0000:5d:00.0"),
        (722, f"NVRM: GPU at PCI:{bus}: {box.gpus[3].uuid}"),
        (722, "NVRM: GPU Board Serial Number: 1653922004411"),
        (722, f"NVRM: Xid (PCI:{bus}): 79, pid=5203, name=sglang::schedul, GPU has fallen off the bus."),
        (722, f"NVRM: GPU {bus}.0: GPU has fallen off the bus."),
        (722, f"NVRM: GPU {bus}.0: GPU serial number is 1653922004411."),
        (721, f"NVRM: Xid (PCI:{bus}): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)")])
    return box


def library_mismatch():
    box = Box("library-mismatch",
              title="The package was upgraded to 575 while module 570 is loaded and a server runs on it",
              source=MADE + "; kernel lines: as the driver prints them", not_recorded=NOT)
    box.host("node-m", "6.8.0-60-generic", "Ubuntu 24.04.2 LTS", cpus=128, nodes=2, memory_gib=1007.4, available_gib=902.0, cpu_model=XEON,
             users=[SVC, ALICE], uptime_days=88.0)
    box.module("570.86.15", "open", library="575.51.03", refcnt=77)
    box.scenario_box.update(driver_version="575.51.03", init_code=18)
    for index, bus in enumerate(("19", "9b")):
        node = box.node_of(index, 2)
        box.gpu("H100 PCIe", "NVIDIA H100 PCIe", "0x2331", f"0000:{bus}:00.0", numa=node, cpus=box.local_cpus(node), vbios="96.00.30.00.01")
    box.init()
    box.process(22100, "vllm", "/opt/vllm/bin/python3 /opt/vllm/bin/vllm serve mistralai/Mistral-Small-24B-Instruct-2501", uid=998, rss_gib=2.0,
                started=900000, threads=60, cgroup="/system.slice/vllm.service", ports=[8000])
    box.cuda_process(22180, "VLLM::EngineCor", ["VLLM::EngineCore"], [0], TORCH, driver="570.86.15", deleted=True, parent=22100, uid=998, rss_gib=7.0,
                     threads=90, started=899900, cpu_seconds=410000, padded=True, cgroup="/system.slice/vllm.service")
    box.kernel_log([
        (1210, "NVRM: API mismatch: the client 'nvidia-smi' (pid 51877)"),
        (1210, "NVRM: has the version 575.51.03, but this kernel module has"),
        (1210, "NVRM: the version 570.86.15.  Please make sure that this"),
        (1210, "NVRM: kernel module and all NVIDIA driver components"),
        (1210, "NVRM: have the same version.")])
    return box


def no_driver():
    box = Box("no-driver",
              title="Four GPUs on the bus after a kernel upgrade; no module was built for the new kernel",
              source=MADE, not_recorded=NOT)
    box.host("l40s-8", "6.8.0-88-generic", "Ubuntu 24.04.3 LTS", cpus=64, nodes=1, memory_gib=503.6, available_gib=495.0,
             cpu_model="AMD EPYC 9354 32-Core Processor", users=[ALICE], uptime_days=0.02, load="0.31 0.22 0.09")
    for bus in ("01", "41", "81", "c1"):
        box.gpu("L40S", "NVIDIA L40S", "0x26b9", f"0000:{bus}:00.0", link=(4, 16), cpus="0-63", numa=0, driver="")
    box.write("proc/modules", "ext4 1060864 2 - Live 0x0000000000000000\nast 69632 0 - Live 0x0000000000000000\n")
    box.write("root/lib/modules/6.8.0-88-generic/modules.dep", "kernel/fs/ext4/ext4.ko.zst:\nkernel/drivers/gpu/drm/ast/ast.ko.zst:\n")
    box.write("root/var/lib/dkms/nvidia/580.95.05/source/dkms.conf", 'PACKAGE_NAME="nvidia"\n')
    # The library of the driver is installed all the same.
    box.library("580.95.05")
    box.scenario_box["init_code"] = 9
    box.init()
    return box


def nouveau_bound():
    box = Box("nouveau-bound",
              title="The kernel's own driver took the GPU at boot, so NVIDIA's was not loaded",
              source=MADE, not_recorded=NOT)
    box.host("lab-9", "6.12.48+deb13-amd64", "Debian GNU/Linux 13 (trixie)", cpus=16, nodes=1, memory_gib=125.6, available_gib=121.0,
             cpu_model="AMD Ryzen 9 5950X 16-Core Processor", users=[ALICE], uptime_days=0.1)
    box.gpu("RTX 3090", "NVIDIA GeForce RTX 3090", "0x2204", "0000:09:00.0", link=(1, 16), max_link=(4, 16), cpus="0-15", driver="nouveau",
            pci_class="0x030000")
    box.write("proc/modules", "nouveau 3862528 4 - Live 0x0000000000000000\ndrm_ttm_helper 16384 1 nouveau, Live 0x0000000000000000\n")
    box.write("root/lib/modules/6.12.48+deb13-amd64/modules.dep", "updates/dkms/nvidia.ko.xz:\nkernel/drivers/gpu/drm/nouveau/nouveau.ko.xz:\n")
    box.library("550.163.01")
    box.scenario_box["init_code"] = 9
    box.init()
    return box


def no_nvidia():
    box = Box("no-nvidia", title="A laptop with Intel graphics: nothing here to look at, and that is no fault",
              source=MADE, not_recorded=NOT)
    box.host("thinkpad", "6.12.48+deb13-amd64", "Debian GNU/Linux 13 (trixie)", cpus=8, nodes=1, memory_gib=15.3, available_gib=9.1,
             cpu_model="Intel(R) Core(TM) i7-1185G7 @ 3.00GHz", users=[ALICE], swap_gib=2.0, uptime_days=3.0)
    box.pci("0000:00:02.0", "0x030000", "0x8086", "0x9a49", "i915")
    box.write("proc/modules", "i915 4276224 31 - Live 0x0000000000000000\n")
    box.init()
    return box


def orphaned_engine():
    box = Box("orphaned-engine",
              title="The kernel ended a vLLM server for want of memory; its engine lives on, child of init, and holds 70 GiB",
              source=CAPTURE + "; kernel lines: as the kernel prints them", not_recorded=NOT)
    box.host("node-d", *UBUNTU, cpus=128, nodes=2, memory_gib=503.6, available_gib=411.0, cpu_model=XEON, users=[ALICE, SVC])
    box.module("590.48.01", "open", refcnt=31)
    for index, bus in enumerate(("19", "9b")):
        node = box.node_of(index, 2)
        box.gpu("H100 PCIe", "NVIDIA H100 PCIe", "0x2331", f"0000:{bus}:00.0", numa=node, cpus=box.local_cpus(node), vbios="96.00.30.00.01",
                utilization=[0, 91][index], memory_utilization=[0, 55][index], power=[71, 301][index], temperature=[36, 61][index], unattributed="20MiB")
    box.init()
    box.cuda_process(48233, "VLLM::EngineCor", ["VLLM::EngineCore"], [0], TORCH, parent=1, uid=1000, rss_gib=6.1, threads=92, started=31000,
                     cpu_seconds=21000, padded=True, cgroup="/user.slice/user-1000.slice/session-3.scope")
    box.holds(0, 48233, 70.0, sm=0, mem=0)
    box.process(50100, "vllm", "/opt/vllm/bin/python3 /opt/vllm/bin/vllm serve meta-llama/Llama-3.1-8B-Instruct --port 8001", uid=998, rss_gib=2.1,
                threads=66, started=26000, ports=[8001], cgroup="/system.slice/vllm-8b.service")
    box.cuda_process(50177, "VLLM::EngineCor", ["VLLM::EngineCore"], [1], TORCH, parent=50100, uid=998, rss_gib=6.0, threads=92, started=25950,
                     cpu_seconds=24000, padded=True, cgroup="/system.slice/vllm-8b.service")
    box.holds(1, 50177, 71.9, sm=91, mem=55)
    box.kernel_log([
        (1254, "python3 invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0"),
        (1253, "Out of memory: Killed process 48190 (vllm) total-vm:98120044kB, anon-rss:71200332kB, file-rss:2184kB, shmem-rss:0kB, UID:1000 pgtables:151220kB oom_score_adj:0")])
    return box


def stuck_and_unaccounted():
    box = Box("stuck-and-unaccounted",
              title="A process in uninterruptible sleep holds GPU 0; GPU 1 has 12 GiB that no visible process accounts for",
              source=CAPTURE, not_recorded=NOT)
    box.host("node-e", *UBUNTU, cpus=64, nodes=2, memory_gib=503.6, available_gib=470.2, cpu_model=XEON, users=[ALICE, SVC], load="9.04 9.01 8.97")
    box.module("590.48.01", "open", refcnt=18)
    for index, bus in enumerate(("19", "9b")):
        node = box.node_of(index, 2)
        box.gpu("H100 PCIe", "NVIDIA H100 PCIe", "0x2331", f"0000:{bus}:00.0", numa=node, cpus=box.local_cpus(node), vbios="96.00.30.00.01",
                utilization=0, memory_utilization=0, power=[66, 52][index], temperature=[35, 34][index],
                unattributed=["20MiB", f"{mib(12.3)}MiB"][index])
    box.init()
    box.cuda_process(9001, "python3", "/home/alice/venv/bin/python3 finetune.py --config qlora.yaml", [0], TORCH, state="D", uid=1000, rss_gib=14.4,
                     threads=77, started=54000, cpu_seconds=33000, wchan="rpcRmApiControl_GSP", cgroup="/user.slice/user-1000.slice/session-11.scope")
    box.holds(0, 9001, 30.2, sm=0, mem=0)
    # Ended, and its number still in the driver's list.
    box.holds(1, 8740, 0.6, sm=0, mem=0)
    return box


BOXES = [eight_h100_vllm, two_h200_mig, two_a100_sglang, l40s_without_persistence, rtx_4090_desktop, v100_old_driver, t4_in_container,
         gb10_unified, eight_b200_trtllm, one_lost_of_eight, library_mismatch, no_driver, nouveau_bound, no_nvidia, orphaned_engine,
         stuck_and_unaccounted]
