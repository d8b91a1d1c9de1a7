//! Token and TLS, as a real Prometheus uses them.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::gpu_box::GpuBox;
use crate::prometheus_server::{Prometheus, address, get, tool};
use crate::running_daemon::Daemon;
use crate::waiting::until;

const TOKEN: &str = "5f1c2d3e4f5061728394a5b6c7d8e9f0";

/// A certificate for this machine's own address, and its key.
fn certificate(openssl: &Path, folder: &Path, name: &str) {
    let output = Command::new(openssl)
        .args(["req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
        .args(["-days", "2", "-subj", "/CN=infertop", "-addext", "subjectAltName=IP:127.0.0.1"])
        .arg("-keyout")
        .arg(folder.join("key.new"))
        .arg("-out")
        .arg(folder.join("certificate.new"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The key first, as whoever renews certificates does it: for a moment they do not fit.
    for what in ["key", "certificate"] {
        std::fs::rename(
            folder.join(format!("{what}.new")),
            folder.join(format!("{name}-{what}.pem")),
        )
        .unwrap();
    }
}

/// A configuration with these lines under `[metrics]`.
fn configuration(folder: &Path, lines: &str) -> String {
    let path = folder.join("config.toml");
    let text = format!("interval_ms = 250\n[metrics]\nlisten = \"127.0.0.1:0\"\n{lines}");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn token_file(folder: &Path) -> String {
    let path = folder.join("token");
    std::fs::write(&path, format!("{TOKEN}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

#[test]
fn prometheus_scrapes_with_token_and_tls_and_nobody_else_does() {
    let Some(openssl) = tool("openssl", "openssl") else { return };
    let files = tempfile::tempdir().unwrap();
    let folder = files.path();
    certificate(&openssl, folder, "own");
    let token = token_file(folder);
    let lines = format!(
        "token_file = \"{token}\"\ntls_certificate_file = \"{0}/own-certificate.pem\"\n\
         tls_key_file = \"{0}/own-key.pem\"\n",
        folder.display()
    );
    let config = configuration(folder, &lines);
    let gpu_box = GpuBox::of("eight-h100");
    let daemon = Daemon::start(&gpu_box, &["--config", &config]);
    let address = address(&daemon);
    let url = daemon.json("/v1/health")["metrics_url"].clone();
    assert!(url.as_str().is_some_and(|url| url.starts_with("https://")), "{url}");
    // In the clear nothing is told, not even to who knows the token.
    let plain = get(&address, "/metrics", &format!("authorization: Bearer {TOKEN}\r\n"));
    assert!(plain.is_err(), "{plain:?}");
    let secure = format!(
        "    scheme: https\n    tls_config:\n      ca_file: {}/own-certificate.pem\n    authorization:\n      \
         credentials_file: {token}\n",
        folder.display()
    );
    // Who connects and says nothing keeps no handshake waiting.
    let silent: Vec<_> = (0..100).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let Some(prometheus) = Prometheus::start(&address, &secure) else { return };
    prometheus.until("count(infertop_gpu_up == 1)", |up| up > 7.5);
    drop(silent);
    let without = secure.split("    authorization:").next().unwrap();
    let other = Prometheus::start(&address, without).unwrap();
    other.until("up", |up| up == 0.0);
    let targets = other.api("/api/v1/targets");
    let why = targets["data"]["activeTargets"][0]["lastError"].as_str().unwrap_or_default();
    assert!(why.contains("401"), "{targets}");

    // A renewed certificate is shown without a restart.
    certificate(&openssl, folder, "own");
    until("the renewed certificate", || daemon.log().contains("were read again"));
    let renewed = Prometheus::start(&address, &secure).unwrap();
    renewed.until("count(infertop_gpu_up == 1)", |up| up > 7.5);
}

#[test]
fn a_token_is_asked_for_and_the_log_never_has_it() {
    let files = tempfile::tempdir().unwrap();
    let token = token_file(files.path());
    let config = configuration(files.path(), &format!("token_file = \"{token}\"\n"));
    let daemon = Daemon::start(&GpuBox::of("empty"), &["--config", &config]);
    let address = address(&daemon);
    assert_eq!(get(&address, "/metrics", "").unwrap().status, 401);
    let known = format!("authorization: Bearer {TOKEN}\r\n");
    assert_eq!(get(&address, "/metrics", &known).unwrap().status, 200);
    assert_eq!(get(&address, "/healthz", "").unwrap().status, 200);
    let health = daemon.json("/v1/health").to_string();
    assert!(!daemon.log().contains("everybody on this machine"), "{}", daemon.log());
    assert!(!daemon.log().contains(TOKEN) && !health.contains(TOKEN), "{}", daemon.log());
}

#[test]
fn without_them_an_address_that_others_reach_is_warned_of() {
    let daemon = Daemon::start(&GpuBox::of("empty"), &["--listen", "0.0.0.0:0"]);
    address(&daemon);
    let health = daemon.json("/v1/health");
    let told = health["reasons"].to_string();
    assert!(told.contains("without a token and without TLS"), "{health}");
    assert!(daemon.log().contains("without a token and without TLS"), "{}", daemon.log());
    assert!(daemon.log().contains("metrics.token_file"), "{}", daemon.log());
}
