//! `tidegate proxy` as a child of the test. Dropping it kills it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::service::Service;
use crate::child::tidegate;

/// How long a start may take.
const START: Duration = Duration::from_secs(30);

pub(super) struct Proxy {
    child: Child,
    /// Where it takes requests.
    pub(super) address: String,
    /// Where it serves health and metrics.
    pub(super) admin: String,
    /// What it says about unknown outcomes when it starts.
    pub(super) on_unknown: String,
    /// What it says on stderr after its greeting, line by line.
    pub(super) log: mpsc::Receiver<String>,
}

impl Proxy {
    /// In front of a service, with keys in this store, and with more in its configuration.
    pub(super) fn start(dir: &Path, service: &Service, store: &str, more: &str) -> Self {
        Self::before(dir, service.addr, store, more)
    }

    /// The same, in front of an address where the service need not be yet.
    pub(super) fn before(dir: &Path, upstream: SocketAddr, store: &str, more: &str) -> Self {
        Self::start_in(dir, upstream, store, more, Vec::new())
    }

    /// The same, in front of a URL.
    pub(super) fn at(dir: &Path, upstream: &str, store: &str, more: &str) -> Self {
        Self::spawn(dir, upstream, store, more, Vec::new())
    }

    /// The same, with more in its environment.
    pub(super) fn start_in(
        dir: &Path,
        upstream: SocketAddr,
        store: &str,
        more: &str,
        environment: Vec<(String, String)>,
    ) -> Self {
        Self::spawn(dir, &format!("http://{upstream}"), store, more, environment)
    }

    fn spawn(
        dir: &Path,
        upstream: &str,
        store: &str,
        more: &str,
        environment: Vec<(String, String)>,
    ) -> Self {
        let file = dir.join("proxy.toml");
        std::fs::write(&file, format!("[proxy]\nunscoped = true\n{more}")).unwrap();
        let mut command = tidegate();
        command.envs(environment);
        command.args(["proxy", "--log-level", "info", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.args(["--store", store, "--upstream", upstream]);
        command.arg("--config").arg(file).current_dir(dir).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (tell, told) = mpsc::channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // Read to the end, or a full pipe would hold it up.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        let mut proxy = Self {
            child,
            address: String::new(),
            admin: String::new(),
            on_unknown: String::new(),
            log: told,
        };
        while proxy.admin.is_empty() {
            let line = proxy.log.recv_timeout(START).expect("it starts");
            // With a JSON log the banner is a line of JSON.
            let line: serde_json::Value = serde_json::from_str(&line).expect("every line is JSON");
            let told = line["message"].as_str().and_then(|message| message.strip_prefix("tidegate proxies "));
            if let Some(address) = told {
                proxy.address = address.to_owned();
                proxy.admin = line["admin"].as_str().unwrap().trim_end_matches("/metrics").to_owned();
                proxy.on_unknown = line["unknown"].as_str().unwrap().to_owned();
            }
        }
        proxy
    }

    /// Sends it a signal, named as `kill` names it.
    pub(super) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    /// SIGKILL, and gone.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// How it ended, once it has.
    pub(super) async fn wait_for_exit(&mut self) -> ExitStatus {
        let ended = async {
            loop {
                if let Some(status) = self.child.try_wait().unwrap() {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(START, ended).await.expect("it ends")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.kill();
    }
}
