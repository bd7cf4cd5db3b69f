//! Commands of operators while the store fails: one that is answered with an error has done
//! nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate::{Engine, ErrorKind, OperationView, Result};
use tidegate_contract::{FaultPlan, FaultyStore, InjectedFault, StoreMethod};
use tidegate_core::model::Resolution;
use tidegate_core::{Fault, FaultClass, OperationId, State, Verdict};
use tidegate_store::Store;

use crate::scripted_upstream::*;

/// More reads than any command needs.
const READS: u64 = 8;

#[derive(Clone, Copy, Debug)]
enum Command {
    Cancel,
    Rerun,
    Resolve,
    SendAgain,
}

impl Command {
    const ALL: [Self; 4] = [Self::Cancel, Self::Rerun, Self::Resolve, Self::SendAgain];

    /// In which state it finds its operation, and the states in which its caller may see it after.
    fn states(self) -> (State, &'static [State]) {
        const SENT_AGAIN: &[State] = &[State::Queued, State::Waiting, State::Running];
        match self {
            Self::Cancel => (State::Queued, &[State::Canceled]),
            Self::Rerun => (State::Failed, SENT_AGAIN),
            Self::Resolve => (State::Unknown, &[State::Succeeded]),
            Self::SendAgain => (State::Unknown, SENT_AGAIN),
        }
    }

    async fn give(self, engine: &Engine, id: OperationId) -> Result<OperationView> {
        match self {
            Self::Cancel => engine.cancel(id).await,
            Self::Rerun => engine.rerun(id).await,
            Self::Resolve => engine.resolve(id, Resolution::Succeeded).await,
            Self::SendAgain => engine.resolve(id, Resolution::Repeat).await,
        }
    }

    /// Gives it while one read of the store fails; returns whether its answer was an error.
    async fn give_while_a_read_fails(self, nth: u64) -> bool {
        let faulty = Arc::new(FaultyStore::new(memory(), FaultPlan::none()));
        let store: Arc<dyn Store> = Arc::clone(&faulty) as _;
        // What is sent again is slow.
        let is_first = AtomicBool::new(true);
        let upstream = ScriptedUpstream::new(move |payload, _| {
            match (payload, is_first.swap(false, Ordering::Relaxed)) {
                ("|fails", true) => {
                    (Duration::ZERO, Verdict::Rejected(Fault::new(FaultClass::NotFound, "404")))
                }
                ("|lost", true) => (Duration::ZERO, Verdict::Unknown(fault("reset"))),
                _ => (LONG, Verdict::Done),
            }
        });
        let engine = open(&store, &upstream).await;
        let payload = match self {
            Self::Cancel => "|waits",
            Self::Rerun => "|fails",
            Self::Resolve | Self::SendAgain => "|lost",
        };
        let blocking = matches!(self, Self::Cancel);
        if blocking {
            engine.submit(operation("g", "|runs")).await.unwrap();
        }
        let id = engine.submit(operation("g", payload)).await.unwrap().id;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (before, after) = self.states();
        assert_eq!(engine.get(id).await.unwrap().state, before, "{self:?}");
        faulty.set_plan(FaultPlan::none().at(StoreMethod::Read, nth, InjectedFault::Fail));
        let answer = self.give(&engine, id).await;
        faulty.set_plan(FaultPlan::none());
        match &answer {
            Ok(view) => assert!(after.contains(&view.state), "{self:?}, read {nth}: {view:?}"),
            Err(error) => {
                let state = engine.get(id).await.unwrap().state;
                assert_eq!(state, before, "{self:?}, read {nth}: it says {error}");
            }
        }
        answer.is_err()
    }
}

/// OPS-9, OPS-23: an operator who reads an error may give the command again, and so does a node
/// that forwards it while its partition moves.
#[tokio::test(start_paused = true)]
async fn ops_9_ops_23_a_command_that_took_effect_is_not_answered_with_an_error() {
    for command in Command::ALL {
        let mut errors = 0;
        for nth in 1..=READS {
            errors += u64::from(command.give_while_a_read_fails(nth).await);
        }
        assert!((1..READS).contains(&errors), "{command:?}: {errors} of {READS} reads fail it");
    }
}

/// OPS-9: of two operators who cancel an operation at the same moment, one is told that the other
/// was first.
#[tokio::test(start_paused = true)]
async fn ops_9_an_operation_is_canceled_once() {
    let store = memory();
    let engine = open(&store, &all_done(1)).await;
    let id = engine.submit(operation("g", "|later").with_delay(LONG)).await.unwrap().id;
    let answers = tokio::join!(engine.cancel(id), engine.cancel(id));
    let (canceled, refused): (Vec<_>, Vec<_>) = [answers.0, answers.1].into_iter().partition(Result::is_ok);
    let states: Vec<_> = canceled.into_iter().map(|view| view.unwrap().state).collect();
    assert_eq!((states, refused.len()), (vec![State::Canceled], 1));
    let refused = refused.into_iter().next().unwrap().unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NotNow);
    assert!(refused.message.contains("is canceled"), "{}", refused.message);
}

/// OPS-24: a group that is paused while its first operation is undecided says both.
#[tokio::test(start_paused = true)]
async fn ops_24_a_pause_does_not_hide_an_unknown_outcome() {
    let upstream = ScriptedUpstream::new(|_, _| (Duration::ZERO, Verdict::Unknown(fault("reset"))));
    let store = memory();
    let engine = open(&store, &upstream).await;
    let id = engine.submit(operation("g", "|lost")).await.unwrap().id;
    assert_eq!(engine.wait_for_outcome(id, LONG).await.unwrap().state, State::Unknown);
    engine.pause("g", "anna", "price fix").await.unwrap();
    let because = engine.why(id).await.unwrap().because;
    assert!(because.contains("\"price fix\"") && because.contains("outcome of its first"), "{because}");
    engine.resolve(id, Resolution::Failed).await.unwrap();
    let next = engine.submit(operation("g", "|next")).await.unwrap().id;
    let because = engine.why(next).await.unwrap().because;
    assert!(because.contains("resume the group to continue"), "{because}");
}
