//! One process allocates through the CUDA stand-in, this one looks through the NVML stand-in.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::disallowed_methods, reason = "the stand-in works in real time")]
#![allow(clippy::print_stdout, reason = "the child answers on its standard output")]

use std::ffi::c_int;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libloading::Library;

/// A function of a stand-in, called with whatever arguments the test gives.
macro_rules! call {
    ($library:expr, $name:literal $(, $arg:expr => $kind:ty)*) => {{
        // SAFETY: the signature written at the call is the one of the C interface.
        unsafe {
            let function = $library
                .get::<unsafe extern "C" fn($($kind),*) -> u32>(concat!($name, "\0").as_bytes())
                .expect($name);
            function($($arg),*)
        }
    }};
}

fn open(path: &Path) -> Library {
    // SAFETY: a stand-in runs nothing when it is loaded.
    unsafe { Library::new(path) }.expect("the library loads")
}

/// What the child does on each line it is told.
fn cuda_child() {
    let cuda = open(&gpubox::cuda_library());
    let (mut context, mut address) = (0_usize, 0_u64);
    assert_eq!(call!(cuda, "cuCtxSynchronize"), 3, "not initialised yet");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let code = match line.as_str() {
            "context" => {
                assert_eq!(call!(cuda, "cuInit", 0 => u32), 0);
                let code = call!(cuda, "cuDevicePrimaryCtxRetain", &raw mut context => *mut usize, 1 => c_int);
                assert_eq!(call!(cuda, "cuCtxSetCurrent", context => usize), 0);
                code
            }
            "allocate" => {
                call!(cuda, "cuMemAlloc_v2", &raw mut address => *mut u64, 6 << 30 => usize)
            }
            "copy" => {
                let sent: Vec<u8> = (0..200).collect();
                let mut back = vec![0_u8; 200];
                call!(cuda, "cuMemcpyHtoD_v2", address + 64 => u64, sent.as_ptr() => *const u8, 200 => usize);
                call!(cuda, "cuMemcpyDtoD_v2", address + 1000 => u64, address + 64 => u64, 200 => usize);
                call!(cuda, "cuMemsetD8_v2", address + 1000 => u64, 7 => u8, 10 => usize);
                call!(cuda, "cuMemcpyDtoH_v2", back.as_mut_ptr() => *mut u8, address + 1000 => u64, 200 => usize);
                assert_eq!((back[9], back[10], back[199]), (7, 10, 199));
                // Past the end of the allocation.
                call!(cuda, "cuMemcpyDtoH_v2", back.as_mut_ptr() => *mut u8, address + (6 << 30) - 10 => u64, 200 => usize)
            }
            "too much" => {
                let mut out = 0_u64;
                call!(cuda, "cuMemAlloc_v2", &raw mut out => *mut u64, 90 << 30 => usize)
            }
            "free" => call!(cuda, "cuMemFree_v2", address => u64),
            "release" => call!(cuda, "cuDevicePrimaryCtxRelease_v2", 1 => c_int),
            _ => return,
        };
        println!("done {code}");
        std::io::stdout().flush().unwrap();
    }
}

struct Nvml {
    library: Library,
    handle: usize,
}

impl Nvml {
    fn open() -> Self {
        let library = open(&gpubox::nvml_library());
        let mut handle = 0_usize;
        assert_eq!(call!(library, "nvmlInit_v2"), 0);
        let code = call!(library, "nvmlDeviceGetHandleByIndex_v2", 1 => u32, &raw mut handle => *mut usize);
        assert_eq!(code, 0);
        Self { library, handle }
    }

    /// Pids with their bytes.
    fn processes(&self) -> Vec<(u32, u64)> {
        let mut rows = [[0_u64; 3]; 16];
        let mut count = 16_u32;
        let code = call!(
            self.library,
            "nvmlDeviceGetComputeRunningProcesses_v3",
            self.handle => usize,
            &raw mut count => *mut u32,
            rows.as_mut_ptr() => *mut [u64; 3]
        );
        assert_eq!(code, 0);
        let rows = rows.iter().take(count as usize);
        rows.map(|row| (u32::try_from(row[0] & 0xFFFF_FFFF).unwrap(), row[1])).collect()
    }

    fn used(&self) -> u64 {
        let mut memory = [0x0200_0028_u64, 0, 0, 0, 0];
        let code = call!(
            self.library,
            "nvmlDeviceGetMemoryInfo_v2",
            self.handle => usize,
            memory.as_mut_ptr() => *mut u64
        );
        assert_eq!(code, 0);
        memory[4]
    }

