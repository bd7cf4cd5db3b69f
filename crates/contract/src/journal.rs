//! The suites of `Journal`: for any writes in any order, a store returns what the in-memory journal
//! does; lines are all or nothing and durable once a write returns, each of a step with its event;
//! of two writers the newer fence wins; and many or unusual lines are stored like any others.

mod conformance;
mod events;
mod race;
mod unusual_text;

pub use conformance::{the_journal_answers_as_its_book, what_was_journaled_is_durable};
pub use events::{journal_events_are_bounded, journal_events_come_with_their_lines};
pub use race::{
    an_old_fence_changes_no_line_of_the_journal, journal_lines_are_all_or_nothing,
    many_write_the_journal_at_once, the_newer_fence_wins_the_journal,
};
pub use unusual_text::{
    odd_words_in_the_journal_are_kept_or_refused, ten_thousand_journal_lines_are_written_at_once,
};

use std::sync::Arc;

use tidegate_core::Time;
use tidegate_core::journal::{
    Deployment, DeploymentStage, DeploymentStep, ForeignObject, JournalLines, MemoryJournal, ObjectMapping,
    StepState,
};
use tidegate_store::Store;

use crate::harness::ExpectValue;

/// The scope of most suites.
const SCOPE: &str = "guild:41771983423143937";

fn deployment(id: &str, scope: &str, fence: u64, stage: DeploymentStage) -> Deployment {
    Deployment {
        id: id.into(),
        scope: scope.into(),
        fence,
        round: 1,
        stage,
        request: Arc::from(&b"{\"template\":\"desk\"}"[..]),
        note: None,
        started_at: Time::from_millis(1_780_000_000_000),
        updated_at: Time::from_millis(1_780_000_000_001),
    }
}

fn step(key: &str, nth: u32, state: StepState) -> DeploymentStep {
    DeploymentStep {
        kind: "role".into(),
        key: key.into(),
        nth,
        action: "create".into(),
        fingerprint: "f0".into(),
        state,
        operation: None,
        foreign_id: None,
        note: None,
        at: Time::from_millis(1_780_000_000_002),
    }
}

fn mapped(key: &str, id: &str) -> ObjectMapping {
    let object = ForeignObject { id: id.into(), place: None, fingerprint: "f0".into() };
    ObjectMapping { kind: "role".into(), key: key.into(), object: Some(object) }
}

/// Creates lines whose note and object name their writer.
fn marked(count: u32, mark: &str) -> JournalLines {
    let keys: Vec<String> = (0..count).map(|n| format!("key-{n:05}")).collect();
    let line = |(key, nth): (&String, u32)| DeploymentStep {
        note: Some(mark.into()),
        ..step(key, nth, StepState::Planned)
    };
    JournalLines {
        steps: keys.iter().zip(0..).map(line).collect(),
        mapped: keys.iter().map(|key| mapped(key, mark)).collect(),
    }
}

/// Compares everything that the in-memory journal and the store return for these deployments and
/// scopes.
async fn check(store: &dyn Store, book: &MemoryJournal, ids: &[&str], scopes: &[&str], when: &str) {
    for id in ids {
        let found = store.deployment(id).await.expect_value("look at a deployment");
        assert_eq!(found, book.deployment(id), "the deployment {id:?} {when}");
        let found = store.deployment_steps(id).await.expect_value("look at steps");
        assert!(found == book.steps(id), "the steps of {id:?} {when}: {found:?}, not {:?}", book.steps(id));
        let found = store.deployment_events(id).await.expect_value("look at events");
        assert!(
            found == book.events(id),
            "the events of {id:?} {when}: {found:?}, not {:?}",
            book.events(id)
        );
    }
    for scope in scopes {
        let found = store.mapped_objects(scope).await.expect_value("look at objects");
        assert!(
            found == book.mapped_objects(scope),
            "the objects of {scope:?} {when}: {found:?}, not {:?}",
            book.mapped_objects(scope)
        );
    }
    for scope in scopes.iter().copied().map(Some).chain([None]) {
        for most in [0, 1, 3, usize::MAX] {
            let found = store.deployments(scope, most).await.expect_value("list deployments");
            let wanted = book.deployments(scope, most);
            assert!(found == wanted, "{most} deployments of {scope:?} {when}: {found:?}, not {wanted:?}");
        }
    }
}
