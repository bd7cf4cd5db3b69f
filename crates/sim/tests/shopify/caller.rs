//! An ordinary client of one simulator.

use std::time::Duration;

use reqwest::{Client, Response};
use serde_json::{Value, json};
use tidegate_sim::{ShopifySim, ShopifySimOptions};

/// A simulator and a client of it.
pub(crate) struct Caller {
    pub sim: ShopifySim,
    pub client: Client,
    pub url: String,
}

impl Caller {
    pub(crate) async fn start(options: ShopifySimOptions) -> Self {
        let sim = ShopifySim::start(options).await.unwrap();
        let client = Client::builder().no_proxy().retry(reqwest::retry::never());
        Self { client: client.build().unwrap(), url: format!("http://{}", sim.addr()), sim }
    }

    /// Starts a simulator whose buckets do not refill within a test: `maximum` points and `rest`
    /// calls for each shop.
    pub(crate) async fn dry(maximum: u64, rest: u64) -> Self {
        // Nor does a bulk operation end.
        let bulk_takes = Duration::from_secs(600);
        let caller = Self::start(ShopifySimOptions { bulk_takes, ..ShopifySimOptions::default() }).await;
        let figures = json!({"maximum": maximum, "restore_per_s": 0, "rest_bucket": rest, "rest_per_s": 0});
        caller.change("acme", &figures).await;
        caller
    }

    pub(crate) async fn change(&self, shop: &str, figures: &Value) -> Response {
        let call = self.client.post(format!("{}/_sim/shops/{shop}", self.url)).body(figures.to_string());
        call.send().await.unwrap()
    }

    pub(crate) async fn send(&self, version: &str, body: &Value) -> reqwest::Result<Response> {
        let call = self.client.post(format!("{}/shops/acme/admin/api/{version}/graphql.json", self.url));
        call.header("x-shopify-access-token", "t").body(body.to_string()).send().await
    }

    pub(crate) async fn graphql(&self, version: &str, query: &str) -> Value {
        read(self.send(version, &json!({ "query": query })).await.unwrap()).await
    }

    /// Makes a call in the version that has every rule.
    pub(crate) async fn ask(&self, query: &str) -> Value {
        self.graphql("2026-04", query).await
    }

    pub(crate) async fn stats(&self) -> Value {
        read(self.client.get(format!("{}/_sim/stats", self.url)).send().await.unwrap()).await
    }
}

pub(crate) async fn read(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}
