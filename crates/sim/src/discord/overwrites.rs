//! Calls on one overwrite of a channel.

use super::form::Form;
use super::guild::{Guild, GuildCall};
use super::overwrite::{OVERWRITES_MAX, OverwriteKind, put, read};
use super::permissions::MANAGE_ROLES;
use super::refusal::{CallResult, CompletedCall, DiscordErrorCode};

impl Guild {
    /// Creates or replaces an overwrite.
    ///
    /// # Errors
    /// When it is refused.
    pub fn put_overwrite(&mut self, turn: &GuildCall<'_>) -> CallResult {
        let channel = self.channel(turn.target.channel)?;
        let mut form = Form::of(turn.body);
        let overwrite = read(&mut form, Some(turn.target.inner));
        form.finish()?;
        let overwrite = overwrite.ok_or(DiscordErrorCode::UnknownOverwrite)?;
        if overwrite.kind == OverwriteKind::Role && !self.roles.contains_key(&overwrite.id) {
            return Err(DiscordErrorCode::UnknownOverwrite.into());
        }
        let held = self.require_in_channel(turn.actor, channel, MANAGE_ROLES)?;
        self.check_grantable(turn.actor, &[overwrite], held)?;
        let is_new = channel.overwrites.iter().all(|known| known.id != overwrite.id);
        if is_new && channel.overwrites.len() >= OVERWRITES_MAX {
            return Err(DiscordErrorCode::TooManyOverwrites.into());
        }
        let (id, before) = (channel.id, channel.overwrites.clone());
        if let Some(channel) = self.channels.get_mut(&id) {
            put(&mut channel.overwrites, overwrite);
        }
        self.sync_with_category(id, &before);
        Ok(CompletedCall::no_content(overwrite.id))
    }

    /// Deletes an overwrite.
    ///
    /// # Errors
    /// When it is refused.
    pub fn delete_overwrite(&mut self, turn: &GuildCall<'_>) -> CallResult {
        let channel = self.channel(turn.target.channel)?;
        let known = channel.overwrites.iter().find(|overwrite| overwrite.id == turn.target.inner);
        let known = *known.ok_or(DiscordErrorCode::UnknownOverwrite)?;
        let held = self.require_in_channel(turn.actor, channel, MANAGE_ROLES)?;
        self.check_grantable(turn.actor, &[known], held)?;
        let (id, before) = (channel.id, channel.overwrites.clone());
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.overwrites.retain(|overwrite| overwrite.id != known.id);
        }
        self.sync_with_category(id, &before);
        Ok(CompletedCall::no_content(known.id))
    }
}
