//! A real Prometheus computes right rates from what the daemon exports, across a restart of the
//! daemon and a reload of the driver, and ends the series of what is gone.

use crate::gpu_box::GpuBox;
use crate::prometheus_server::{Prometheus, address};
use crate::running_daemon::Daemon;

/// Four GPUs that draw 400 W each, whatever they do.
const STEADY: &str = "
[[gpu]]
model = 'A100 80GB PCIe'
count = 4
power = 400
";

const ENERGY: &str = "infertop_gpu_energy_joules_total{gpu='2'}";

/// The rate is what is drawn, never was more, and nothing is counted twice: a scrape a second brings
/// 400 J each, and those that are missing may have been made up for by the next one.
fn is_steady(prometheus: &Prometheus) {
    let watts = |expression: &str| prometheus.number(expression).unwrap();
    let now = watts(&format!("rate({ENERGY}[8s])"));
    assert!((360.0..440.0).contains(&now), "now {now} W");
    let most = watts(&format!("max_over_time((rate({ENERGY}[8s]))[1m:1s])"));
    assert!(most < 460.0, "once {most} W");
    let each = watts(&format!("increase({ENERGY}[1m]) / count_over_time({ENERGY}[1m])"));
    assert!((350.0..750.0).contains(&each), "{each} J a scrape");
}

#[test]
fn rates_come_out_right_across_a_restart_of_the_daemon() {
    let gpu_box = GpuBox::written(STEADY);
    let mut daemon = Daemon::start(&gpu_box, &["--listen", "127.0.0.1:0", "--interval", "250ms"]);
    let address = address(&daemon);
    let Some(prometheus) = Prometheus::start(&address, "") else { return };
    prometheus.until(&format!("count_over_time({ENERGY}[1m])"), |scrapes| scrapes >= 8.0);
    assert!(daemon.end().success());
    prometheus.until("up", |up| is(up, 0.0));
    let arguments = ["--listen", &address, "--interval", "250ms"];
    let _daemon = Daemon::again(&gpu_box, daemon.folder(), &arguments);
    prometheus.until("up", |up| is(up, 1.0));
    prometheus.until(&format!("count_over_time({ENERGY}[1m])"), |scrapes| scrapes >= 18.0);
    is_steady(&prometheus);
    // The driver went on counting; the daemon began anew.
    assert_eq!(prometheus.number(&format!("resets({ENERGY}[1m])")), Some(0.0));
    assert_eq!(prometheus.number("resets(infertop_snapshots_total[1m])"), Some(1.0));
    let pace = prometheus.number("max_over_time(rate(infertop_snapshots_total[10s])[20s:1s])");
    assert!(pace.is_some_and(|pace| pace < 6.0), "{pace:?} snapshots a second");
    let starts = "changes(infertop_start_time_seconds[1m])";
    assert_eq!(prometheus.number(starts), Some(1.0));
}

#[test]
fn rates_come_out_right_across_a_reload_of_the_driver() {
    let reload = "\n[[reload]]\nat = 14\ngone_seconds = 3\nnew_version = '590.48.01'\n";
    let gpu_box = GpuBox::written(&format!("{STEADY}{reload}"));
    let daemon = Daemon::start(&gpu_box, &["--listen", "127.0.0.1:0", "--interval", "250ms"]);
    let Some(prometheus) = Prometheus::start(&address(&daemon), "") else { return };
    prometheus.until(&format!("count_over_time({ENERGY}[1m])"), |scrapes| scrapes >= 6.0);
    prometheus.until("infertop_gpu_up{gpu='2'}", |up| is(up, 0.0));
    // The series ends at once instead of repeating what it was.
    assert_eq!(prometheus.number(ENERGY), None);
    prometheus.until("infertop_gpu_up{gpu='2'}", |up| is(up, 1.0));
    prometheus.until(&format!("count_over_time({ENERGY}[12s])"), |scrapes| scrapes >= 11.0);
    assert_eq!(prometheus.number(&format!("resets({ENERGY}[1m])")), Some(1.0));
    is_steady(&prometheus);
    let versions =
        prometheus.query("count by (version) (last_over_time(infertop_driver_info[1m]))");
    assert!(versions.iter().any(|(labels, _)| labels["version"] == "590.48.01"), "{versions:?}");
}

#[test]
fn a_gpu_that_is_lost_ends_its_series_and_is_down() {
    let gpu_box = GpuBox::written(
        "
[[gpu]]
model = 'H100 80GB HBM3'
count = 2

[[gpu]]
model = 'H100 80GB HBM3'
lost_at = 6
",
    );
    let daemon = Daemon::start(&gpu_box, &["--listen", "127.0.0.1:0", "--interval", "250ms"]);
    let Some(prometheus) = Prometheus::start(&address(&daemon), "") else { return };
    let busy = "infertop_gpu_busy_ratio{gpu='2'}";
    prometheus.until(&format!("count({busy})"), |found| is(found, 1.0));
    prometheus.until("infertop_gpu_up{gpu='2'}", |up| is(up, 0.0));
    assert_eq!(prometheus.number(busy), None);
    assert_eq!(prometheus.number("infertop_gpus_expected - infertop_gpus_visible"), Some(1.0));
    assert_eq!(prometheus.number("count(infertop_gpu_busy_ratio)"), Some(2.0));
    let cause = "infertop_finding_active{cause='gpu_fell_off_bus',gpu='2'}";
    assert_eq!(prometheus.number(cause), Some(1.0));
}

#[test]
fn prometheus_is_given_openmetrics_with_help_and_kind() {
    let gpu_box = GpuBox::of("eight-h100");
    let daemon = Daemon::start(&gpu_box, &["--listen", "127.0.0.1:0", "--interval", "250ms"]);
    let Some(prometheus) = Prometheus::start(&address(&daemon), "") else { return };
    prometheus.until("count(infertop_gpu_energy_joules_total)", |found| is(found, 8.0));
    // Only OpenMetrics has this kind; the text format would make it a gauge.
    let told = prometheus.api("/api/v1/targets/metadata?metric=infertop_build");
    assert_eq!(told["data"][0]["type"], "info", "{told}");
    let told = prometheus.api("/api/v1/targets/metadata?metric=infertop_gpu_energy_joules");
    let help = told["data"][0]["help"].as_str().unwrap_or_default();
    assert!(help.starts_with("Energy"), "{told}");
    let scraped =
        prometheus.query("scrape_samples_scraped - scrape_samples_post_metric_relabeling");
    assert_eq!(scraped[0].1.total_cmp(&0.0), std::cmp::Ordering::Equal, "{scraped:?}");
}

/// Counts and truths are whole numbers.
fn is(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() < 1e-9
}
