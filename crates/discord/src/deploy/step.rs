//! One step of a plan: its request with all that goes along, through the queue, and what became of it into the journal.

use tidegate_core::FaultClass;
use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_upstream::{HttpRequest, Method};
use tokio::time::Instant;

use super::error::{Error, Result};
use super::progress::Told;
use super::queue::{Ended, HasId, body};
use super::record::{Applied, Became};
use super::run::Run;
use crate::guild::Guild;
use crate::journal::Entry;
use crate::plan::{self, Action, Call, Plan, Route, Step, Target};
use crate::{Id, Kind};

/// How one step went.
pub(super) enum Stepped {
    /// As wanted.
    Applied,
    /// The guild is not what the plan was made from.
    Outdated(String),
}

impl Run<'_> {
    pub(super) async fn step(&mut self, plan: &Plan, step: &Step, guild: &Guild) -> Result<Stepped> {
        let Some(call) = &step.call else { return Ok(Stepped::Applied) };
        if !self.guard.is_held() {
            return Err(Error::Lost);
        }
        self.listener.tell(&Told::Started(step));
        let nth = nth(plan, step);
        let begun = Instant::now();
        let Some(request) = self.request(step, call, guild)? else {
            self.pen.write([(nth, step, Became::Applied(Applied::default()))]).await?;
            return Ok(Stepped::Applied);
        };
        let key = step.operation_key(self.wanted.guild, &self.pen.round_id());
        let (operation, ended) = self.queue().carry(step.operation(), request, Some(key)).await?;
        match ended {
            Ended::Done(answer) => {
                let answered =
                    answer.as_deref().and_then(|body| serde_json::from_str::<HasId>(body.get()).ok());
                let id = step.id.or(answered.map(|answered| answered.id));
                if id.is_none() && matches!(step.target, Target::Object(..)) {
                    return Err(Error::NoId(step.target.clone()));
                }
                let channel = call.route.channel().and_then(|handle| handle.id(&self.journal).ok());
                self.remember(step, id, channel);
                let channel = self.channel_of(step);
                let applied = Applied { id, channel, operation: Some(&operation) };
                self.pen.write([(nth, step, Became::Applied(applied))]).await?;
                self.report.count(step.action);
                self.audit.add(step, id);
                self.listener.tell(&Told::Applied { step, took: begun.elapsed() });
                Ok(Stepped::Applied)
            }
            Ended::Before => {
                Ok(Stepped::Outdated(format!("the {} was applied by an earlier plan", step.target)))
            }
            Ended::Failed(fault) => {
                let why = format!("{} ({})", fault.message, fault.class);
                self.pen.write([(nth, step, Became::Failed(&why, &operation))]).await?;
                if fault.class == FaultClass::Conflict {
                    self.unsure = Some(Instant::now());
                }
                match fault.class {
                    FaultClass::Conflict | FaultClass::NotFound => {
                        Ok(Stepped::Outdated(format!("{}: {}", step.target, fault.message)))
                    }
                    _ => Err(Error::Step { target: step.target.clone(), fault }),
                }
            }
            Ended::CalledOff => Err(Error::CalledOff(step.target.to_string())),
        }
    }

    /// The request of a step with all that goes along; none when nothing is left to do.
    fn request(&self, step: &Step, call: &Call, guild: &Guild) -> Result<Option<HttpRequest>> {
        let Some(request) = call.request(guild, &self.journal)? else { return Ok(None) };
        let mut sent = request.body;
        if let (Route::MessageCreate(_), Some(fields)) =
            (&call.route, sent.as_mut().and_then(|body| body.as_object_mut()))
        {
            // Discord takes the same message of one nonce for one, for some minutes.
            let nonce = Fingerprint::of("discord nonce")
                .part(self.pen.round_id().as_bytes())
                .part(step.target.to_string().as_bytes());
            fields.insert("nonce".into(), hex(&nonce.finish()[..12]).into());
            fields.insert("enforce_nonce".into(), true.into());
        }
        let method = match request.method {
            plan::Method::Post => Method::Post,
            plan::Method::Patch => Method::Patch,
            plan::Method::Delete => Method::Delete,
        };
        let mut http = HttpRequest::new(method, request.path);
        let reason = format!("Tidegate {}: {} {}", self.pen.id(), step.action.word(), step.target);
        http.headers.push(("X-Audit-Log-Reason".into(), reason));
        http.body = body(sent.as_ref())?;
        Ok(Some(http))
    }

    /// Takes in what became of an object, for the requests and plans that follow.
    pub(super) fn remember(&mut self, step: &Step, id: Option<Id>, channel: Option<Id>) {
        let Target::Object(kind, key) = &step.target else { return };
        if step.action == Action::Remove {
            self.journal.forget(*kind, key);
        } else if let Some(id) = id {
            let known =
                self.journal.get(*kind, key).filter(|entry| entry.id == id).and_then(|entry| entry.channel);
            let channel = if *kind == Kind::Message { channel.or(known) } else { None };
            let entry = Entry { id, channel, fingerprint: step.fingerprint.clone() };
            self.journal.record(*kind, key.clone(), entry);
        }
    }

    pub(super) fn channel_of(&self, step: &Step) -> Option<Id> {
        let Target::Object(kind, key) = &step.target else { return None };
        self.journal.get(*kind, key).and_then(|entry| entry.channel)
    }
}

/// The place of a step in its plan.
fn nth(plan: &Plan, step: &Step) -> u32 {
    let at = plan.steps.iter().position(|known| known.target == step.target).unwrap_or(plan.steps.len());
    u32::try_from(at).unwrap_or(u32::MAX)
}