    fn until(&self, wanted: &[(u32, u64)]) {
        let begun = Instant::now();
        while self.processes() != wanted {
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", self.processes());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn tell(child: &mut Child, answers: &mut impl BufRead, line: &str) -> u32 {
    writeln!(child.stdin.as_mut().unwrap(), "{line}").unwrap();
    loop {
        let mut answer = String::new();
        assert!(answers.read_line(&mut answer).unwrap() > 0, "the child ended at {line}");
        if let Some((_, code)) = answer.split_once("done ") {
            return code.trim().parse().unwrap();
        }
    }
}

const SCENARIO: &str = "
[[gpu]]
model = 'H100 80GB HBM3'
count = 2
[cuda]
context = '520MiB'
";

fn watch(
    name: &str,
    scenario: &str,
    story: impl FnOnce(&Nvml, &mut Child, &mut dyn FnMut(&mut Child, &str) -> u32),
) {
    match std::env::var("GPUBOX_ROLE").as_deref() {
        Ok("cuda") => return cuda_child(),
        Ok("nvml") => {}
        _ => {
            // The box is in the environment, which a test must not change for its neighbours.
            let state = std::env::temp_dir().join(format!("gpubox-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&state).unwrap();
            std::fs::write(state.join("scenario.toml"), scenario).unwrap();
            let output = Command::new(std::env::current_exe().unwrap())
                .args([name, "--exact", "--nocapture"])
                .env("GPUBOX_ROLE", "nvml")
                .env("GPUBOX_SCENARIO", state.join("scenario.toml"))
                .env("GPUBOX_STATE", &state)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            std::fs::remove_dir_all(state).unwrap();
            return;
        }
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env("GPUBOX_ROLE", "cuda")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    let nvml = Nvml::open();
    story(&nvml, &mut child, &mut |child, line| tell(child, &mut answers, line));
    let _ = child.wait();
}

const MIB: u64 = 1 << 20;

#[test]
fn what_one_process_allocates_another_sees() {
    watch("what_one_process_allocates_another_sees", SCENARIO, |nvml, child, tell| {
        let pid = child.id();
        assert_eq!(nvml.processes(), []);
        assert_eq!(tell(child, "context"), 0);
        nvml.until(&[(pid, 520 * MIB)]);
        assert_eq!(tell(child, "allocate"), 0);
        nvml.until(&[(pid, (520 + 6 * 1024) * MIB)]);
        assert_eq!(nvml.used(), (520 + 6 * 1024) * MIB);
        assert_eq!(tell(child, "copy"), 700, "past the end is an illegal address");
        assert_eq!(tell(child, "too much"), 2);
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        assert!(maps.lines().any(|line| line.contains("rw-s") && line.ends_with("/dev/nvidia1")));
        assert_eq!(tell(child, "free"), 0);
        nvml.until(&[(pid, 520 * MIB)]);
        assert_eq!(tell(child, "release"), 0);
        nvml.until(&[]);
        assert_eq!(nvml.used(), 0);
        drop(child.stdin.take());
    });
}

#[test]
fn a_killed_process_is_gone_from_the_list() {
    watch("a_killed_process_is_gone_from_the_list", SCENARIO, |nvml, child, tell| {
        tell(child, "context");
        tell(child, "allocate");
        nvml.until(&[(child.id(), (520 + 6 * 1024) * MIB)]);
        child.kill().unwrap();
        nvml.until(&[]);
    });
}

#[test]
fn the_memory_of_the_dead_may_linger() {
    let scenario = format!("{SCENARIO}dead_pid_seconds = 1.0\n");
    watch("the_memory_of_the_dead_may_linger", &scenario, |nvml, child, tell| {
        tell(child, "context");
        let pid = child.id();
        nvml.until(&[(pid, 520 * MIB)]);
        child.kill().unwrap();
        child.wait().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(nvml.processes(), [(pid, 520 * MIB)]);
        nvml.until(&[]);
    });
}

#[test]
fn a_destroyed_context_may_leak() {
    let scenario = format!("{SCENARIO}leak_on_destroy = true\n");
    watch("a_destroyed_context_may_leak", &scenario, |nvml, child, tell| {
        tell(child, "context");
        tell(child, "release");
        nvml.until(&[(child.id(), 520 * MIB)]);
        tell(child, "context");
        nvml.until(&[(child.id(), 2 * 520 * MIB)]);
        drop(child.stdin.take());
    });
}
