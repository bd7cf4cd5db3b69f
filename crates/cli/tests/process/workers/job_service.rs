//! A service that accepts any job with a 202, and remembers where to call back.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use super::stub_server::serve;

/// Where to call back: a path of the server, and the completion token.
#[derive(Clone, Debug)]
pub(super) struct Callback {
    pub path: String,
    pub token: String,
}

/// The service. It ends with the runtime.
pub(super) struct JobService {
    pub addr: SocketAddr,
    callbacks: Arc<Mutex<Vec<Callback>>>,
}

impl JobService {
    pub(super) async fn start() -> Self {
        let callbacks: Arc<Mutex<Vec<Callback>>> = Arc::default();
        let seen = Arc::clone(&callbacks);
        let addr = serve(move |request| {
            let url = &request.headers["tidegate-callback-url"];
            let path = url.splitn(4, '/').nth(3).unwrap().to_owned();
            let token = request.headers["tidegate-completion-token"].clone();
            seen.lock().unwrap().push(Callback { path, token });
            (202, "{}".to_owned())
        });
        Self { addr: addr.await, callbacks }
    }

    /// Where the last job is to be called back.
    pub(super) fn last_callback(&self) -> Callback {
        self.callbacks.lock().unwrap().last().cloned().unwrap()
    }
}
