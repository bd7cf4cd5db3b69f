//! The example as its README shows it: over HTTP, with the clients that come with it.

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::process::Command;
    use std::sync::Arc;
    use std::time::Duration;

    use intake::{Shelf, items};
    use tidegate_idempotency::{Gate, IdempotencyLayer, Policy, Scoping};
    use tidegate_store_embedded::{Embedded, Options};
    use tokio::sync::Barrier;

    struct Service {
        at: SocketAddr,
        _data: tempfile::TempDir,
    }

    impl Service {
        /// The service on a port of its own; `delay` is how long an item takes.
        async fn start(delay: Duration) -> Self {
            let data = tempfile::tempdir().unwrap();
            let gate = Gate::new(Arc::new(Embedded::open(data.path(), Options::default()).unwrap()));
            let scoping = Scoping::header("x-api-key".parse().unwrap());
            let once = IdempotencyLayer::new(gate, Policy::default(), scoping).unwrap();
            let slow = axum::middleware::from_fn(
                move |request: axum::extract::Request, next: axum::middleware::Next| async move {
                    tokio::time::sleep(delay).await;
                    next.run(request).await
                },
            );
            let app = items(Shelf::default()).layer(slow).layer(once);
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

    /// IDM-14: 201, then the same answer again; one item.
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

    /// IDM-14: of two at the same moment one gets 201 and the other 409.
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

    /// IDM-13, IDM-17: clients whose first try times out repeat with the same key and get the one item.
    #[tokio::test(flavor = "multi_thread")]
    async fn idm_13_clients_repeat_after_a_time_out() {
        let clients = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");
        for client in
            [vec!["python3".to_owned(), format!("{clients}/client.py")], vec![format!("{clients}/client.sh")]]
        {
            let service = Service::start(Duration::from_secs(3)).await;
            let url = service.url();
            let ran = tokio::task::spawn_blocking(move || {
                Command::new(&client[0]).args(&client[1..]).args([&url, "A-9", "A stool"]).output().unwrap()
            })
            .await
            .unwrap();
            let said = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success(), "{said}");
            assert!(String::from_utf8_lossy(&ran.stdout).contains("\"A stool\""), "{said}");
            assert_eq!(service.count().await, 1, "{said}");
        }
    }
}
