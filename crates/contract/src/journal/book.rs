//! Random commands on a store and on the book, side by side.

use std::sync::Arc;

use tidegate_core::Time;
use tidegate_core::bounds::DEPLOYMENTS_KEPT;
use tidegate_core::journal::{Book, Deployment, Lines, Mapped, Object, Stage, Step, StepState};

use super::{SCOPE, check, deployment, marked};
use crate::dice::Dice;
use crate::harness::{Backend, Must};

/// Commands of a random sequence.
const COMMANDS: usize = 400;
/// Ids whose order is that of their bytes, whatever a language says; one is empty.
const IDS: [&str; 8] = ["", "00", "01", "02", "a", "B", "ä", "deploy '%_{*}\u{1f980}"];
/// Scopes of which one begins as the other does.
const SCOPES: [&str; 4] = [SCOPE, "guild:4177", "", "Zunft {x}:'*"];
const KINDS: [&str; 3] = ["role", "channel", "Rolle:x"];
const KEYS: [&str; 6] = ["desk", "Desk", "x:desk", "", "\"a\",\"b", "Büro — \u{1f980}"];
const NOTES: [&str; 4] = ["", "it's \"full\"\n\\", "50035: Invalid Form Body", "Größe \u{1f980}\u{7f}"];

fn word(dice: &mut Dice, words: &[&str]) -> Arc<str> {
    Arc::from(*dice.pick(words))
}

fn some_word(dice: &mut Dice) -> Option<Arc<str>> {
    dice.percent(60).then(|| word(dice, &NOTES))
}

fn time(dice: &mut Dice) -> Time {
    if dice.percent(5) { Time::MAX } else { Time::from_micros(dice.below(1 << 60)) }
}

fn any_deployment(dice: &mut Dice, id: Arc<str>) -> Deployment {
    let len = dice.below(40) as usize;
    Deployment {
        id,
        scope: word(dice, &SCOPES),
        fence: fence(dice),
        round: dice.below(1 << 32) as u32,
        stage: *dice.pick(&[Stage::Running, Stage::Done, Stage::Failed]),
        request: dice.bytes(len).into(),
        note: some_word(dice),
        started_at: time(dice),
        updated_at: time(dice),
    }
}

/// Few, so that most are seen again; some are larger than a float can tell apart.
fn fence(dice: &mut Dice) -> u64 {
    if dice.percent(10) { tidegate_store::journal::FENCE_MAX - dice.below(3) } else { 8 + dice.below(5) }
}

fn any_lines(dice: &mut Dice) -> Lines {
    let mut lines = Lines::default();
    for _ in 0..dice.below(12) {
        lines.steps.push(Step {
            kind: word(dice, &KINDS),
            key: word(dice, &KEYS),
            nth: if dice.percent(5) { u32::MAX } else { dice.below(6) as u32 },
            action: word(dice, &["create", "update", ""]),
            fingerprint: word(dice, &["", "f0", "f1"]),
            state: *dice.pick(&[StepState::Planned, StepState::Applied, StepState::Failed]),
            operation: some_word(dice),
            foreign_id: some_word(dice),
            note: some_word(dice),
            at: time(dice),
        });
    }
    for _ in 0..dice.below(12) {
        let object = dice.percent(70).then(|| Object {
            id: word(dice, &NOTES),
            place: some_word(dice),
            fingerprint: word(dice, &["", "f0", "f1"]),
        });
        lines.mapped.push(Mapped { kind: word(dice, &KINDS), key: word(dice, &KEYS), object });
    }
    lines
}

/// OPS-17: whatever is kept and written, in whatever order, by old and new fences, of deployments that are there or not,
/// also with a line twice in one write, a store answers as the book does; also after a restart.
pub async fn the_journal_answers_as_its_book(backend: &dyn Backend) {
    let (mut dice, mut book) = (Dice::seeded_or(171), Book::default());
    let mut store = backend.open().await.must("open the store");
    for command in 0..COMMANDS {
        let id = word(&mut dice, &IDS);
        if dice.percent(40) {
            let kept = any_deployment(&mut dice, Arc::clone(&id));
            let done = store.keep_deployment(kept.clone()).await.must("keep a deployment");
            assert_eq!(done, book.keep(kept), "command {command}: keep {id:?}");
        } else {
            let (fence, lines) = (fence(&mut dice), any_lines(&mut dice));
            let done = store.write_journal(&id, fence, lines.clone()).await.must("write lines");
            assert_eq!(done, book.write(&id, fence, lines), "command {command}: write to {id:?}");
        }
        if command % 20 == 0 {
            check(&*store, &book, &IDS, &SCOPES, &format!("after command {command}")).await;
        }
        if dice.below(70) == 0 {
            drop(store);
            store = backend.open().await.must("open the store again");
        }
    }
    check(&*store, &book, &IDS, &SCOPES, "at the end").await;
    // Another scope's stay, and so do those that run.
    let running = deployment("+running", SCOPE, 1, Stage::Running);
    assert!(store.keep_deployment(running.clone()).await.must("keep one that runs"));
    book.keep(running);
    for n in 0..DEPLOYMENTS_KEPT + 7 {
        let id = format!("-{n:04}");
        let kept = deployment(&id, SCOPE, 1, *dice.pick(&[Stage::Done, Stage::Failed]));
        assert!(store.keep_deployment(kept.clone()).await.must("keep one more"));
        book.keep(kept);
        assert!(store.write_journal(&id, 1, marked(2, "m")).await.must("write lines"));
        book.write(&id, 1, marked(2, "m"));
    }
    let looked_at = ["+running", "-0000", "-0006", "-0007", "-0008", "-0106"];
    check(&*store, &book, &looked_at, &SCOPES, "when old ones have gone").await;
    check(&*store, &book, &IDS, &SCOPES, "when old ones have gone").await;
}

/// OPS-17: what was answered is there, at whatever moment everything stops.
pub async fn what_was_journaled_is_durable(backend: &dyn Backend) {
    let (mut dice, mut book) = (Dice::seeded_or(172), Book::default());
    let store = backend.open().await.must("open the store");
    for round in 0..12 {
        let kept = Deployment { fence: 8, ..any_deployment(&mut dice, "a".into()) };
        assert!(store.keep_deployment(kept.clone()).await.must("keep a deployment"));
        book.keep(kept);
        let image = backend.crash().await.must("take a crash image");
        check(&*image, &book, &["a"], &SCOPES, &format!("in the image after deployment {round}")).await;
        drop(image);
        let lines = any_lines(&mut dice);
        assert!(store.write_journal("a", 8, lines.clone()).await.must("write lines"));
        book.write("a", 8, lines);
        let image = backend.crash().await.must("take a crash image");
        check(&*image, &book, &["a"], &SCOPES, &format!("in the image after lines {round}")).await;
    }
    drop(store);
    let store = backend.open().await.must("open the store again");
    check(&*store, &book, &["a"], &SCOPES, "after a restart").await;
}
