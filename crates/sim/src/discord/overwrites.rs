//! Calls on one overwrite of a channel.

use super::form::Form;
use super::guild::{Guild, Turn};
use super::overwrite::{OVERWRITES_MAX, Whom, put, read};
use super::permissions::MANAGE_ROLES;
use super::refusal::{Code, Done, Outcome};

impl Guild {
    /// Puts one in place, be there one or not.
    ///
    /// # Errors
    /// When it is refused.
    pub fn put_overwrite(&mut self, turn: &Turn<'_>) -> Outcome {
        let channel = self.channel(turn.target.channel)?;
        let mut form = Form::of(turn.body);
        let overwrite = read(&mut form, Some(turn.target.inner));
        form.finish()?;
        let overwrite = overwrite.ok_or(Code::UnknownOverwrite)?;
        if overwrite.whom == Whom::Role && !self.roles.contains_key(&overwrite.id) {
            return Err(Code::UnknownOverwrite.into());
        }
        let held = self.within(turn.actor, channel, MANAGE_ROLES)?;
        self.must_hold(turn.actor, &[overwrite], held)?;
        let is_new = channel.overwrites.iter().all(|known| known.id != overwrite.id);
        if is_new && channel.overwrites.len() >= OVERWRITES_MAX {
            return Err(Code::TooManyOverwrites.into());
        }
        let (id, before) = (channel.id, channel.overwrites.clone());
        if let Some(channel) = self.channels.get_mut(&id) {
            put(&mut channel.overwrites, overwrite);
        }
        self.follow(id, &before);
        Ok(Done::quietly(overwrite.id))
    }

    /// Removes one.
    ///
    /// # Errors
    /// When it is refused.
    pub fn delete_overwrite(&mut self, turn: &Turn<'_>) -> Outcome {
        let channel = self.channel(turn.target.channel)?;
        let known = channel.overwrites.iter().find(|overwrite| overwrite.id == turn.target.inner);
        let known = *known.ok_or(Code::UnknownOverwrite)?;
        let held = self.within(turn.actor, channel, MANAGE_ROLES)?;
        self.must_hold(turn.actor, &[known], held)?;
        let (id, before) = (channel.id, channel.overwrites.clone());
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.overwrites.retain(|overwrite| overwrite.id != known.id);
        }
        self.follow(id, &before);
        Ok(Done::quietly(known.id))
    }
}
