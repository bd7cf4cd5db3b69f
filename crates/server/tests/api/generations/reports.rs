//! The end of a generation, reported to the application that asked for it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_images::webhook::standard::{self, StandardSecret};
use tidegate_images::{Time, Webhook, WebhookKeys};
use tidegate_sim::server::{SimReply, SimServer, Simulator};

use super::studio::{NOTIFY_SECRET, Studio, StudioPlan, generation};
use crate::support::within;

/// An application that keeps what it gets.
#[derive(Default)]
struct Application(Mutex<Vec<(hyper::HeaderMap, Bytes)>>);

impl Simulator for Application {
    async fn reply(&self, request: hyper::Request<Bytes>) -> SimReply {
        let (head, body) = request.into_parts();
        self.0.lock().unwrap().push((head.headers, body));
        SimReply::Answer(hyper::Response::new(Bytes::new()))
    }
}

/// DSP-2: the end of a generation is pushed to the application that asked for it, signed, once.
#[tokio::test]
async fn dsp_2_an_end_is_reported_to_the_application() {
    within(async {
        let application = Arc::new(Application::default());
        let receiver =
            SimServer::start("127.0.0.1:0".parse().unwrap(), Arc::clone(&application)).await.unwrap();
        let generations = "notify_secret_env = \"NOTIFY_SECRET\"\nnotify_private = true".to_owned();
        let studio = Studio::start(StudioPlan { generations, ..StudioPlan::default() }).await;
        let mut body = generation("anna", "a cat");
        body["notify_url"] = json!(format!("http://{}/hook", receiver.addr()));
        let id = studio.create(&body).await;
        let silent = studio.create(&generation("anna", "no one asked about this one")).await;
        for id in [&id, &silent] {
            studio.wait_until_ended(id).await;
        }
        while application.0.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let received = application.0.lock().unwrap().clone();
        let [(headers, body)] = received.as_slice() else { panic!("{}", received.len()) };
        let seconds: u64 = headers["webhook-timestamp"].to_str().unwrap().parse().unwrap();
        let received_at = Time::from_millis(seconds * 1_000);
        let keys = WebhookKeys::Standard(vec![StandardSecret::parse(NOTIFY_SECRET).unwrap()]);
        let webhook = Webhook { headers, body, token: None, received_at };
        assert!(standard::verify(&webhook, &keys).unwrap().contains(&id));
        let report: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(report["type"], "generation.completed", "{report}");
        assert_eq!((&report["data"]["id"], &report["data"]["status"]), (&json!(id), &json!("completed")));
        // Whoever gets a report knows only the public URL of the server.
        let url = report["data"]["results"][0]["url"].as_str().unwrap();
        assert_eq!(url, format!("http://{}/api/generations/{id}/result/0", studio.server.addr), "{report}");
        assert_eq!(studio.client.get(url).send().await.unwrap().status(), 200);
        let shown = studio.get(&format!("/api/generations/{id}")).await.json;
        assert_eq!(shown["notify_url"], json!(format!("http://{}/hook", receiver.addr())));
    })
    .await;
}
