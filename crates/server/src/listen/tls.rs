//! TLS of a listener: its certificate and key, which are read again when they change, and the
//! handshake. A connection that does not start with a handshake stays as it is: nodes talk to each
//! other so, and whoever else does is told to use HTTPS.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::stall::WriteTimeoutStream;
use crate::config::TlsConfig;
use crate::error::{Error, ErrorCode, Result};
use crate::file_watch::{FileMark, Reload};

/// The first byte of a connection that starts with a handshake.
const HANDSHAKE: u8 = 0x16;
/// The largest file that is read, in bytes.
const FILE_LEN_MAX: u64 = 1024 * 1024;
/// The protocols that are offered, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Marks a request on a connection with TLS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TlsConnection;

/// Marks a request on a connection without TLS to a listener that has a certificate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainConnection;

/// The certificate of a listener.
pub(crate) struct Certificate {
    files: TlsConfig,
    /// What the files were when they were read last.
    marks: Mutex<[Option<FileMark>; 2]>,
    current: RwLock<Arc<ServerConfig>>,
}

impl Certificate {
    /// Reads the files.
    pub(crate) fn open(files: TlsConfig) -> Result<Self> {
        let marks = Mutex::new(marks(&files));
        let current = RwLock::new(Arc::new(read(&files)?));
        Ok(Self { files, marks, current })
    }

    /// Performs the handshake of a connection.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<WriteTimeoutStream>> {
        let config = Arc::clone(&*self.current.read().unwrap_or_else(PoisonError::into_inner));
        TlsAcceptor::from(config).accept(WriteTimeoutStream::new(stream)).await
    }
}

/// Whether a connection starts with a handshake, once its first byte has arrived.
pub(super) async fn starts_with_handshake(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let read = stream.peek(&mut first).await?;
    Ok(read == 1 && first == [HANDSHAKE])
}

impl Reload for Certificate {
    const WHAT: &str = "the certificate";

    fn reload(&self) -> Result<bool> {
        let found = marks(&self.files);
        {
            let mut known = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
            if *known == found {
                return Ok(false);
            }
            *known = found;
        }
        let fresh = Arc::new(read(&self.files)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(true)
    }
}

fn marks(files: &TlsConfig) -> [Option<FileMark>; 2] {
    [FileMark::of(&files.cert), FileMark::of(&files.key)]
}

fn refuse(path: &Path, problem: &str) -> Error {
    Error::new(ErrorCode::BadConfig, format!("{} cannot be used: {problem}.", path.display()))
}

fn read_bounded(path: &Path) -> Result<Vec<u8>> {
    let failed = |error: io::Error| refuse(path, &format!("it cannot be read: {error}"));
    let len = std::fs::metadata(path).map_err(failed)?.len();
    if len > FILE_LEN_MAX {
        return Err(refuse(path, &format!("it is {len} bytes long; the most is {FILE_LEN_MAX}")));
    }
    std::fs::read(path).map_err(failed)
}

/// Reads the certificate, with those that lead to its issuer, and its key.
fn read(files: &TlsConfig) -> Result<ServerConfig> {
    let (cert, key) = (&files.cert, &files.key);
    let chain: std::result::Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(&read_bounded(cert)?).collect();
    let chain = chain.map_err(|error| refuse(cert, &format!("it is not PEM: {error}")))?;
    if chain.is_empty() {
        return Err(refuse(cert, "there is no certificate in it"));
    }
    let secret = PrivateKeyDer::from_pem_slice(&read_bounded(key)?)
        .map_err(|error| refuse(key, &format!("there is no private key in it: {error}")))?;
    // The provider that is linked for upstreams already.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refuse(cert, &error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| refuse(cert, &format!("it does not go with {}: {error}", key.display())));
    let mut config = config?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
    Ok(config)
}
