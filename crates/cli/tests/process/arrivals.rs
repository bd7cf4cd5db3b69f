//! The requests that reached a simulator, from its log.

use std::collections::BTreeMap;

use serde_json::Value;
use tidegate_sim::HttpSim;

use crate::caller::Caller;

/// The ids that reached the simulator, in order, for each path.
pub(crate) async fn arrivals(sim: &HttpSim) -> BTreeMap<String, Vec<usize>> {
    let upstream = Caller::of(&format!("http://{}", sim.addr()));
    let mut arrived: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut after = 0;
    loop {
        let page: Value =
            serde_json::from_str(&upstream.get(&format!("/_sim/log?after={after}")).await).unwrap();
        let writes = page["writes"].as_array().unwrap();
        if writes.is_empty() {
            return arrived;
        }
        for write in writes {
            let path = write["path"].as_str().unwrap().to_owned();
            arrived.entry(path).or_default().push(write["id"].as_str().unwrap().parse().unwrap());
        }
        after = page["next"].as_u64().unwrap();
    }
}
