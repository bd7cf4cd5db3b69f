//! The figures at `/metrics`, as Prometheus reads them.

use std::time::Duration;

use reqwest::Method;
use tidegate_sim::HttpSimOptions;

use crate::support::{World, operation, within};

/// The figures that a server reports.
struct Figures(String);

impl Figures {
    async fn read(world: &World) -> Self {
        let response = world.request(Method::GET, "/metrics").send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self(response.text().await.unwrap())
    }

    /// The value of a series, by its name and labels.
    #[track_caller]
    fn value(&self, series: &str) -> f64 {
        let found = self.0.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        found.unwrap_or_else(|| panic!("{series} is not in\n{}", self.0)).parse().unwrap()
    }
}

#[tokio::test]
async fn they_tell_what_was_accepted_and_refused() {
    within(async {
        let world = World::new().await;
        let id = world.submit(operation("g")).await;
        world.wait_until_ended(&id).await;
        world.post("/v1/operations", "{}").await;
        let figures = Figures::read(&world).await;
        for (series, value) in [
            ("tidegate_accept_seconds_count", 1.0),
            ("tidegate_operations_accepted_total", 1.0),
            ("tidegate_operations_refused_total{code=\"TG0001\"}", 1.0),
            ("tidegate_operations_ended_total{state=\"succeeded\"}", 1.0),
            ("tidegate_operations{state=\"waiting\"}", 0.0),
            ("tidegate_limit_waiting{limit=\"echo\"}", 0.0),
            ("tidegate_store_operations", 1.0),
            ("tidegate_workers", 64.0),
            ("tidegate_workers_busy", 0.0),
            ("tidegate_oldest_waiting_seconds", 0.0),
        ] {
            assert_eq!(figures.value(series), value, "{series}");
        }
        let text = figures.0;
        for name in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()) {
            assert!(text.contains(&format!("# HELP {name} ")), "{name} is not described");
        }
    })
    .await;
}

/// Attempts, responses and times are counted by upstream, and a 429 has a class of its own.
#[tokio::test]
async fn calls_are_counted_by_upstream() {
    within(async {
        // The upstream allows one call, and Tidegate does not know.
        let sim = HttpSimOptions { capacity: 1, refill_per_s: Some(5.0), ..HttpSimOptions::default() };
        let world = World::with("", sim).await;
        for group in ["a", "b"] {
            let id = world.submit(operation(group)).await;
            assert_eq!(world.wait_until_ended(&id).await["state"], "succeeded");
        }
        let figures = Figures::read(&world).await;
        let attempts =
            |result: &str| format!("tidegate_attempts_total{{upstream=\"echo\",result=\"{result}\"}}");
        let responses =
            |status: &str| format!("tidegate_responses_total{{upstream=\"echo\",status=\"{status}\"}}");
        let throttled = figures.value(&attempts("throttled"));
        assert!(throttled >= 1.0, "{throttled}");
        assert_eq!(figures.value(&responses("429")), throttled);
        assert!(figures.value(&attempts("done")) >= 2.0);
        assert_eq!(figures.value(&responses("2xx")), figures.value(&attempts("done")));
        let calls = figures.value("tidegate_upstream_seconds_count{upstream=\"echo\"}");
        assert_eq!(calls, figures.value(&attempts("done")) + throttled);
    })
    .await;
}

/// What waits ages: the oldest one counts, and not what runs or has ended.
#[tokio::test]
async fn the_age_of_the_queue_is_reported() {
    within(async {
        let limit = "[[upstream.limit]]\nname = \"requests\"\ncapacity = 1\nrefill_per_s = 0.001\n";
        let world = World::with(limit, HttpSimOptions::default()).await;
        let id = world.submit(operation("a")).await;
        world.wait_until_ended(&id).await;
        assert_eq!(Figures::read(&world).await.value("tidegate_oldest_waiting_seconds"), 0.0);
        world.submit(operation("b")).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        let figures = Figures::read(&world).await;
        let age = figures.value("tidegate_oldest_waiting_seconds");
        assert!((0.03..30.0).contains(&age), "{age}");
        assert_eq!(figures.value("tidegate_limit_waiting{limit=\"echo/requests\"}"), 1.0);
        assert_eq!(figures.value("tidegate_limit_capacity{limit=\"echo/requests\"}"), 1.0);
        assert!(figures.value("tidegate_limit_level{limit=\"echo/requests\"}") < 1.0);
    })
    .await;
}

/// Keys are counted in the store.
#[tokio::test]
async fn idempotency_keys_are_counted() {
    within(async {
        let world = World::new().await;
        assert_eq!(Figures::read(&world).await.value("tidegate_idempotency_keys"), 0.0);
        for key in ["one", "two", "two"] {
            let request = world.request(Method::POST, "/v1/operations").header("idempotency-key", key);
            let response = request.body(operation("g").to_string()).send().await.unwrap();
            assert_eq!(response.status(), 202);
        }
        let figures = Figures::read(&world).await;
        assert_eq!(figures.value("tidegate_idempotency_keys"), 2.0);
        assert_eq!((figures.value("idempotency_hit"), figures.value("idempotency_miss")), (1.0, 2.0));
    })
    .await;
}
