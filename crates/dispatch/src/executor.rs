//! The queue's executor of generations: submits a job to the provider that was granted, exactly
//! once, polls it, and copies its files to our own storage before the generation is completed.
//! Which provider is used, and when, is the queue's decision.

mod look_up;
mod memo;
mod poll;
mod submit;
mod verdict;

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{Blame, Fault, FaultClass, OnUnknown, Verdict};
use tidegate_upstream::{AcceptedJob, Call, CallFuture, CallRequirements, FieldRefusal, Outcome, Upstream};

use crate::dispatch::DispatchState;
use crate::model_set::ReadyModel;
use crate::payload::GenerationPayload;
use crate::provider_set::PickedProvider;

pub(crate) use memo::AttemptMemo;

/// Executes generations.
pub(crate) struct GenerationExecutor(pub(crate) Arc<DispatchState>);

/// A generation and the provider that was granted for it.
#[derive(Clone, Copy)]
struct GrantedJob<'a> {
    payload: &'a GenerationPayload,
    picked: PickedProvider<'a>,
}

impl GenerationExecutor {
    fn read<'a>(&'a self, payload: &[u8]) -> Result<(GenerationPayload, &'a ReadyModel), FieldRefusal> {
        let payload = GenerationPayload::decode(payload)?;
        let model = self.0.models.get(&payload.model).ok_or_else(|| {
            let known = self.0.models.names();
            FieldRefusal::new("model", format!("There is no model {:?}; known: {known}.", payload.model))
        })?;
        Ok((payload, model))
    }

    /// What a submit needs, or a poll of a job; otherwise why there is nothing to call.
    fn granted<'a>(
        &'a self,
        call: Call<'_>,
        read: &'a Result<(GenerationPayload, &'a ReadyModel), FieldRefusal>,
        is_job: bool,
    ) -> Result<GrantedJob<'a>, Fault> {
        let fault = |message: String| Fault::new(FaultClass::NotFound, message);
        let (payload, model) = read.as_ref().map_err(|refusal| fault(refusal.to_string()))?;
        let alternative = call.alternative.unwrap_or_default();
        let (providers, model) = (&self.0.providers, &model.config);
        let picked = match is_job {
            true => providers.picked_by_job(model, alternative),
            false => providers.picked(model, alternative),
        };
        let picked =
            picked.ok_or_else(|| fault(format!("{alternative} is not configured for {}", payload.model)))?;
        Ok(GrantedJob { payload, picked })
    }
}

impl Upstream for GenerationExecutor {
    fn check(&self, payload: &[u8], cost: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        if let Some(limit) = cost.keys().next() {
            return Err(FieldRefusal::new(format!("cost.{limit}"), "A generation has no cost of its own."));
        }
        let (payload, model) = self.read(payload)?;
        let problems = model.problems(&payload.input);
        if let Some(first) = problems.first() {
            let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
            return Err(FieldRefusal::new(&first.field, messages.join(" ")));
        }
        let alternatives = self.0.providers.alternatives(&model.config);
        let required = CallRequirements::default().with_on_unknown(OnUnknown::Ask);
        Ok(required.with_alternatives(alternatives))
    }

    fn is_submitted(&self) -> bool {
        false
    }

    fn finishes_canceled_calls(&self) -> bool {
        true
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            let read = self.read(call.payload);
            match self.granted(call, &read, false) {
                Ok(granted) => self.submit(granted, call).await,
                // The configuration has changed since it was accepted.
                Err(fault) => {
                    let verdict = Verdict::Retry { after: None, fault };
                    Outcome::unanswered(verdict).with_blame(Blame::NoOne)
                }
            }
        })
    }

    fn poll<'a>(&'a self, call: Call<'a>, job: AcceptedJob<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            let read = self.read(call.payload);
            match self.granted(call, &read, true) {
                Ok(granted) => self.poll_once(granted, call, job).await,
                Err(_) if job.cancel_requested => {
                    Outcome::unanswered(Verdict::Canceled { may_have_happened: true })
                }
                Err(fault) => {
                    let verdict = Verdict::PollFailed { every: poll::UNCONFIGURED_EVERY, fault };
                    Outcome::unanswered(verdict).with_blame(Blame::NoOne)
                }
            }
        })
    }
}
