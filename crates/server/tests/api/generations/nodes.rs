//! Generations in a cluster: any node takes every call, wherever they are.

use reqwest::{Client, Method};
use tidegate_fixture::redis::RedisServer;
use tidegate_server::Server;
use tidegate_sim::Provider;

use super::studio::{Simulators, StudioPlan, config, free_addr, generation};
use crate::support::{answer, wait_until_joined, within};

/// DSP-1, DSP-11: created, shown, followed and listed at any node, and a webhook may come to any
/// node, with its signature.
#[tokio::test]
async fn dsp_1_dsp_11_any_node_takes_every_call() {
    within(async {
        let store = RedisServer::start();
        let plan =
            StudioPlan { chain: vec![Provider::Replicate], store: store.url(), ..StudioPlan::default() };
        let sims = Simulators::start(&plan).await;
        let results = tempfile::tempdir().unwrap();
        let addrs = [free_addr().await, free_addr().await];
        let mut nodes = Vec::new();
        for (index, addr) in addrs.into_iter().enumerate() {
            // The webhooks of each node come to the other one.
            let plan = StudioPlan { public: Some(addrs[1 - index]), ..plan.clone() };
            nodes.push(Server::start(config(&plan, &sims, addr, &results)).await.unwrap());
        }
        let client = Client::new();
        wait_until_joined(&client, &addrs).await;
        let url = |node: usize, path: &str| format!("http://{}{path}", nodes[node].addr);
        for node in 0..2 {
            let body = generation("anna", &format!("a cat {node}")).to_string();
            let created = answer(client.post(url(node, "/api/generations/create")).body(body)).await;
            assert_eq!(created.status, 202, "{created:?}");
            let id = created.text("id");
            let other = 1 - node;
            let events =
                client.get(url(other, &format!("/api/generations/{id}/events"))).send().await.unwrap();
            let events = events.text().await.unwrap();
            assert!(events.contains("\"status\":\"completed\""), "{events}");
            let picture =
                client.get(url(other, &format!("/api/generations/{id}/result/0"))).send().await.unwrap();
            assert!(picture.bytes().await.unwrap().starts_with(b"\x89PNG"));
            let request = client.request(Method::GET, url(other, &format!("/generations/{id}")));
            let page = request.header("accept-language", "ru").send().await.unwrap().text().await.unwrap();
            assert!(page.contains("lang=\"ru\"") && page.contains("готово"), "{page}");
        }
        for node in 0..2 {
            let list = answer(client.get(url(node, "/api/generations?user_id=anna"))).await.json;
            assert_eq!(list["generations"].as_array().unwrap().len(), 2, "{list}");
            let providers = answer(client.get(url(node, "/v1/providers"))).await.json;
            assert_eq!(providers["providers"][0]["name"], "replicate", "{providers}");
            let limit = answer(client.get(url(node, "/v1/limits/provider%3Areplicate%2Fslots"))).await;
            assert_eq!(limit.status, 200, "{limit:?}");
        }
    })
    .await;
}
