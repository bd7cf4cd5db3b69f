//! Equal questions at a source: while one is looked up the others wait for its answer, and for a
//! moment afterwards they get the same one. Every question is answered with its own correlation id.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::hydration::{EntityKey, HydrationMode};
use tokio::time::Instant;

use super::SourceAnswer;
use crate::event::EntityQuestion;

/// How long a source gives an entity again without another look. It is as old as its `as_of` says.
pub const ANSWER_REUSE: Duration = Duration::from_millis(100);
/// Most questions that are open or were answered a moment ago.
const OPEN_MAX: usize = 10_000;
/// Most askers of one question.
const ASKERS_MAX: usize = 1_000;

type QuestionKey = (EntityKey, HydrationMode);

/// What to do with a question.
pub(super) enum Admission {
    /// Look it up.
    Load,
    /// It is being looked up.
    Joined,
    /// It was answered a moment ago.
    Answer(SourceAnswer, Time),
    /// There is no room; its asker will ask again.
    Full,
}

enum OpenQuestion {
    Loading(Vec<EntityQuestion>),
    Answered(SourceAnswer, Time),
}

#[derive(Default)]
struct QuestionTable {
    questions: HashMap<QuestionKey, OpenQuestion>,
    /// Answered questions, the oldest first.
    answered: VecDeque<(Instant, QuestionKey)>,
}

/// The questions that are open at a source.
#[derive(Default)]
pub(super) struct OpenQuestions(Mutex<QuestionTable>);

impl OpenQuestions {
    fn lock(&self) -> MutexGuard<'_, QuestionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn admit(&self, question: EntityQuestion) -> Admission {
        let mut table = self.lock();
        table.forget_old();
        let key = (question.key.clone(), question.mode.clone());
        let is_full = table.questions.len() >= OPEN_MAX;
        match table.questions.get_mut(&key) {
            Some(OpenQuestion::Loading(askers)) if askers.len() < ASKERS_MAX => {
                // A question that arrives twice is answered once.
                if askers.iter().all(|asked| asked.correlation_id != question.correlation_id) {
                    askers.push(question);
                }
                Admission::Joined
            }
            Some(OpenQuestion::Loading(_)) => Admission::Full,
            Some(OpenQuestion::Answered(answer, as_of)) => Admission::Answer(answer.clone(), *as_of),
            None if is_full => Admission::Full,
            None => {
                table.questions.insert(key, OpenQuestion::Loading(vec![question]));
                Admission::Load
            }
        }
    }

    /// Ends a look-up; returns all who asked. A failed one is not remembered.
    pub(super) fn finish(
        &self,
        question: &EntityQuestion,
        answer: Option<SourceAnswer>,
        as_of: Time,
    ) -> Vec<EntityQuestion> {
        let mut table = self.lock();
        let key = (question.key.clone(), question.mode.clone());
        let open = table.questions.remove(&key);
        // What was not there may be there by now.
        if let Some(answer) = answer.filter(|answer| matches!(answer, SourceAnswer::Found { .. })) {
            table.answered.push_back((Instant::now(), key.clone()));
            table.questions.insert(key, OpenQuestion::Answered(answer, as_of));
        }
        match open {
            Some(OpenQuestion::Loading(askers)) => askers,
            Some(OpenQuestion::Answered(..)) | None => Vec::new(),
        }
    }
}

impl QuestionTable {
    fn forget_old(&mut self) {
        while let Some((at, _)) = self.answered.front()
            && at.elapsed() >= ANSWER_REUSE
            && let Some((_, key)) = self.answered.pop_front()
        {
            self.questions.remove(&key);
        }
    }
}
