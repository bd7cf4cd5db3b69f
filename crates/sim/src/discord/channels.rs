//! Calls on channels: where one may be placed, who may change it, and what follows its category.

use hyper::StatusCode;

use super::channel::{CATEGORY, Channel, ChannelDraft, TEXT, is_slugged, sort_group};
use super::form::{Form, invalid, list};
use super::guild::{Actor, Guild, GuildCall};
use super::limits::{DiscordLimits, RENAMES};
use super::overwrite::{Overwrite, OverwriteKind};
use super::permissions::{MANAGE_CHANNELS, MANAGE_ROLES, VIEW_CHANNEL};
use super::refusal::{CallResult, CompletedCall, DiscordErrorCode, DiscordRefusal};

impl Guild {
    /// Creates a channel. Without overwrites it gets those of its category.
    ///
    /// # Errors
    /// When it is refused.
    pub fn create_channel(&mut self, turn: &mut GuildCall<'_>) -> CallResult {
        let mut form = Form::of(turn.body);
        form.require("name");
        let mut draft = ChannelDraft::read(&mut form, TEXT);
        form.finish()?;
        self.require(turn.actor, MANAGE_CHANNELS)?;
        let kind = draft.kind.unwrap_or(TEXT);
        let given = draft.overwrites.as_deref().unwrap_or_default();
        self.check_grantable(turn.actor, given, self.rights(turn.actor).map_or(0, |rights| rights.held))?;
        if self.channels.len() >= turn.limits.channels_max {
            return Err(DiscordErrorCode::TooManyChannels(turn.limits.channels_max).into());
        }
        let parent = draft.parent.flatten().filter(|_| kind != CATEGORY);
        self.check_category(parent, None, turn.limits)?;
        if draft.overwrites.is_none()
            && let Some(parent) = parent.and_then(|parent| self.channels.get(&parent))
        {
            draft.overwrites = Some(parent.overwrites.clone());
        }
        let alike = self.channels.values().filter(|channel| sort_group(channel.kind) == sort_group(kind));
        let last = alike.map(|channel| channel.position + 1).max().unwrap_or(0);
        let mut channel = Channel::new(turn.ids.next(turn.now), self.id, kind);
        channel.position = last;
        channel.apply(draft);
        let (id, shown) = (channel.id, channel.json());
        self.channels.insert(id, channel);
        Ok(CompletedCall::wrote(StatusCode::CREATED, id, shown))
    }

    /// Edits a channel. Its name and topic have a limit that no header announces.
    ///
    /// # Errors
    /// When it is refused.
    pub fn edit_channel(&mut self, turn: &GuildCall<'_>) -> CallResult {
        let known = self.channel(turn.target.channel)?;
        let mut form = Form::of(turn.body);
        let draft = ChannelDraft::read(&mut form, known.kind);
        form.finish()?;
        let held = self.require_in_channel(turn.actor, known, MANAGE_CHANNELS)?;
        if let Some(given) = &draft.overwrites {
            let changed = given.iter().filter(|overwrite| !known.overwrites.contains(overwrite));
            self.check_grantable(turn.actor, &changed.copied().collect::<Vec<_>>(), held)?;
        }
        let between = |kind: u64| kind == known.kind || is_slugged(kind) && is_slugged(known.kind);
        if !draft.kind.is_none_or(between) {
            return Err(DiscordErrorCode::WrongType.into());
        }
        let (id, before) = (known.id, known.overwrites.clone());
        self.check_category(draft.parent.flatten(), Some(id), turn.limits)?;
        if known.is_renamed_by(&draft) && turn.actor != Actor::Operator {
            let ruling = self.renames.entry(id).or_default().take(turn.limits.of(RENAMES), turn.now);
            if !ruling.allowed {
                return Err(DiscordRefusal::Hidden(ruling.reset_after));
            }
        }
        let channel = self.channels.get_mut(&id).ok_or(DiscordErrorCode::UnknownChannel)?;
        channel.apply(draft);
        let shown = channel.json();
        self.sync_with_category(id, &before);
        Ok(CompletedCall::wrote(StatusCode::OK, id, shown))
    }

    /// Deletes a channel. The channels of a deleted category stay, in none.
    ///
    /// # Errors
    /// When it is refused.
    pub fn delete_channel(&mut self, turn: &GuildCall<'_>) -> CallResult {
        let known = self.channel(turn.target.channel)?;
        self.require_in_channel(turn.actor, known, MANAGE_CHANNELS)?;
        let (id, shown) = (known.id, known.json());
        self.channels.remove(&id);
        self.messages.remove(&id);
        self.renames.remove(&id);
        for channel in self.channels.values_mut().filter(|channel| channel.parent == Some(id)) {
            channel.parent = None;
        }
        Ok(CompletedCall::wrote(StatusCode::OK, id, shown))
    }

