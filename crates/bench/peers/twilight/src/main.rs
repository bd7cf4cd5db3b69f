//! The calls of `bench discord` through twilight-http, each as soon as its dependencies exist.
//! Limits are left to the library, with its default settings. Reads the calls from stdin and prints
//! how long they took.

mod calls;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::JoinSet;
use twilight_http::Client;
use twilight_http::request::{Method, RequestBuilder};

use calls::{Call, PeerInput};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The ids of created objects, by name, as they become known.
type CreatedIds = HashMap<String, watch::Sender<Option<String>>>;

#[derive(Deserialize)]
struct CreatedObject {
    id: String,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let PeerInput { at, token, calls } = serde_json::from_reader(std::io::stdin())?;
    let client = Arc::new(Client::builder().token(token).proxy(at, true).build());
    let names = calls.iter().filter_map(|call| call.makes.clone());
    let made: Arc<CreatedIds> = Arc::new(names.map(|name| (name, watch::Sender::new(None))).collect());
    let (count, begun) = (calls.len(), Instant::now());
    let mut running = JoinSet::new();
    for call in calls {
        running.spawn(carry(call, Arc::clone(&client), Arc::clone(&made)));
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    println!("{}", serde_json::json!({ "calls": count, "seconds": begun.elapsed().as_secs_f64() }));
    Ok(())
}

/// Makes one call, once its dependencies exist.
async fn carry(call: Call, client: Arc<Client>, made: Arc<CreatedIds>) -> Result<(), BoxError> {
    let mut ids = HashMap::new();
    for name in &call.needs {
        let mut needed = made.get(name).ok_or_else(|| format!("nothing makes {name}"))?.subscribe();
        let id = needed.wait_for(Option::is_some).await?.clone();
        ids.insert(name.clone(), id.unwrap_or_default());
    }
    let method = match call.method.as_str() {
        "POST" => Method::Post,
        "PATCH" => Method::Patch,
        other => return Err(format!("no call of the plan is a {other}").into()),
    };
    let (path, body) = call.with(&ids);
    let request = RequestBuilder::raw(method, path).json(&body).build()?;
    let answer = client.request::<()>(request).await?;
    if let Some(name) = &call.makes {
        let CreatedObject { id } = serde_json::from_slice(&answer.bytes().await?)?;
        if let Some(made) = made.get(name) {
            made.send_replace(Some(id));
        }
    }
    Ok(())
}
