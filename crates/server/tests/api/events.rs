//! Events: what is sent, and resuming a stream.

mod nodes;

use reqwest::{Method, Response};
use serde_json::Value;

use crate::support::{World, operation, within};

/// One event of the stream.
#[derive(Clone, Debug)]
struct Event {
    id: String,
    name: String,
    data: Value,
}

/// A client of a stream of events.
struct Listener {
    response: Response,
    text: String,
    /// What it has seen.
    events: Vec<Event>,
    /// The id that it resumes from, as the specification of `EventSource` has it.
    last_id: String,
}

impl Listener {
    fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new(), events: Vec::new(), last_id: String::new() }
    }

    /// Reads until `is_enough` says so.
    async fn read_until(&mut self, is_enough: impl Fn(&[Event]) -> bool) {
        while !is_enough(&self.events) {
            self.read_piece().await;
        }
    }

    /// Reads until it knows where the stream is.
    async fn read_position(&mut self) {
        while self.last_id.is_empty() {
            self.read_piece().await;
        }
        assert!(self.events.is_empty(), "a position is no event: {:?}", self.events);
    }

    async fn read_piece(&mut self) {
        let piece = self.response.chunk().await.unwrap().expect("the stream ended");
        self.text.push_str(std::str::from_utf8(&piece).unwrap());
        while let Some(end) = self.text.find("\n\n") {
            let block: String = self.text.drain(..end + 2).collect();
            let field = |name: &str| {
                let line = block.lines().find_map(|line| line.strip_prefix(name));
                line.map(|value| value.trim().to_owned()).unwrap_or_default()
            };
            if !field("id:").is_empty() {
                self.last_id = field("id:");
            }
            if !field("event:").is_empty() {
                let data = serde_json::from_str(&field("data:")).unwrap();
                self.events.push(Event { id: field("id:"), name: field("event:"), data });
            }
        }
    }
}

/// Reads events until `is_enough` says so.
async fn events(response: Response, is_enough: impl Fn(&[Event]) -> bool) -> Vec<Event> {
    let mut listener = Listener::of(response);
    listener.read_until(is_enough).await;
    listener.events
}

fn is_done(event: &Event) -> bool {
    event.data["state"] == "succeeded"
}

/// A client that reconnects with the last id it saw gets exactly what it missed, in order.
#[tokio::test]
async fn a_listener_goes_on_where_it_was() {
    within(async {
        let world = World::new().await;
        let live = world.request(Method::GET, "/v1/events").send().await.unwrap();
        let first = world.submit(operation("g")).await;
        let seen = events(live, |events| events.iter().any(is_done)).await;
        assert!(
            seen.iter().all(|event| event.name == "operation" && event.data["id"] == first.as_str()),
            "{seen:?}"
        );
        let last = &seen.last().unwrap().id;
        let second = world.submit(operation("g")).await;
        world.wait_until_ended(&second).await;
        world.post("/v1/groups/g/pause", "").await;
        let resumed = world.request(Method::GET, "/v1/events").header("last-event-id", last);
        let missed =
            events(resumed.send().await.unwrap(), |events| events.iter().any(|event| event.name == "group"))
                .await;
        let ids: Vec<u64> = missed.iter().map(|event| event.id.parse().unwrap()).collect();
        let from: u64 = last.parse().unwrap();
        let expected: Vec<u64> = (from + 1..=from + ids.len() as u64).collect();
        assert_eq!(ids, expected, "{missed:?}");
        assert!(
            missed.iter().any(|event| is_done(event) && event.data["id"] == second.as_str()),
            "{missed:?}"
        );
        assert_eq!(missed.last().unwrap().data["now"], "paused");
    })
    .await;
}

