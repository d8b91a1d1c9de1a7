//! `infertop record`: snapshots of this box into a file, without a daemon.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use probes::units;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use crate::cli::{Record, Roots};
use crate::feed::child::ChildFeed;
use crate::moment::Moment;
use crate::report;
use crate::store::{Recording, Start};

/// How far a recording without an end is: until somebody stops it.
const FOREVER: Duration = Duration::from_hours(100 * 365 * 24);

/// Records until the time is over or a signal comes. What was recorded until then is whole.
pub(crate) fn run(roots: &Roots, record: &Record) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(write(roots, record))
}

async fn write(roots: &Roots, record: &Record) -> anyhow::Result<ExitCode> {
    let machine = roots.machine();
    let file = record.file.display();
    let start = Start {
        version: env!("CARGO_PKG_VERSION").into(),
        boot_id: String::new(),
        pid: std::process::id(),
        at_ms: machine.now_ms(),
    };
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut hang_up = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    let mut recording = Recording::create(&record.file, &start)?;
    let mut feed = ChildFeed::start(roots, roots.interval())?;
    let ends = record.length.map_or("Ctrl-C ends it".into(), |length| {
        format!("for {}", units::duration(length.as_secs()))
    });
    report::say(&format!("recording to {file}; {ends}"));
    let end = Instant::now() + record.length.unwrap_or(FOREVER);
    let mut number = 0;
    let ended = loop {
        tokio::select! {
            biased;
            _ = interrupt.recv() => break Ok(()),
            _ = terminate.recv() => break Ok(()),
            _ = hang_up.recv() => break Ok(()),
            () = sleep_until(end) => break Ok(()),
            frame = feed.next() => match frame {
                Ok(frame) => {
                    number += 1;
                    let moment = Moment::new(number, frame.bytes.into(), frame.snapshot);
                    // A disk that is waited for here costs this recording snapshots, nobody else.
                    if let Err(error) = recording.keep(&moment) {
                        break Err(error);
                    }
                }
                Err(error) => break Err(error),
            }
        }
    };
    feed.finish().await;
    let frames = recording.frames();
    let bytes = recording.finish(machine.now_ms())?;
    report::say(&format!(
        "recorded {frames} snapshots, {} in {file}\nto see them: infertop replay {file}",
        units::bytes(bytes)
    ));
    ended.map(|()| ExitCode::SUCCESS)
}
