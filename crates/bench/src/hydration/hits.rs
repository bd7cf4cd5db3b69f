//! Reads of an entity that is there already: the local copy, moka's `get`, and a map behind a
//! mutex, in turns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use moka::future::Cache;
use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_hydration::GetOptions;
use tokio::time::Instant;

use super::readers::{Contender, EntityReader, entity_key};
use super::source::{CountingSource, SourceBehavior, known_id};
use crate::goal::to_thousandths;
use crate::report::median;

/// Turns of each; the median counts.
const TURNS: usize = 11;
/// Entities that are there.
const ENTITIES: usize = 1_000;

/// The figures of one contender.
#[derive(Debug, Serialize)]
pub(super) struct HitFigure {
    pub(super) contender: Contender,
    what: &'static str,
    median_ns: f64,
    pub(super) to_moka: f64,
}

pub(super) async fn measure(reads: usize) -> Result<Vec<HitFigure>, String> {
    let source = CountingSource::new(SourceBehavior::Answers);
    let reader = EntityReader::start(Contender::Tidegate, &source).await?;
    let EntityReader::Tidegate { hydrator, .. } = &reader else { return Err("not ours".into()) };
    let ids: Vec<_> = (0..ENTITIES).map(known_id).collect();
    let keys = ids.iter().map(|id| entity_key(id)).collect::<Result<Vec<_>, _>>()?;
    let cache: Cache<String, Arc<Map<String, Value>>> = Cache::new(super::NEGATIVES_MAX as u64);
    let map = Mutex::new(HashMap::new());
    for id in &ids {
        reader.read(id.clone()).await?;
        let entity = Arc::new(source.look(id).await.unwrap_or_default());
        cache.insert(id.clone(), Arc::clone(&entity)).await;
        map.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), entity);
    }
    let options = GetOptions::full();
    let mut turns = [const { Vec::new() }; 3];
    for _ in 0..TURNS {
        let start = Instant::now();
        for read in 0..reads {
            let found = hydrator.get(&keys[read % ENTITIES], &options).await;
            std::hint::black_box(found).map_err(|error| error.to_string())?;
        }
        turns[0].push(start.elapsed().as_nanos() as f64 / reads as f64);
        let start = Instant::now();
        for read in 0..reads {
            std::hint::black_box(cache.get(&ids[read % ENTITIES]).await).ok_or("moka lost an entity")?;
        }
        turns[1].push(start.elapsed().as_nanos() as f64 / reads as f64);
        let start = Instant::now();
        for read in 0..reads {
            let map = map.lock().unwrap_or_else(PoisonError::into_inner);
            std::hint::black_box(map.get(&ids[read % ENTITIES]).cloned()).ok_or("the map lost an entity")?;
        }
        turns[2].push(start.elapsed().as_nanos() as f64 / reads as f64);
    }
    let medians = turns.map(|turns| median(turns.into_iter()));
    let whats = ["Hydrator::get", "moka get", "get in a mutex"];
    let figure = |((contender, what), median_ns)| HitFigure {
        contender,
        what,
        median_ns: to_thousandths(median_ns),
        to_moka: to_thousandths(median_ns / medians[1]),
    };
    Ok(Contender::ALL.into_iter().zip(whats).zip(medians).map(figure).collect())
}
