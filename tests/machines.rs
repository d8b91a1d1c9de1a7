//! Recorded machines: every folder below `tests/machines` is a box. The real binary looks at it, and
//! what it shows is held against goldens in `tests/golden`. A new box needs its folder and no line here.
//!
//! After an intended change: `INSTA_UPDATE=always cargo test --test machines`, then read the diff as
//! the person who is woken by it would. `MACHINES=t4-in-container` takes only the boxes whose names
//! contain that.

#![allow(missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, reason = "all of this is test code; a panic is how a test speaks")]

#[path = "machines/golden.rs"]
mod golden;
#[path = "machines/normal.rs"]
mod normal;
#[path = "machines/recorded.rs"]
mod recorded;
#[path = "machines/screens.rs"]
mod screens;
#[path = "machines/truths.rs"]
mod truths;

use recorded::{machines, run_all};

#[test]
fn the_table_of_every_machine() {
    run_all(|machine| {
        let output = machine.once(&[]);
        golden::check(machine, "once", &recorded::said(&output, "infertop once"));
    });
}

#[test]
fn the_json_of_every_machine() {
    run_all(|machine| {
        golden::check(machine, "json", &machine.json());
    });
}

#[test]
fn every_panel_on_every_machine() {
    run_all(|machine| {
        let picture = machine.picture();
        for entry in panels::panels::PANELS {
            golden::check(machine, entry.name, &screens::colour(&picture, entry.name, (80, 24)));
        }
        golden::check(
            machine,
            "overview-200x50",
            &screens::colour(&picture, "overview", (200, 50)),
        );
    });
}

#[test]
fn the_overview_without_colour_and_without_room() {
    run_all(|machine| {
        let picture = machine.picture();
        let both = [(80, 24), (60, 15)].map(|size| screens::plain(&picture, "overview", size));
        golden::check(machine, "overview-plain", &both.join("\n"));
    });
}

#[test]
fn what_must_hold_on_every_machine() {
    run_all(|machine| {
        let picture = machine.picture();
        truths::memory_adds_up(&picture);
        truths::numbers_are_in_order(&picture.snapshot);
        truths::listed_pids_are_known(machine, &picture.snapshot);
        truths::nothing_absent_is_zero(machine, &picture.snapshot);
    });
}

#[test]
fn no_output_shows_a_secret_or_leaves_its_columns() {
    let planted: usize = machines().iter().map(|machine| machine.about.secrets.len()).sum();
    assert!(planted >= 3 || recorded::filtered(), "only {planted} secrets are planted");
    run_all(|machine| {
        let picture = machine.picture();
        let table = machine.once(&[]);
        let json = machine.once(&["--json"]);
        let mut said = vec![
            format!("{:?}", picture.snapshot),
            recorded::utf8(&json.stdout),
            recorded::utf8(&table.stdout),
            recorded::utf8(&table.stderr),
        ];
        for entry in panels::panels::PANELS {
            for size in [(40, 8), (80, 24), (200, 50)] {
                said.push(screens::colour(&picture, entry.name, size));
            }
        }
        truths::no_secret(machine, &said);
        truths::within_columns("once", &recorded::utf8(&table.stdout), 80);
        truths::within_columns("complaints of once", &recorded::utf8(&table.stderr), 80);
        for entry in panels::panels::PANELS {
            let plain = screens::plain(&picture, entry.name, (80, 24));
            truths::within_columns(entry.name, &plain, 80);
            assert!(plain.is_ascii(), "{}: not ASCII:\n{plain}", entry.name);
        }
    });
}

#[test]
fn every_golden_belongs_to_a_machine() {
    let names: Vec<String> = machines().iter().map(|machine| machine.name.clone()).collect();
    if recorded::filtered() {
        return println!("skipped: MACHINES names only some");
    }
    for folder in std::fs::read_dir(golden::folder()).unwrap() {
        let folder = folder.unwrap().file_name().into_string().unwrap();
        assert!(names.contains(&folder), "no machine for tests/golden/{folder}");
    }
}

#[test]
fn the_generator_gives_what_is_here() {
    let script = recorded::folder().join("make.py");
    let run = std::process::Command::new("python3").arg("-B").arg(script).arg("--check").output();
    match run {
        Err(why) => println!("skipped: python3 cannot be started ({why})"),
        Ok(run) => assert!(run.status.success(), "{}", recorded::utf8(&run.stdout)),
    }
}
