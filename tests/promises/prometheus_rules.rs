//! Alert rules, dashboard and unit are what their own tools take them for.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::gpu_box::GpuBox;
use crate::prometheus_server::{Prometheus, address, tool};
use crate::running_daemon::Daemon;

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging").join(file)
}

/// Runs a program that must have nothing to complain about.
fn passes(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn alert_rules_are_well_formed_and_fire_on_their_faults_alone() {
    let Some(promtool) = tool("promtool", "prometheus") else { return };
    let said =
        passes(Command::new(&promtool).args(["check", "rules"]).arg(packaging("alerts.yml")));
    assert!(!said.contains("duplicate"), "{said}");
    passes(Command::new(&promtool).args(["test", "rules"]).arg(packaging("alerts_test.yml")));
    // Each alert is one of those that the tests see fire.
    let rules = std::fs::read_to_string(packaging("alerts.yml")).unwrap();
    let tests = std::fs::read_to_string(packaging("alerts_test.yml")).unwrap();
    let names: Vec<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "{name} is never seen to fire");
        let rule = rules.split(&format!("- alert: {name}\n")).nth(1).unwrap();
        let rule = rule.split("- alert:").next().unwrap();
        for part in ["summary:", "description:", "runbook:", "severity:"] {
            assert!(rule.contains(part), "{name} has no {part}");
        }
    }
}

/// All expressions of the dashboard, with the name of their panel.
fn expressions(value: &Value) -> Vec<(String, String)> {
    let panels = value["panels"].as_array().unwrap().iter();
    panels
        .flat_map(|panel| {
            let title = panel["title"].as_str().unwrap();
            let targets = panel["targets"].as_array().into_iter().flatten();
            targets.map(move |target| {
                let expression = target["expr"].as_str().unwrap();
                let expression = expression.replace("$instance", ".*");
                (title.to_string(), expression.replace("$__rate_interval", "30s"))
            })
        })
        .collect()
}

#[test]
fn every_panel_of_the_dashboard_shows_something_of_a_running_box() {
    // No findings on a healthy box, and no memory temperature in the counters of some.
    const MAY_BE_EMPTY: [&str; 1] = ["Findings"];
    let text = std::fs::read_to_string(packaging("grafana/infertop.json")).unwrap();
    let expressions = expressions(&serde_json::from_str(&text).unwrap());
    assert!(expressions.len() > 30);
    let gpu_box = GpuBox::of("eight-h100");
    let daemon = Daemon::start(&gpu_box, &["--listen", "127.0.0.1:0", "--interval", "250ms"]);
    let Some(prometheus) = Prometheus::start(&address(&daemon), "") else { return };
    prometheus.until("count_over_time(infertop_sampler_up[1m])", |scrapes| scrapes >= 4.0);
    prometheus.until("count(infertop_gpu_nvlink_crc_errors_total) > 0", |_| true);
    prometheus.until("count(infertop_host_shm_used_bytes)", |found| found > 0.0);
    for (panel, expression) in expressions {
        let found = prometheus.query(&expression);
        let may = MAY_BE_EMPTY.contains(&&*panel);
        assert!(!found.is_empty() || may, "{panel}: nothing from {expression}");
    }
}

#[test]
fn the_unit_is_one_that_systemd_takes_and_is_kept_from_what_it_does_not_need() {
    let Some(analyze) = tool("systemd-analyze", "systemd") else { return };
    // The program lies elsewhere here.
    let text = std::fs::read_to_string(packaging("infertop.service")).unwrap();
    let text = text
        .replace("ExecStart=infertop", &format!("ExecStart={}", env!("CARGO_BIN_EXE_infertop")));
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("infertop.service");
    std::fs::write(&unit, text).unwrap();
    let said = passes(Command::new(&analyze).arg("verify").arg(&unit));
    assert!(!said.contains("infertop.service"), "{said}");
    // The score that packaging/README.md notes; higher is worse.
    passes(
        Command::new(&analyze).args(["security", "--offline=true", "--threshold=26"]).arg(&unit),
    );
}
