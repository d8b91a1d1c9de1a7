//! `infertop export`: a stretch of what is remembered into a file of its own, to be handed on.

mod anonymise;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use probes::machine::Machine;
use probes::moment_text::parse_moment;
use probes::past::MarkKind;
use probes::snapshot::Snapshot;
use probes::units;

use crate::cli::Export;
use crate::moment::Moment;
use crate::paths;
use crate::report;
use crate::store::{Reader, Recording, Start};

use anonymise::Anonymiser;

/// Writes the stretch.
pub(crate) fn run(export: &Export) -> anyhow::Result<ExitCode> {
    let store = export.store.clone().map_or_else(paths::store_file, Ok)?;
    let now_ms = Machine::default().now_ms();
    let from_ms = moment(&export.from, now_ms)?;
    let to_ms = export.to.as_deref().map_or(Ok(now_ms), |text| moment(text, now_ms))?;
    anyhow::ensure!(
        from_ms < to_ms,
        "the stretch ends before it begins\n  found: --from {}, --to {}\n  help: -2h is two hours ago",
        export.from,
        export.to.as_deref().unwrap_or("now")
    );
    let mut reader = Reader::open(&store)?;
    let start = Start {
        version: env!("CARGO_PKG_VERSION").into(),
        boot_id: String::new(),
        pid: std::process::id(),
        at_ms: now_ms,
    };
    let mut recording = Recording::create(&export.file, &start)?;
    let copied = copy(&mut reader, &mut recording, (from_ms, to_ms), export.keep_names);
    let frames = recording.frames();
    let bytes = recording.finish(now_ms);
    if copied.is_err() || frames == 0 {
        // Half a file, or an empty one, is of no use to anyone.
        let _ = std::fs::remove_file(&export.file);
    }
    copied?;
    anyhow::ensure!(frames > 0, nothing(&reader, &store, now_ms));
    report::say(&format!(
        "exported {frames} snapshots, {} in {}{}",
        units::bytes(bytes?),
        export.file.display(),
        if export.keep_names { "" } else { "; names are taken out" }
    ));
    Ok(ExitCode::SUCCESS)
}

fn moment(text: &str, now_ms: u64) -> anyhow::Result<u64> {
    parse_moment(text, now_ms, offset_seconds(now_ms))
        .map_err(|why| anyhow::anyhow!("cannot read the time {text}: {why}"))
}

fn offset_seconds(at_ms: u64) -> i32 {
    let at = i64::try_from(at_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    jiff::tz::TimeZone::system().to_offset(at.unwrap_or_default()).seconds()
}

fn nothing(reader: &Reader, store: &Path, now_ms: u64) -> String {
    let store = store.display();
    let words = match reader.span() {
        Ok(Some(span)) => {
            let words = |ms| units::moment(ms, now_ms, offset_seconds(now_ms));
            format!("it goes from {} to {}", words(span.from_ms), words(span.to_ms))
        }
        _ => "it is empty".into(),
    };
    format!("nothing is recorded in this stretch\n  found: {store}: {words}")
}

fn copy(
    reader: &mut Reader,
    recording: &mut Recording,
    (from_ms, to_ms): (u64, u64),
    keep_names: bool,
) -> anyhow::Result<()> {
    // What follows from the snapshots is found again; what the daemon itself did is not.
    let follows = |kind| {
        matches!(kind, MarkKind::Finding | MarkKind::Xid | MarkKind::DriverChange | MarkKind::Other)
    };
    for mark in reader.marks(from_ms, to_ms)?.iter().filter(|mark| !follows(mark.kind)) {
        recording.mark(mark)?;
    }
    let mut names = Anonymiser::default();
    reader.frames(from_ms, to_ms, |stored| {
        let mut snapshot =
            Snapshot::decode(&stored.bytes).context("cannot read a stored snapshot")?;
        let mut bytes = stored.bytes;
        if !keep_names {
            names.clean(&mut snapshot);
            bytes = snapshot.encode().context("cannot encode a snapshot")?;
        }
        recording.keep(&Moment::new(stored.number, bytes.into(), snapshot))
    })
}
