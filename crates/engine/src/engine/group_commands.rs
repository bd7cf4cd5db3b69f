//! Operator commands about a group: pause and resume.

use std::sync::Arc;

use tidegate_core::bounds;
use tidegate_core::model::{ControlRefusal, GroupView};
use tidegate_core::text::is_plain_text;
use tidegate_store::Clock;

use super::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::journey::ReleasedHead;
use crate::query::no_group_error;

impl Engine {
    /// Pauses a group. One that is paused already stays so; a new reason replaces the old one.
    ///
    /// # Errors
    /// When a name is out of bounds.
    pub async fn pause(&self, group: &str, by: &str, reason: &str) -> Result<GroupView> {
        self.pause_as(group, by, reason, false).await
    }

    /// Pauses a group that is not paused: no one's reason is replaced.
    ///
    /// # Errors
    /// When a name is out of bounds, or the group is paused already, by whom and why.
    pub async fn pause_unpaused(&self, group: &str, by: &str, reason: &str) -> Result<GroupView> {
        self.pause_as(group, by, reason, true).await
    }

    async fn pause_as(&self, group: &str, by: &str, reason: &str, only_unpaused: bool) -> Result<GroupView> {
        for (field, text, most) in [
            ("group", group, bounds::GROUP_LEN_MAX),
            ("by", by, bounds::NOTE_LEN_MAX),
            ("reason", reason, bounds::NOTE_LEN_MAX),
        ] {
            let least = usize::from(field != "reason");
            if !is_plain_text(text, least..=most) {
                let message = format!("{field} must be {least} to {most} bytes on one line");
                return Err(Error::new(ErrorKind::Invalid, message).field(field));
            }
        }
        let (group, by, reason): (Arc<str>, Arc<str>, Arc<str>) = (group.into(), by.into(), reason.into());
        let view = self.update_owner(move |owner| {
            let now = owner.clock.now();
            let facts = &mut owner.building.facts;
            let paused = if only_unpaused {
                owner.model.pause_unpaused(now, &group, &by, &reason, facts)
            } else {
                owner.model.pause(now, &group, &by, &reason, facts);
                Ok(())
            };
            (paused, owner.model.group(&group))
        });
        let (paused, view) = view.await?;
        let view =
            view.ok_or_else(|| Error::new(ErrorKind::Internal, "the group was paused and does not exist"))?;
        if paused.is_err() {
            return Err(already_paused_error(&view));
        }
        Ok(view)
    }

    /// Resumes a paused or held group. One that is neither stays as it is, so a resume can be
    /// repeated.
    ///
    /// # Errors
    /// When nothing is queued in the group and it is not stopped, or an outcome must be resolved
    /// first.
    pub async fn resume(&self, group: &str) -> Result<()> {
        self.resume_as(group, false).await
    }

    /// Resumes a paused or held group.
    ///
    /// # Errors
    /// When it is neither, or an outcome must be resolved first.
    pub async fn resume_stopped(&self, group: &str) -> Result<()> {
        self.resume_as(group, true).await
    }

    async fn resume_as(&self, group: &str, only_stopped: bool) -> Result<()> {
        let name: Arc<str> = group.into();
        let resumed = self.update_owner(move |owner| {
            let now = owner.clock.now();
            let held = owner.model.group(&name).and_then(|group| Some((group.head?, group.held?)));
            let resumed = owner.model.resume(now, &name, &mut owner.building.facts);
            // An unknown outcome stays unknown until it is resolved.
            if let (Ok(()), Some((head, held))) = (&resumed, held.filter(|(_, held)| !held.unknown)) {
                let head = ReleasedHead { seq: head.seq, accepted_at: head.at, held_since: held.since };
                owner.building.released.push(head);
            }
            resumed.map_err(|refusal| {
                let unresolved = match refusal {
                    ControlRefusal::Unresolved(seq) => {
                        owner.model.active(seq).map(|a| owner.id_of(seq, a.at))
                    }
                    _ => None,
                };
                (refusal, unresolved)
            })
        });
        match resumed.await? {
            Ok(()) => Ok(()),
            Err((ControlRefusal::NotStopped, _)) if !only_stopped => Ok(()),
            Err((ControlRefusal::NotStopped | ControlRefusal::NotActive, _)) if only_stopped => {
                let message = format!("the group {group:?} is neither paused nor held any more");
                Err(Error::new(ErrorKind::NotNow, message).field("group"))
            }
            Err((ControlRefusal::Unresolved(_), Some(id))) => {
                let message = format!("the outcome of {id} is unknown: resolve or cancel it first");
                Err(Error::new(ErrorKind::NotNow, message).operation(id))
            }
            Err(_) => Err(no_group_error(group)),
        }
    }
}

fn already_paused_error(group: &GroupView) -> Error {
    let (by, since, reason) = match &group.paused {
        Some((by, since, reason)) => (&**by, since.to_string(), &**reason),
        None => return Error::new(ErrorKind::NotNow, "the group was paused already"),
    };
    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let message = format!("the group is paused already, by {by} since {since}{why}");
    Error::new(ErrorKind::NotNow, message).field("group")
}
