//! Reads a shop's products: one page by GraphQL, then all of them in bulk. Start it twice: both
//! processes share one budget.
//!
//! ```text
//! SHOPIFY_TOKEN=… cargo run -p tidegate-shopify --example products -- acme redis://127.0.0.1:6379
//! ```

use std::env;
use std::error::Error;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_shopify::{Shopify, ShopifyErrorKind, store};

const PAGE: &str = "query($n: Int!) { products(first: $n) { nodes { id title } } }";
const ALL: &str = "{ products { edges { node { id title } } } }";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let (shop, url) = (args.next().ok_or("Which shop?")?, args.next().ok_or("Which store?")?);
    let store = store::open(&url).await?;
    let mut builder = Shopify::builder(&shop, env::var("SHOPIFY_TOKEN")?, store);
    // For a simulator: `http://127.0.0.1:…/shops/acme`.
    if let Some(url) = args.next() {
        builder = builder.base_url(url);
    }
    let client = builder.patience(Duration::from_secs(120)).build()?;

    let page = client.graphql(PAGE, json!({ "n": 10 })).await?;
    println!("{} products on the first page", page.data["products"]["nodes"].as_array().map_or(0, Vec::len));

    let bulk = client.bulk();
    let running = match bulk.query(ALL).await {
        Err(error) if matches!(error.kind(), ShopifyErrorKind::Busy { .. }) => return Err(error.into()),
        running => running?,
    };
    println!("{} is under way", running.id());
    let finished = running.wait().await?;
    let Some(url) = finished.url else {
        println!("There are none.");
        return Ok(());
    };
    let mut lines = bulk.lines(&url).await?;
    let mut count = 0;
    while let Some(row) = lines.next_row::<Value>().await? {
        count += usize::from(row["id"].is_string());
    }
    println!("{count} products in all");
    Ok(())
}
