//! A daemon without rights works, and says what it cannot see instead of passing for healthy.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;

use crate::daemon_home::Home;
use crate::gpu_box::GpuBox;

/// `nobody`.
const NOBODY: u32 = 65534;

#[test]
fn without_rights_it_works_and_says_what_it_cannot_see() {
    let (home, gpu_box) = (Home::new(), GpuBox::of("eight-h100"));
    let mut command = home.command(&gpu_box, &[]);
    if rustix::process::geteuid().is_root() {
        for folder in [&home.path(""), gpu_box.state()] {
            chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        command.uid(NOBODY).gid(NOBODY);
    } else if std::fs::read_dir("/proc/1/fd").is_ok() {
        eprintln!("skipped: everything is visible to this user, who is not root");
        return;
    }
    let daemon = home.start_as(&gpu_box, &mut command);
    daemon.wait_for("/v1/snapshot", "the GPUs", |snapshot| {
        snapshot["gpus"].as_array().is_some_and(|gpus| gpus.len() == 8)
    });
    daemon.wait_for("/v1/health", "a word of it", |health| {
        health["unseen"].to_string().contains("open device files: no permission for")
    });
    daemon.wait_for_log("this daemon cannot see all: open device files");
    daemon.wait_for_log("needs CAP_SYS_PTRACE");
    let (status, released) = daemon.post("/v1/release");
    assert_eq!((status, released["released"].as_bool()), (200, Some(true)), "{released}");
    assert!(released["denied_processes"].as_u64().unwrap() > 0, "{released}");
    assert!(daemon.end_timed().0.success());
}
