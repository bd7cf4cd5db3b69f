//! TLS with a certificate of our own, and a client that trusts it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use reqwest::Method;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tidegate_server::Server;
use tidegate_server::config::{ApiToken, TlsConfig, TokenScope};
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::support::{World, answer, config, within};

const TOKEN: &str = "the-token-of-a-reader";

fn new_certificate() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap()
}

/// Writes a certificate and its key, and returns their files.
fn write(folder: &Path, made: &CertifiedKey<KeyPair>) -> TlsConfig {
    let files = TlsConfig { cert: folder.join("cert.pem"), key: folder.join("key.pem") };
    std::fs::write(&files.cert, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    files
}

async fn world_with(files: TlsConfig) -> World {
    let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let mut config = config(&sim, "");
    config.tls = Some(files);
    config.tokens = vec![ApiToken::new("reader", TOKEN, vec![TokenScope::Read])];
    let server = Server::start(config).await.unwrap();
    World { server, sim, client: reqwest::Client::new() }
}

/// Sends a request over TLS to a server with a certificate that this client trusts; returns the
/// response.
async fn call(
    world: &World,
    trusted: &CertificateDer<'static>,
    head: &str,
    body: &str,
) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(world.server.addr).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let request = format!(
        "{head}\r\nhost: localhost\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut text = Vec::new();
    // Not every peer says goodbye.
    let _ = stream.read_to_end(&mut text).await;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A client that trusts the certificate is served; one that does not, and one without TLS, are not.
#[tokio::test]
async fn clients_are_served_over_tls_only() {
    within(async {
        let folder = tempfile::tempdir().unwrap();
        let (made, other) = (new_certificate(), new_certificate());
        let world = world_with(write(folder.path(), &made)).await;
        assert_eq!(world.server.scheme, "https");
        let get = format!("GET /v1/limits HTTP/1.1\r\nauthorization: Bearer {TOKEN}");
        let text = call(&world, made.cert.der(), &get, "").await.unwrap();
        assert!(text.starts_with("HTTP/1.1 200") && text.contains("\"limits\""), "{text}");
        let error = call(&world, other.cert.der(), &get, "").await.unwrap_err();
        assert!(error.to_string().contains("invalid peer certificate"), "{error}");
        let plain = world.request(Method::GET, "/v1/limits").bearer_auth(TOKEN);
        let plain = answer(plain).await;
        plain.refused(403, "TG0016", None);
        assert!(plain.json.to_string().contains("https"), "{plain:?}");
        // A client that says nothing does not keep its slot.
        let mut silent = TcpStream::connect(world.server.addr).await.unwrap();
        assert_eq!(silent.read(&mut [0]).await.unwrap_or(0), 0, "the read timeout of these tests is 2 s");
    })
    .await;
}

/// A new certificate is used as soon as its files have changed; files that do not go together are
/// not.
#[tokio::test]
async fn a_certificate_is_replaced_while_the_server_runs() {
    within(async {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (new_certificate(), new_certificate());
        let files = write(folder.path(), &first);
        let world = world_with(files.clone()).await;
        let health = "GET /healthz HTTP/1.1";
        assert!(call(&world, first.cert.der(), health, "").await.unwrap().starts_with("HTTP/1.1 200"));
        // Between the two writes the files do not go together.
        std::fs::write(&files.cert, second.cert.pem()).unwrap();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert!(call(&world, first.cert.der(), health, "").await.is_ok(), "the old one stays");
        write(folder.path(), &second);
        while call(&world, second.cert.der(), health, "").await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(call(&world, first.cert.der(), health, "").await.is_err());
    })
    .await;
}

/// What is wrong with the files is said with their names, before anything is served.
#[tokio::test]
async fn wrong_files_are_named() {
    within(async {
        let folder = tempfile::tempdir().unwrap();
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let good = write(folder.path(), &new_certificate());
        let (empty, foreign) = (folder.path().join("empty.pem"), folder.path().join("foreign.pem"));
        std::fs::write(&empty, "").unwrap();
        std::fs::write(&foreign, new_certificate().signing_key.serialize_pem()).unwrap();
        let missing = folder.path().join("missing.pem");
        let (cert, key) = (good.cert, good.key);
        for (cert, key, problem) in [
            (&missing, &key, "missing.pem cannot be used: it cannot be read"),
            (&cert, &missing, "missing.pem cannot be used: it cannot be read"),
            (&empty, &key, "empty.pem cannot be used: there is no certificate"),
            (&cert, &empty, "empty.pem cannot be used: there is no private key"),
            (&cert, &foreign, "foreign.pem"),
        ] {
            let mut config = config(&sim, "");
            config.tls = Some(TlsConfig { cert: cert.clone(), key: key.clone() });
            let error = Server::start(config).await.err().unwrap();
            assert_eq!(error.code.to_string(), "TG0020");
            assert!(error.message.contains(problem), "{error}");
        }
    })
    .await;
}

/// Over TLS the cookie of a login is never sent without it.
#[tokio::test]
async fn the_cookie_of_a_login_is_secure() {
    within(async {
        let folder = tempfile::tempdir().unwrap();
        let made = new_certificate();
        let world = world_with(write(folder.path(), &made)).await;
        let form = format!("token={TOKEN}&next=%2Fkeys");
        let text = call(&world, made.cert.der(), "POST /login HTTP/1.1", &form).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 303"), "{text}");
        assert!(text.contains("HttpOnly; SameSite=Strict; Secure"), "{text}");
    })
    .await;
}
