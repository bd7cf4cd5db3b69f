//! The model through a log: random commands are decided, every batch is appended, and at any cut a
//! fresh model that replays the log equals the live one. The model's invariants are checked after
//! every command.

mod command;
mod command_generator;
mod content;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::id::Partition;
use tidegate_core::{Fact, Model};
use tidegate_store::log::{Batch, Lsn, Ownership};
use tidegate_store::{Clock, Log, Store, codec};

use crate::harness::{Backend, ExpectValue};
use crate::rng::TestRng;
use command::{Command, REMOTE_KINDS};
use command_generator::CommandGenerator;

const PARTITION: Partition = 5;
const TTL: Duration = Duration::from_secs(3_600);
/// The number of commands that both models get after a cut.
const LATER: usize = 6;

/// The extent of a run.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The number of short command sequences, each from an empty model.
    pub sequences: u64,
    /// How often a cut is replayed from a crash image, in sequences; otherwise from the store
    /// itself.
    pub image_every: u64,
}

/// OPS-8: a thousand sequences, a hundred crash images.
pub async fn a_replayed_model_is_the_same_model(backend: &dyn Backend) {
    replay(backend, 91, Effort { sequences: 1_000, image_every: 10 }).await;
}

/// OPS-8: the same with another seed and a chosen extent.
pub async fn replay(backend: &dyn Backend, seed: u64, effort: Effort) {
    let mut rng = TestRng::seeded_or(seed);
    let mut trial = Trial::begin(backend).await;
    for sequence in 0..effort.sequences {
        let mut commander = CommandGenerator::new(rng.fork(), backend.clock().now());
        let wants_image = sequence % effort.image_every.max(1) == 0;
        trial.sequence(&mut commander, wants_image, &format!("sequence {sequence}")).await;
        backend.clock().advance(Duration::from_secs(1));
    }
}

/// One log that all sequences use, one after the other.
struct Trial<'a> {
    backend: &'a dyn Backend,
    store: Arc<dyn Store>,
    owner: Ownership,
    last: Lsn,
}

impl<'a> Trial<'a> {
    async fn begin(backend: &'a dyn Backend) -> Self {
        let store = backend.open().await.expect_value("open the store");
        let owner = store.acquire_partition(PARTITION, "suite", TTL).await.expect_value("own the partition");
        Self { backend, store, owner, last: Lsn(0) }
    }

    /// Applies commands in batches up to a cut, then compares.
    async fn sequence(&mut self, commander: &mut CommandGenerator, wants_image: bool, what: &str) {
        let mut model = empty_model();
        self.start_anew(&model).await;
        let mut facts = Vec::new();
        for command in commander.limits() {
            command.apply(&mut model, &mut facts);
        }
        let batches = commander.rng.within(2..12);
        for _ in 0..batches {
            for _ in 0..commander.rng.within(1..4) {
                step(commander, &mut model, &mut facts, what);
            }
            self.append(std::mem::take(&mut facts)).await;
            if commander.rng.percent(10) {
                self.snapshot(&model).await;
            }
        }
        let mut fresh = if wants_image {
            let image = self.backend.crash_image().await.expect_value("take a crash image");
            self.replayed(&*image).await
        } else {
            self.replayed(&*self.store).await
        };
        same(&fresh, &model, what, "after the cut");
        for _ in 0..LATER {
            let command = step(commander, &mut model, &mut facts, what);
            let answer = commander.last_answer();
            let again = command.apply(&mut fresh, &mut Vec::new());
            assert_eq!(Some(&again), answer, "{what}: the replayed model answers {command:?} differently");
        }
        same(&fresh, &model, what, "after later commands");
    }

    /// Discards what earlier sequences wrote: a snapshot of an empty model replaces it.
    async fn start_anew(&self, empty: &Model) {
        if self.last > Lsn(0) {
            self.snapshot(empty).await;
        }
    }

    async fn append(&mut self, facts: Vec<Fact>) {
        let batch = Batch { facts, ..Batch::default() };
        self.last = self.store.append(self.owner, batch).await.expect_value("append a batch");
    }

    async fn snapshot(&self, model: &Model) {
        let parts = codec::encode_iter(model.snapshot(), 300);
        self.store.snapshot(self.owner, self.last, parts).await.expect_value("make a snapshot");
    }

    async fn replayed<L: Log + ?Sized>(&self, log: &L) -> Model {
        let mut fresh = empty_model();
        let mut absorb = |facts: Vec<Fact>| facts.iter().for_each(|fact| fresh.absorb(fact));
        let last = log.load(PARTITION, &mut absorb).await.expect_value("replay the partition");
        assert_eq!(last, self.last, "number of the last append");
        fresh
    }
}

/// A model that leaves some kinds to remote workers.
fn empty_model() -> Model {
    Model::with_remote_kinds(REMOTE_KINDS.map(Arc::from))
}

/// Applies one command to the model and checks its invariants.
#[track_caller]
fn step(commander: &mut CommandGenerator, model: &mut Model, facts: &mut Vec<Fact>, what: &str) -> Command {
    let command = commander.next(model);
    let before: BTreeMap<_, _> = model.actives(None).map(|active| (active.seq, active.state)).collect();
    let answer = command.apply(model, facts);
    for active in model.actives(None) {
        let from = before.get(&active.seq).copied().unwrap_or(active.state);
        let is_legal = from == active.state || from.may_become(active.state);
        assert!(is_legal, "{what}: {command:?} turns {:?} from {from} to {}", active.seq, active.state);
    }
    let problem = model.check().err().or_else(|| answer.check_take(&command, model).err());
    assert_eq!(problem, None, "{what}: after {command:?}");
    commander.learn(answer);
    command
}

/// Compares two models by their snapshots.
#[track_caller]
fn same(fresh: &Model, live: &Model, what: &str, when: &str) {
    let mut places = fresh.snapshot().zip(live.snapshot());
    if let Some((fresh, live)) = places.find(|(fresh, live)| fresh != live) {
        assert_eq!(fresh, live, "{what}, {when}: the replayed model (left) is not the live one");
    }
    assert_eq!(fresh.snapshot().count(), live.snapshot().count(), "{what}, {when}: size of the snapshots");
    assert_eq!(fresh.check(), Ok(()), "{what}, {when}: the replayed model");
}
