//! Ends a process, after checking that it is still the one that was shown.
//!
//! The check and the signal go through one pidfd, so a pid that is reused in between is not hit.

use panels::ui::Signal;
use probes::machine::Machine;
use rustix::process::{Pid, PidfdFlags, Signal as Kernel, pidfd_open, pidfd_send_signal};

/// Sends the signal; the answer is for people.
pub(crate) fn end(machine: &Machine, pid: u32, start_ticks: u64, signal: Signal) -> String {
    match try_end(machine, pid, start_ticks, signal) {
        Ok(()) => match signal {
            Signal::Term => format!("asked process {pid} to end (SIGTERM)"),
            Signal::Kill => format!("ended process {pid} (SIGKILL)"),
        },
        Err(why) => why,
    }
}

fn try_end(machine: &Machine, pid: u32, start_ticks: u64, signal: Signal) -> Result<(), String> {
    if !machine.is_live() {
        return Err("this picture is of another /proc: nothing was sent".into());
    }
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let number = number.ok_or_else(|| format!("{pid} is no process number"))?;
    let handle = pidfd_open(number, PidfdFlags::empty())
        .map_err(|error| format!("process {pid} cannot be reached: {error}"))?;
    let now = probes::proc::read_start_ticks(machine, pid);
    if now != Some(start_ticks) {
        return Err(format!(
            "process {pid} is not the one that was shown any more: nothing was sent"
        ));
    }
    let kernel = match signal {
        Signal::Term => Kernel::TERM,
        Signal::Kill => Kernel::KILL,
    };
    pidfd_send_signal(handle, kernel).map_err(|error| match error {
        rustix::io::Errno::PERM => {
            format!("no permission to end process {pid}: it belongs to another user")
        }
        other => format!("process {pid} was not ended: {other}"),
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_reused_pid_is_not_hit_and_the_right_one_is() {
        let machine = Machine::default();
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let start = probes::proc::read_start_ticks(&machine, child.id()).unwrap();
        let refused = end(&machine, child.id(), start + 1, Signal::Term);
        assert!(refused.contains("nothing was sent"), "{refused}");
        assert!(child.try_wait().unwrap().is_none());
        let sent = end(&machine, child.id(), start, Signal::Term);
        assert!(sent.contains("SIGTERM"), "{sent}");
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_recorded_machines_processes_are_never_hit() {
        let machine = Machine { procfs: "/nowhere".into(), ..Machine::default() };
        assert!(end(&machine, std::process::id(), 1, Signal::Kill).contains("nothing was sent"));
    }
}
