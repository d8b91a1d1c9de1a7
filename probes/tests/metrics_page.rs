//! `docs/metrics.md` is made from the metric tables and may not go stale.

use std::fmt::Write as _;
use std::path::Path;

use probes::host::HOST_METRICS;
use probes::metric::{Kind, Metric, Pick};
use probes::nvml;

fn rows<S: 'static>(page: &mut String, metrics: impl Iterator<Item = &'static Metric<S>>) {
    page.push_str("\n| metric | kind | label | meaning |\n|---|---|---|---|\n");
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

#[test]
fn the_metrics_page_says_what_the_tables_say() {
    let mut page = String::from(
        "# Metrics\n\nMade from the metric tables; `UPDATE_DOCS=1 cargo test -p infertop-probes --test \
         metrics_page` writes it anew. A reading without a value is left out, never 0.\n\n## Of a GPU\n",
    );
    rows(&mut page, nvml::metrics());
    page.push_str("\n## Of the host\n");
    rows(&mut page, HOST_METRICS.iter());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let stands = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stands == page, "docs/metrics.md is stale: run with UPDATE_DOCS=1");
}