    /// Moves channels to other positions, and at most one to another category.
    ///
    /// # Errors
    /// When it is refused; then none has moved.
    pub fn order_channels(&mut self, turn: &GuildCall<'_>) -> CallResult {
        let moves = list(turn.body, |form| {
            form.require("id");
            let (id, position) = (form.id("id"), form.number("position", 0..=10_000));
            let parent = form.id("parent_id");
            let parent = form.has("parent_id").then_some(parent);
            let locks = form.flag("lock_permissions").unwrap_or(false);
            Some((id?, position, parent, locks))
        })?;
        self.require(turn.actor, MANAGE_CHANNELS)?;
        let mut moved = 0;
        for (id, _, parent, _) in &moves {
            let known = self.channel(Some(*id))?;
            if parent.is_some_and(|parent| parent != known.parent) {
                moved += 1;
                self.check_category(parent.flatten(), Some(*id), turn.limits)?;
            }
        }
        if moved > 1 {
            return Err(DiscordErrorCode::TooManyMoves.into());
        }
        for (id, position, parent, locks) in moves {
            let Some(channel) = self.channels.get_mut(&id) else { continue };
            channel.position = position.unwrap_or(channel.position);
            channel.parent = parent.unwrap_or(channel.parent).filter(|_| channel.kind != CATEGORY);
            let above = channel.parent.filter(|_| locks);
            if let Some(overwrites) =
                above.and_then(|id| self.channels.get(&id)).map(|c| c.overwrites.clone())
                && let Some(channel) = self.channels.get_mut(&id)
            {
                channel.overwrites = overwrites;
            }
        }
        Ok(CompletedCall::no_content(self.id))
    }

    /// Checks that the caller sees a channel and holds these permissions in it.
    ///
    /// # Errors
    /// When the caller does not.
    pub(super) fn require_in_channel(
        &self,
        actor: Actor,
        channel: &Channel,
        bits: u64,
    ) -> Result<u64, DiscordRefusal> {
        let Some(rights) = self.rights(actor) else { return Ok(u64::MAX) };
        let held = rights.in_channel(&channel.overwrites);
        if held & VIEW_CHANNEL == 0 {
            return Err(DiscordErrorCode::MissingAccess.into());
        }
        if held & bits == bits { Ok(held) } else { Err(DiscordErrorCode::MissingPermissions.into()) }
    }

    /// Checks that overwrites are of existing roles, and name only permissions that the caller
    /// holds. Only administrators can grant the right to change permissions in a channel.
    pub(super) fn check_grantable(
        &self,
        actor: Actor,
        given: &[Overwrite],
        held: u64,
    ) -> Result<(), DiscordRefusal> {
        let Some(rights) = self.rights(actor) else { return Ok(()) };
        let strange =
            |given: &Overwrite| given.kind == OverwriteKind::Role && !self.roles.contains_key(&given.id);
        if given.iter().any(strange) {
            return Err(DiscordErrorCode::InvalidRole.into());
        }
        let named = given.iter().fold(0, |bits, overwrite| bits | overwrite.bits());
        let may = held & MANAGE_ROLES != 0 && named & !held == 0 && named & MANAGE_ROLES == 0;
        if given.is_empty() || rights.is_admin() || may {
            Ok(())
        } else {
            Err(DiscordErrorCode::MissingPermissions.into())
        }
    }

    /// Checks that a category is one, and has room for another channel, or for this one.
    fn check_category(
        &self,
        parent: Option<u64>,
        moved: Option<u64>,
        limits: &DiscordLimits,
    ) -> Result<(), DiscordRefusal> {
        let Some(parent) = parent else { return Ok(()) };
        let wrong = |code, message: &str| Err(invalid("parent_id", code, message.to_owned()));
        match self.channels.get(&parent) {
            None => return wrong("CHANNEL_PARENT_INVALID", "Category does not exist"),
            Some(channel) if channel.kind != CATEGORY => {
                return wrong("CHANNEL_PARENT_INVALID_TYPE", "Not a category");
            }
            Some(_) => {}
        }
        let others = self.channels.values().filter(|channel| Some(channel.id) != moved);
        if others.filter(|channel| channel.parent == Some(parent)).count() >= limits.category_max {
            let message = format!("Maximum number of channels in category reached ({})", limits.category_max);
            return wrong("CHANNEL_PARENT_MAX_CHANNELS", &message);
        }
        Ok(())
    }

    /// Keeps channels in sync with their category: those that had the same overwrites get its new
    /// ones.
    pub(super) fn sync_with_category(&mut self, category: u64, before: &[Overwrite]) {
        let Some(after) = self.channels.get(&category).map(|channel| channel.overwrites.clone()) else {
            return;
        };
        if same_overwrites(&after, before) {
            return;
        }
        for channel in self.channels.values_mut().filter(|channel| channel.parent == Some(category)) {
            if same_overwrites(&channel.overwrites, before) {
                channel.overwrites.clone_from(&after);
            }
        }
    }
}

/// Returns whether two lists are equal, in whatever order.
fn same_overwrites(one: &[Overwrite], other: &[Overwrite]) -> bool {
    one.len() == other.len() && one.iter().all(|overwrite| other.contains(overwrite))
}
