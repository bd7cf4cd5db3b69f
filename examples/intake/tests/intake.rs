//! The example as in its README: over HTTP, with its clients.

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::process::Command;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use axum::http::StatusCode;
    use intake::{ItemStore, router};
    use tidegate_idempotency::{IdempotencyLayer, KeyStore, Policy, ScopeExtractor, store};
    use tokio::sync::Barrier;

    struct Service {
        at: SocketAddr,
        _data: tempfile::TempDir,
    }

    impl Service {
        /// Starts the service on its own port; `delay` is how long an item takes.
        async fn start(delay: Duration) -> Self {
            let data = tempfile::tempdir().unwrap();
            let store = store::open(&format!("file:{}", data.path().display())).await.unwrap();
            let gate = KeyStore::new(store);
            let scoping = ScopeExtractor::header("x-api-key".parse().unwrap());
            let once = IdempotencyLayer::new(gate, Policy::default(), scoping).unwrap();
            let slow = axum::middleware::from_fn(
                move |request: axum::extract::Request, next: axum::middleware::Next| async move {
                    tokio::time::sleep(delay).await;
                    next.run(request).await
                },
            );
            let app = router(ItemStore::default()).layer(slow).layer(once);
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let at = listener.local_addr().unwrap();
            tokio::spawn(async move { axum::serve(listener, app).await });
            Self { at, _data: data }
        }

        fn url(&self) -> String {
            format!("http://{}/api/v1/items", self.at)
        }

        async fn post(&self, key: &str) -> reqwest::Response {
            let request = reqwest::Client::new().post(self.url()).header("content-type", "application/json");
            let request = request.header("x-api-key", "demo").header("idempotency-key", key);
            request.body("{\"sku\":\"A-1\",\"title\":\"A lamp\"}").send().await.unwrap()
        }

        async fn count(&self) -> usize {
            let list = reqwest::get(self.url()).await.unwrap().text().await.unwrap();
            list.matches("\"id\"").count()
        }
    }

    fn clients() -> [Vec<String>; 2] {
        let clients = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");
        [vec!["python3".to_owned(), format!("{clients}/client.py")], vec![format!("{clients}/client.sh")]]
    }

    /// Runs a client; returns whether it succeeded, its stdout and its stderr.
    async fn run(client: Vec<String>, url: String) -> (bool, String, String) {
        let mut command = Command::new(&client[0]);
        command.args(&client[1..]).args([&url, "A-9", "A \"low\" stool"]);
        let ran = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (ran.status.success(), text(&ran.stdout), text(&ran.stderr))
    }

    /// IDM-14: 201, then the same response again; one item.
    #[tokio::test(flavor = "multi_thread")]
    async fn idm_14_an_item_is_taken_in_once() {
        let service = Service::start(Duration::ZERO).await;
        let first = service.post("order-1").await;
        assert_eq!(first.status(), 201);
        let (first, again) = (first.text().await.unwrap(), service.post("order-1").await);
        assert_eq!(again.headers()["idempotent-replayed"], "true");
        assert_eq!((again.status().as_u16(), again.text().await.unwrap()), (201, first));
        assert_eq!(service.count().await, 1);
    }

    /// IDM-14: of two concurrent requests one gets 201 and the other 409.
    #[tokio::test(flavor = "multi_thread")]
    async fn idm_14_a_race_of_two_is_201_and_409() {
        let service = Service::start(Duration::from_millis(500)).await;
        let together = Barrier::new(2);
        let race = async || {
            together.wait().await;
            service.post("order-2").await.status().as_u16()
        };
        let (one, other) = tokio::join!(race(), race());
        assert_eq!((one.min(other), one.max(other)), (201, 409));
        assert_eq!(service.count().await, 1);
    }

    /// IDM-13, IDM-17: clients whose first attempt times out retry with the same key and get the
    /// one item.
    #[tokio::test(flavor = "multi_thread")]
    async fn idm_13_clients_repeat_after_a_time_out() {
        for client in clients() {
            let service = Service::start(Duration::from_secs(3)).await;
            let (done, told, said) = run(client, service.url()).await;
            assert!(done, "{said}");
            assert!(told.contains("\"A \\\"low\\\" stool\""), "{told}{said}");
            assert_eq!(service.count().await, 1, "{said}");
        }
    }

    /// IDM-13: a client retries retryable errors with the same key, whatever the body, and does not
    /// treat an error as success.
    #[tokio::test(flavor = "multi_thread")]
    async fn idm_13_clients_tell_a_refusal_from_an_answer() {
        for client in clients() {
            let keys = Arc::new(Mutex::new(Vec::new()));
            let seen = Arc::clone(&keys);
            let post = axum::routing::post(move |headers: axum::http::HeaderMap| async move {
                let mut seen = seen.lock().unwrap();
                seen.push(headers["idempotency-key"].clone());
                let status = [429, 503, 403][seen.len().min(3) - 1];
                (StatusCode::from_u16(status).unwrap(), "<p>not now</p>")
            });
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/items", listener.local_addr().unwrap());
            tokio::spawn(
                async move { axum::serve(listener, axum::Router::new().route("/items", post)).await },
            );
            let (done, told, said) = run(client, url).await;
            assert!(!done && told.is_empty(), "{told}{said}");
            assert!(said.contains("403") && said.contains("<p>not now</p>"), "{said}");
            let keys = keys.lock().unwrap();
            assert!(keys.len() == 3 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        }
    }
}
