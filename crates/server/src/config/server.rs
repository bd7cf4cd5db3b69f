//! The server itself: `[server]`.

use std::path::PathBuf;

use super::problem::ConfigProblem;
use super::read::read_public_url;
use super::section::Section;
use super::value::LocatedValue;

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The certificate and those that lead to its issuer, in PEM.
    pub cert: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
}

/// The keys of the section, as far as they are valid.
pub(super) struct ServerSection {
    pub listen: Option<LocatedValue<String>>,
    pub node: Option<LocatedValue<String>>,
    pub workers: Option<u64>,
    pub drain_s: Option<u64>,
    pub connections_max: Option<u64>,
    pub read_timeout_s: Option<u64>,
    pub public_url: Option<String>,
    pub tls: Option<TlsConfig>,
}

pub(super) fn read(root: &mut Section<'_>, problems: &mut Vec<ConfigProblem>) -> ServerSection {
    let mut server = root.section("server", problems);
    let read = ServerSection {
        listen: server.text("listen", problems),
        node: server.text("node", problems),
        workers: server.integer("workers", 1..=100_000, problems),
        drain_s: server.integer("drain_s", 0..=86_400, problems),
        connections_max: server.integer("connections_max", 1..=1_000_000, problems),
        read_timeout_s: server.integer("read_timeout_s", 1..=3_600, problems),
        public_url: server.text("public_url", problems).and_then(|found| read_public_url(found, problems)),
        tls: read_tls(&mut server, problems),
    };
    server.finish(problems);
    read
}

/// Reads the files of a certificate: both of them, or none.
fn read_tls(server: &mut Section<'_>, problems: &mut Vec<ConfigProblem>) -> Option<TlsConfig> {
    let mut path = |key| server.text(key, problems).map(|found| found.value).filter(|path| !path.is_empty());
    let (cert, key) = (path("tls_cert"), path("tls_key"));
    match (cert, key) {
        (Some(cert), Some(key)) => Some(TlsConfig { cert: cert.into(), key: key.into() }),
        (None, None) => None,
        (Some(_), None) => {
            problems.push(server.problem_at("tls_cert", "A certificate needs its key: tls_key."));
            None
        }
        (None, Some(_)) => {
            problems.push(server.problem_at("tls_key", "A key needs its certificate: tls_cert."));
            None
        }
    }
}
