//! `docs/metrics.md` is made from the tables and may not go stale.

use std::fmt::Write as _;
use std::path::Path;

use probes::host::HOST_METRICS;
use probes::metric::{Kind, Metric, Pick};
use probes::nvml;
use prometheus_client::metrics::MetricType;

use crate::exporter::own::ROWS;

const HEAD: &str = "# Metrics

Made from the metric tables; `UPDATE_DOCS=1 cargo test --lib metrics_page` writes it anew. The daemon
serves them at `/metrics` when it is started with `--listen`: as OpenMetrics where that is asked for,
else in Prometheus's text format.

- A reading without a value is left out, never 0. So is every reading of a GPU that does not answer:
  `infertop_gpu_up` is then 0. When the newest snapshot is older than three intervals and 2 s, or the
  GPUs are let go on request, everything that it said is left out; `infertop_sampler_up`,
  `infertop_released` and `infertop_snapshot_age_seconds` say so.
- `gpu` is the GPU's number. It is the driver's when the sampler starts and stays while it runs; after
  a GPU was taken out and the driver loaded anew, another one may have it. `infertop_gpu_info` tells
  who it is: `… * on (instance, gpu, mig) group_left (uuid, name) infertop_gpu_info`.
- `mig` names a MIG instance and is missing for a whole GPU, whose memory includes that of its
  instances: `{mig=\"\"}` leaves those out of a sum.
- Counters are the driver's: they begin anew when it is loaded or the GPU is reset, which `rate` and
  `increase` know how to take. Of the ones that the GPU itself keeps for life, use the value rather
  than `increase`: a number that has passed on to another GPU would look like one.
- There are no processes, users or commands in labels; those are in the JSON of the socket.
";

fn rows<S: 'static>(page: &mut String, metrics: impl Iterator<Item = &'static Metric<S>>) {
    head(page);
    for metric in metrics {
        let kind = match metric.kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
        };
        let label = match metric.pick {
            Pick::One(_) => "",
            Pick::Each { label, .. } => label,
        };
        let _ = writeln!(page, "| `{}` | {kind} | {label} | {} |", metric.name, metric.help);
    }
}

fn head(page: &mut String) {
    page.push_str("\n| metric | kind | labels | meaning |\n|---|---|---|---|\n");
}

#[test]
fn the_metrics_page_says_what_the_tables_say() {
    let mut page = String::from(HEAD);
    page.push_str("\n## Of a GPU\n\nWith `gpu`, and `mig` for a MIG instance, besides the labels named here.\n");
    rows(&mut page, nvml::metrics());
    page.push_str("\n## Of the host\n");
    rows(&mut page, HOST_METRICS.iter());
    page.push_str("\n## Of the daemon, and of what it makes of a snapshot\n");
    head(&mut page);
    for row in ROWS {
        let kind = match row.kind {
            MetricType::Counter => "counter",
            MetricType::Info => "info",
            _ => "gauge",
        };
        let labels = row.labels.join(", ");
        let _ = writeln!(page, "| `{}` | {kind} | {labels} | {} |", row.name, row.help);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let stands = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stands == page, "docs/metrics.md is stale: run with UPDATE_DOCS=1");
}
