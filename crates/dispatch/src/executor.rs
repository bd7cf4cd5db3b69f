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
use crate::model_set::{ModelSet, ReadyModel};
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
    /// Submits a generation to the provider that was granted, if its model still has that one.
    async fn submit_granted(&self, call: Call<'_>) -> Outcome {
        let payload = match GenerationPayload::decode(call.payload) {
            Ok(payload) => payload,
            Err(refusal) => {
                let fault = Fault::new(FaultClass::Validation, refusal.message);
                return Outcome::unanswered(Verdict::Rejected(fault)).with_blame(Blame::NoOne);
            }
        };
        let (models, alternative) = (self.0.models(), call.alternative.unwrap_or_default());
        let model = find_model(&models, &payload.model).map_err(|refusal| refusal.message);
        let picked = model.and_then(|model| {
            let picked = self.0.providers.picked(&model.config, alternative);
            picked.ok_or_else(|| format!("{alternative} is not in the chain of {}", payload.model))
        });
        match picked {
            Ok(picked) => self.submit(GrantedJob { payload: &payload, picked }, call).await,
            Err(message) => {
                // What it was accepted with is outdated, or the models here are.
                self.0.ask_to_follow();
                let message = format!("the worker that took it has other models: {message}");
                let fault = Fault::new(FaultClass::NotFound, message);
                Outcome::unanswered(Verdict::Unavailable(fault)).with_blame(Blame::NoOne)
            }
        }
    }

    /// Polls a job, whether or not its model still has its provider.
    async fn poll_granted(&self, call: Call<'_>, job: AcceptedJob<'_>) -> Outcome {
        let models = self.0.models();
        let alternative = call.alternative.unwrap_or_default();
        let granted = GenerationPayload::decode(call.payload).map_err(|refusal| refusal.to_string());
        let granted = granted.and_then(|payload| {
            let model = models.get(&payload.model).map(|model| &model.config);
            let picked = self.0.providers.picked_by_job(model, alternative);
            Ok((payload, picked.ok_or_else(|| format!("{alternative} is not configured"))?))
        });
        match granted {
            Ok((payload, picked)) => {
                self.poll_once(GrantedJob { payload: &payload, picked }, call, job).await
            }
            Err(_) if job.cancel_requested => {
                Outcome::unanswered(Verdict::Canceled { may_have_happened: true })
            }
            Err(message) => {
                let fault = Fault::new(FaultClass::NotFound, message);
                let verdict = Verdict::PollFailed { every: poll::UNCONFIGURED_EVERY, fault };
                Outcome::unanswered(verdict).with_blame(Blame::NoOne)
            }
        }
    }
}

/// The model of a generation.
pub(crate) fn find_model<'a>(models: &'a ModelSet, name: &str) -> Result<&'a ReadyModel, FieldRefusal> {
    models.get(name).ok_or_else(|| {
        let known = models.names();
        FieldRefusal::new("model", format!("There is no model {name:?}; known: {known}."))
    })
}

impl Upstream for GenerationExecutor {
    fn check(&self, payload: &[u8], cost: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        if let Some(limit) = cost.keys().next() {
            return Err(FieldRefusal::new(format!("cost.{limit}"), "A generation has no cost of its own."));
        }
        let (payload, models) = (GenerationPayload::decode(payload)?, self.0.models());
        let model = find_model(&models, &payload.model)?;
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
        Box::pin(self.submit_granted(call))
    }

    fn poll<'a>(&'a self, call: Call<'a>, job: AcceptedJob<'a>) -> CallFuture<'a> {
        Box::pin(self.poll_granted(call, job))
    }
}