/// A stream that breaks before its first event resumes without a loss: also when it got only
/// events of others.
#[tokio::test]
async fn a_listener_resumes_before_its_first_event() {
    within(async {
        let world = World::new().await;
        let open = async |last: Option<&str>| {
            let request = world.request(Method::GET, "/v1/events?group=g");
            let request = match last {
                Some(id) => request.header("last-event-id", id),
                None => request,
            };
            Listener::of(request.send().await.unwrap())
        };
        let mut broken = open(None).await;
        broken.read_position().await;
        let from = std::mem::take(&mut broken.last_id);
        drop(broken);
        let id = world.submit(operation("g")).await;
        world.wait_until_ended(&id).await;
        let other = world.submit(operation("other")).await;
        world.wait_until_ended(&other).await;
        let mut resumed = open(Some(&from)).await;
        resumed.read_position().await;
        assert_eq!(resumed.last_id, from, "it opens where it resumes");
        resumed.read_until(|events| events.iter().any(is_done)).await;
        let states: Vec<_> = resumed.events.iter().map(|event| event.data["state"].clone()).collect();
        assert_eq!(states, ["queued", "running", "succeeded"], "{:?}", resumed.events);
        // A `reset` comes with the id to resume from, and none comes before it.
        let mut stale = open(Some("1")).await;
        stale.read_until(|events| !events.is_empty()).await;
        assert_eq!((&*stale.events[0].name, &stale.events[0].id), ("reset", &stale.last_id));
        let mut again = open(Some(&stale.last_id)).await;
        let last = world.submit(operation("g")).await;
        again.read_until(|events| events.iter().any(is_done)).await;
        assert!(again.events.iter().all(|event| event.data["id"] == *last), "{:?}", again.events);
    })
    .await;
}

/// A client that missed more than is kept is told to reload, and then gets new events.
#[tokio::test]
async fn a_gap_is_told() {
    within(async {
        let world = World::new().await;
        let stale =
            world.request(Method::GET, "/v1/events").header("last-event-id", "1").send().await.unwrap();
        // The id of an event in a cluster says nothing about this server.
        let elsewhere = world.request(Method::GET, "/v1/events?last_event_id=000000070000beef-12");
        let elsewhere = elsewhere.send().await.unwrap();
        world.submit(operation("g")).await;
        for stream in [stale, elsewhere] {
            let seen = events(stream, |events| events.iter().any(is_done)).await;
            assert_eq!(seen[0].name, "reset", "{seen:?}");
            assert!(seen[1..].iter().all(|event| event.name == "operation"), "{seen:?}");
        }
    })
    .await;
}

/// A client can filter by group, operation or kind, and can ask for results.
#[tokio::test]
async fn a_listener_hears_what_it_asked_for() {
    within(async {
        let world = World::new().await;
        let listen = async |query: &str| {
            world.request(Method::GET, &format!("/v1/events?{query}")).send().await.unwrap()
        };
        let of_group = listen("group=mine&results=true").await;
        let other = world.submit(operation("other")).await;
        world.wait_until_ended(&other).await;
        world.post("/v1/groups/mine/pause", r#"{"create":true}"#).await;
        let mut mine = operation("mine");
        mine["dedupe_key"] = "order-7".into();
        let id = world.submit(mine).await;
        let of_id = listen(&format!("id={id}&kind=http")).await;
        world.post("/v1/groups/mine/resume", "").await;
        let seen = events(of_group, |events| events.iter().any(is_done)).await;
        assert!(seen.iter().all(|event| event.data["group"] == "mine"), "{seen:?}");
        assert!(seen.iter().any(|event| event.name == "group"), "{seen:?}");
        let end = seen.last().unwrap();
        assert_eq!((&end.data["id"], &end.data["result"]["status"]), (&id.as_str().into(), &200.into()));
        assert!(end.data["fault"].is_null() && end.data.get("fault").is_some(), "{end:?}");
        assert!(seen[0].data.get("result").is_none(), "{seen:?}");
        let seen = events(of_id, |events| events.iter().any(is_done)).await;
        assert!(seen.iter().all(|event| event.data["dedupe_key"] == "order-7"), "{seen:?}");
        assert!(seen.iter().all(|event| event.data["upstream"] == "echo"), "{seen:?}");
        assert!(seen.iter().all(|event| event.data["id"] == id.as_str()), "{seen:?}");
        assert!(seen.iter().all(|event| event.data.get("result").is_none()), "{seen:?}");
        for (query, field) in [("id=x", "id"), ("results=maybe", "results"), ("colour=red", "colour")] {
            world.get(&format!("/v1/events?{query}")).await.refused(400, "TG0001", Some(field));
        }
    })
    .await;
}
