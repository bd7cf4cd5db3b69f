//! Shopify's own client from npm, as it comes, behind the paced proxy: it knows nothing of limits, and is told of none.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tidegate_sim::{ShopifySim, ShopifySimOptions};
use tokio::time::Instant;

use crate::ALONE;
use crate::caller::Caller;
use crate::child::{Running, configure};
use crate::languages::{node, run};

/// Calls that are made at once.
const CALLS: usize = 32;
/// What the shop gives: far less than the calls want together, soon enough for a test.
const SHOP: (u64, u64) = (1_000, 1_500);

/// LIM-28, LIM-17: with 32 calls at once, which want several times what the shop's budget holds, no throttled answer
/// reaches the client, and each call is answered.
#[tokio::test(flavor = "multi_thread")]
async fn lim_28_shopifys_own_client_is_paced() {
    let _alone = ALONE.lock().await;
    let sim = ShopifySim::start(ShopifySimOptions::default()).await.unwrap();
    let shop = format!("http://{}", sim.addr());
    let (maximum, restore_per_s) = SHOP;
    let figures = json!({ "maximum": maximum, "restore_per_s": restore_per_s });
    let set = Caller::of(&shop).call(Method::POST, "/_sim/shops/acme", &[], Some(&figures)).await;
    assert_eq!(set.unwrap().0, 200);

    let dir = tempfile::tempdir().unwrap();
    let upstream = format!(
        "[[upstream]]\nname = \"acme\"\ndialect = \"shopify\"\nbase_url = \"{shop}/shops/acme\"\ntoken_env = \"ACME_TOKEN\"\n"
    );
    configure(dir.path(), 64, &upstream);
    let server = tokio::task::block_in_place(|| {
        Running::start(dir.path(), "warn", Some(("ACME_TOKEN", "a token of the shop")))
    });
    let mut client = node("sdk/client.mjs");
    client.arg(format!("{}/proxy/acme", server.address)).arg(CALLS.to_string());
    let since = Instant::now();
    let told = tokio::task::spawn_blocking(move || run(&mut client)).await.unwrap();
    let took = since.elapsed();

    let told = told.as_array().unwrap();
    assert_eq!(told.len(), CALLS);
    let failed: Vec<&Value> = told.iter().filter(|call| !call["error"].is_null()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(told.iter().all(|call| call["products"].as_u64() > Some(0)), "{told:?}");
    let cost: f64 = told.iter().filter_map(|call| call["cost"].as_f64()).sum();
    println!("{CALLS} calls for {cost} points in {took:?}: {:?}", sim.stats());
    // A budget that was never short would prove nothing.
    assert!(cost > 2.0 * maximum as f64, "{cost}");
    assert!(took < Duration::from_secs(60), "{took:?}");
}
