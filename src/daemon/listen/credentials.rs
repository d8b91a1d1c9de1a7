//! The token that a client must know, and the certificate that it is shown. Both are files, and read
//! again when they change: certificates are renewed while a daemon runs.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use subtle::ConstantTimeEq as _;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::Metrics;
use crate::daemon::log::{self, Level};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// A shorter one can be guessed.
const LEAST_TOKEN_BYTES: usize = 16;
/// No key, chain or token is larger.
const MOST_BYTES: u64 = 1 << 20;

/// What protects the metrics.
#[derive(Clone, Default)]
pub(super) struct Credentials {
    /// Absent: everybody may read.
    pub(super) token: Option<Vec<u8>>,
    /// Absent: in the clear.
    pub(super) tls: Option<TlsAcceptor>,
    /// Of the files, as they were read.
    stamps: Vec<Stamp>,
}

/// Tells whether a file is another than before.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Credentials {
    /// Whether who sends this `Authorization` header may read.
    pub(super) fn admit(&self, authorization: Option<&[u8]>) -> bool {
        let Some(token) = &self.token else { return true };
        let given = authorization.and_then(|header| {
            let (scheme, rest) = header.split_at_checked(b"Bearer ".len())?;
            scheme.eq_ignore_ascii_case(b"Bearer ").then(|| rest.trim_ascii())
        });
        // In a time that does not tell how much of it is right.
        given.is_some_and(|given| given.ct_eq(token).into())
    }
}

/// Reads the files; an error says what is wrong with which.
pub(super) async fn read(options: Metrics) -> Result<Credentials, String> {
    let read = tokio::task::spawn_blocking(move || read_now(&options)).await;
    read.unwrap_or_else(|panic| Err(format!("reading token and certificate broke down: {panic}")))
}

/// Reads them again when they change; those that cannot be used are told of, and the last good ones
/// stay.
pub(super) async fn keep_fresh(options: Metrics, sender: watch::Sender<Arc<Credentials>>) {
    if files(&options).next().is_none() {
        return;
    }
    let mut trouble = log::State::default();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let (asked, before) = (options.clone(), sender.borrow().stamps.clone());
        let look = move || (stamps(&asked) != before).then(|| read_now(&asked));
        match tokio::task::spawn_blocking(look).await {
            Ok(Some(Ok(credentials))) => {
                log::info("token and certificate of the metrics were read again");
                trouble.clear();
                sender.send_replace(Arc::new(credentials));
            }
            Ok(Some(Err(why))) => {
                trouble.say(
                    Level::Error,
                    &format!("{why}\n  help: the last good one holds until then"),
                );
            }
            Ok(None) | Err(_) => {}
        }
    }
}

fn files(options: &Metrics) -> impl Iterator<Item = &PathBuf> {
    let Metrics { token_file, tls_certificate_file, tls_key_file, .. } = options;
    [token_file, tls_certificate_file, tls_key_file].into_iter().flatten()
}

fn stamps(options: &Metrics) -> Vec<Stamp> {
    let stamp = |path: &PathBuf| {
        let found = fs::metadata(path).ok()?;
        let changed = (found.ctime(), found.ctime_nsec());
        Some(Stamp { inode: found.ino(), bytes: found.len(), changed })
    };
    files(options).filter_map(stamp).collect()
}

fn read_now(options: &Metrics) -> Result<Credentials, String> {
    // Before they are read: what changes meanwhile is read again.
    let stamps = stamps(options);
    let token = options.token_file.as_deref().map(token).transpose()?;
    let tls = match (&options.tls_certificate_file, &options.tls_key_file) {
        (Some(certificate), Some(key)) => Some(tls(certificate, key)?),
        (None, None) => None,
        (certificate, _) => {
            let (there, missing) = match certificate {
                Some(_) => ("tls_certificate_file", "tls_key_file"),
                None => ("tls_key_file", "tls_certificate_file"),
            };
            return Err(format!(
                "metrics cannot be served over TLS: metrics.{missing} is missing\n  \
                 help: set it beside metrics.{there}"
            ));
        }
    };
    Ok(Credentials { token, tls, stamps })
}

fn token(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = content(path, "the token of the metrics")?;
    let token = bytes.trim_ascii();
    if token.len() < LEAST_TOKEN_BYTES || !token.iter().all(u8::is_ascii_graphic) {
        return Err(format!(
            "the token of the metrics cannot be used: {}\n  found: {} bytes\n  help: write one line of \
             at least {LEAST_TOKEN_BYTES} letters and digits, as openssl rand -hex 32 prints it",
            path.display(),
            token.len()
        ));
    }
    Ok(token.to_vec())
}

fn tls(certificate: &Path, key: &Path) -> Result<TlsAcceptor, String> {
    let broken = |what: &str, path: &Path, why: &dyn std::fmt::Display| {
        format!(
            "{what} of the metrics cannot be used: {}\n  found: {why}\n  help: it must be PEM, as \
             openssl and certbot write it",
            path.display()
        )
    };
    let pem = content(certificate, "the certificate of the metrics")?;
    let chain: Result<Vec<CertificateDer<'_>>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.map_err(|error| broken("the certificate", certificate, &error))?;
    let chain: Vec<_> = chain.into_iter().map(CertificateDer::into_owned).collect();
    if chain.is_empty() {
        return Err(broken("the certificate", certificate, &"no certificate in it"));
    }
    let pem = content(key, "the private key of the metrics")?;
    let private = PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|error| broken("the private key", key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|error| broken("the private key", key, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn content(path: &Path, what: &str) -> Result<Vec<u8>, String> {
    let read = || {
        let found = fs::metadata(path)?;
        if found.len() > MOST_BYTES || !found.is_file() {
            return Err(std::io::Error::other("it is no file of usual size"));
        }
        fs::read(path)
    };
    read().map_err(|error| {
        format!(
            "cannot read {what}: {}\n  found: {error}\n  help: make it a file that the daemon's user \
             may read, and nobody else",
            path.display()
        )
    })
}
