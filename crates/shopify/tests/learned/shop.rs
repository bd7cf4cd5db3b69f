//! A fake shop behind the dialect, without a network: it keeps a budget as Shopify does, on the
//! clock of the test, and counts what it had to refuse.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tidegate::{Engine, Executors, Submission};
use tidegate_core::RetryRule;
use tidegate_core::model::LimitView;
use tidegate_shopify::ShopifyDialect;
use tidegate_store::{Store, WallClock};
use tidegate_store_embedded::MemoryStore;
use tidegate_upstream::http::response::{Content, RequestSummary, UpstreamResponse};
use tidegate_upstream::http::target::BaseUrl;
use tidegate_upstream::http::{Dialect, Meaning};
use tidegate_upstream::{Call, CallFuture, CallRequirements, Envelope, FieldRefusal, Outcome, Upstream};
use tokio::time::Instant;

/// The behavior of a call at the shop: its requested cost, its actual cost, and the latency of its
/// response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallBehavior {
    pub(crate) requested: f64,
    pub(crate) actual: f64,
    pub(crate) takes: Duration,
}

/// The budget.
pub(crate) struct FakeBudget {
    pub(crate) maximum: f64,
    pub(crate) restore: f64,
    pub(crate) level: f64,
    at: Instant,
}

impl FakeBudget {
    fn now(&mut self) -> f64 {
        let now = Instant::now();
        self.level = (self.level + self.restore * (now - self.at).as_secs_f64()).min(self.maximum);
        self.at = now;
        self.level
    }
}

/// A call that arrived: its text, and when.
pub(crate) type ReceivedCall = (String, Instant);

pub(crate) struct FakeShop {
    dialect: ShopifyDialect,
    pub(crate) points: Mutex<FakeBudget>,
    pub(crate) arrivals: Mutex<Vec<ReceivedCall>>,
    pub(crate) turned_away: Mutex<u32>,
    behavior: Box<dyn Fn(&str) -> CallBehavior + Send + Sync>,
}

impl FakeShop {
    pub(crate) fn new(
        maximum: f64,
        restore: f64,
        does: impl Fn(&str) -> CallBehavior + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            dialect: ShopifyDialect::new("acme", 1),
            points: Mutex::new(FakeBudget { maximum, restore, level: maximum, at: Instant::now() }),
            arrivals: Mutex::default(),
            turned_away: Mutex::default(),
            behavior: Box::new(does),
        })
    }

    /// Returns the same shop for another process: what the dialect had in memory is gone.
    pub(crate) fn restarted(&self, does: impl Fn(&str) -> CallBehavior + Send + Sync + 'static) -> Arc<Self> {
        let points = self.points.lock().unwrap();
        let other = Self::new(points.maximum, points.restore, does);
        other.points.lock().unwrap().level = points.level;
        other
    }

    /// Sets what is left at the shop, whatever we assume.
    pub(crate) fn drain_to(&self, level: f64) {
        let mut points = self.points.lock().unwrap();
        points.now();
        points.level = level;
    }

    /// Returns the shop's response to a query.
    fn answer(&self, query: &str) -> (CallBehavior, String) {
        let does = (self.behavior)(query);
        let mut points = self.points.lock().unwrap();
        let (available, requested) = (points.now(), does.requested);
        let (actual, head) = if requested > available {
            *self.turned_away.lock().unwrap() += 1;
            let error = r#""errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}]"#;
            ("null".to_owned(), error.to_owned())
        } else {
            points.level -= does.actual;
            (does.actual.to_string(), r#""data":{"shop":{"id":1}}"#.to_owned())
        };
        let (maximum, level, restore) = (points.maximum, points.level, points.restore);
        let cost = format!(
            r#"{{"requestedQueryCost":{requested},"actualQueryCost":{actual},"throttleStatus":{{"maximumAvailable":{maximum:.1},"currentlyAvailable":{},"restoreRate":{restore:?}}}}}"#,
            level.floor()
        );
        (does, format!(r#"{{{head},"extensions":{{"cost":{cost}}}}}"#))
    }
}

impl Upstream for FakeShop {
    fn check(&self, payload: &[u8], cost: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        let envelope = Envelope::decode(payload)?;
        let on_unknown = self.dialect.on_unknown(&envelope.request);
        let charges = self.dialect.charges(&envelope.request, cost)?;
        Ok(CallRequirements::new(charges).with_on_unknown(on_unknown))
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            let mut request = Envelope::decode(call.payload).unwrap().request;
            let retry_rule = RetryRule::new(call.on_unknown, self.dialect.server_errors());
            let reader = self.dialect.prepare_request(&mut request, call.operation).unwrap();
            let base = BaseUrl::parse("http://acme").unwrap();
            let asked = RequestSummary { method: request.method, upstream: "acme", base: &base, retry_rule };
            let is_graphql = request.path.ends_with("graphql.json");
            let text = String::from_utf8(request.body.into_bytes().to_vec()).unwrap();
            self.arrivals.lock().unwrap().push((text.clone(), Instant::now()));
            let (takes, body) = if is_graphql {
                let (does, body) = self.answer(&text);
                (does.takes, body)
            } else {
                (Duration::ZERO, "{}".to_owned())
            };
            tokio::time::sleep(takes).await;
            let content = Content::Whole(Bytes::from(body));
            let answer =
                UpstreamResponse { status: StatusCode::OK, headers: HeaderMap::new(), content, at: call.now };
            let verdict = answer.verdict(&asked);
            let Meaning { verdict, hints, spending } = reader.interpret(&answer, &asked, verdict);
            Outcome::unanswered(verdict).with_hints(hints).with_spending(spending).with_status(200)
        })
    }
}

pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(WallClock)))
}

pub(crate) async fn open(store: &Arc<dyn Store>, shop: &Arc<FakeShop>) -> Engine {
    let executors = Executors::from([("http".into(), Arc::clone(shop) as Arc<dyn Upstream>)]);
    Engine::builder(Arc::clone(store))
        .executors(executors)
        .limits(shop.dialect.limits())
        .open()
        .await
        .unwrap()
}

/// Returns a GraphQL call.
pub(crate) fn graphql(group: &str, query: &str) -> Submission {
    let query = serde_json::to_string(query).unwrap();
    let request =
        format!(r#"{{"method":"POST","path":"/admin/api/2026-04/graphql.json","body":{{"query":{query}}}}}"#);
    Submission::new("http", group, format!(r#"{{"upstream":"acme","request":{request}}}"#))
}

/// Returns a REST call.
pub(crate) fn rest(group: &str) -> Submission {
    let request = r#"{"method":"GET","path":"/admin/api/2026-04/shop.json"}"#;
    Submission::new("http", group, format!(r#"{{"upstream":"acme","request":{request}}}"#))
}

/// Returns the state of a limit.
pub(crate) async fn limit(engine: &Engine, name: &str) -> LimitView {
    engine.limits().await.unwrap().into_iter().find(|view| &*view.name == name).unwrap()
}
