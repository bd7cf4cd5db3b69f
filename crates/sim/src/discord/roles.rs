//! Calls on roles: who may change which one, where a new one enters, and how they are ordered.

use std::cmp::Reverse;

use hyper::StatusCode;

use super::form::{Form, list};
use super::guild::{Actor, Guild, GuildCall};
use super::limits::ROLE_CREATES;
use super::permissions::MANAGE_ROLES;
use super::refusal::{CallResult, CompletedCall, DiscordErrorCode, DiscordRefusal};
use super::role::{Role, RoleDraft};

impl Guild {
    /// Creates a role. It enters above @everyone, and all others move up.
    ///
    /// # Errors
    /// When it is refused.
    pub fn create_role(&mut self, turn: &mut GuildCall<'_>) -> CallResult {
        let mut form = Form::of(turn.body);
        let mut draft = RoleDraft::read(&mut form);
        form.finish()?;
        self.require(turn.actor, MANAGE_ROLES)?;
        let everyone = self.role(self.id)?.permissions;
        self.require(turn.actor, draft.permissions.unwrap_or(0))?;
        if self.roles.len() > turn.limits.roles_max {
            return Err(DiscordErrorCode::TooManyRoles(turn.limits.roles_max).into());
        }
        if turn.actor != Actor::Operator {
            let ruling = self.role_creates.take(turn.limits.of(ROLE_CREATES), turn.now);
            if !ruling.allowed {
                return Err(DiscordRefusal::Hidden(ruling.reset_after));
            }
        }
        draft.permissions.get_or_insert(everyone);
        for role in self.roles.values_mut().filter(|role| role.position > 0) {
            role.position += 1;
        }
        let mut role = Role::new(turn.ids.next(turn.now), "new role", 1, 0);
        role.apply(draft);
        let (id, shown) = (role.id, role.json());
        self.roles.insert(id, role);
        Ok(CompletedCall::wrote(StatusCode::OK, id, shown))
    }

    /// Edits a role below the caller's.
    ///
    /// # Errors
    /// When it is refused.
    pub fn edit_role(&mut self, turn: &GuildCall<'_>) -> CallResult {
        let id = turn.target.inner;
        let known = self.role(id)?;
        let mut form = Form::of(turn.body);
        let draft = RoleDraft::read(&mut form);
        form.finish()?;
        self.require(turn.actor, MANAGE_ROLES)?;
        self.require(turn.actor, draft.permissions.map_or(0, |bits| bits ^ known.permissions))?;
        self.check_below(turn.actor, known.position)?;
        let everyone = self.id;
        let role = self.roles.get_mut(&id).ok_or(DiscordErrorCode::UnknownRole)?;
        role.apply(draft);
        if id == everyone {
            role.name = "@everyone".to_owned();
        }
        Ok(CompletedCall::wrote(StatusCode::OK, id, role.json()))
    }

    /// Deletes a role, and its overwrites.
    ///
    /// # Errors
    /// When it is refused.
    pub fn delete_role(&mut self, turn: &GuildCall<'_>) -> CallResult {
        let known = self.role(turn.target.inner)?;
        self.require(turn.actor, MANAGE_ROLES)?;
        if known.id == self.id || known.bot.is_some() {
            return Err(DiscordErrorCode::InvalidRole.into());
        }
        self.check_below(turn.actor, known.position)?;
        let (id, position) = (known.id, known.position);
        self.roles.remove(&id);
        for role in self.roles.values_mut().filter(|role| role.position > position) {
            role.position -= 1;
        }
        for channel in self.channels.values_mut() {
            channel.overwrites.retain(|overwrite| overwrite.id != id);
        }
        Ok(CompletedCall::no_content(id))
    }

    /// Moves roles to other positions. Where two want the same position, the older one is above.
    ///
    /// # Errors
    /// When it is refused; then none has moved.
    pub fn order_roles(&mut self, turn: &GuildCall<'_>) -> CallResult {
        let moves = list(turn.body, |form| {
            form.require("id");
            let (id, position) = (form.id("id")?, form.number("position", 0..=10_000));
            Some((id, position))
        })?;
        self.require(turn.actor, MANAGE_ROLES)?;
        for (id, position) in &moves {
            let known = self.role(*id)?.position;
            if let Some(position) = position.filter(|position| *position != known) {
                self.check_below(turn.actor, known.max(position))?;
            }
        }
        for (id, position) in moves {
            if let (Some(role), Some(position)) = (self.roles.get_mut(&id), position) {
                role.position = position;
            }
        }
        let everyone = self.id;
        let mut order: Vec<_> = self.roles.values_mut().collect();
        order.sort_by_key(|role| (role.id != everyone, role.position, Reverse(role.id)));
        for (position, role) in order.into_iter().enumerate() {
            role.position = position as u64;
        }
        Ok(CompletedCall::wrote(StatusCode::OK, everyone, self.roles_json()))
    }

    /// Checks that a position is below the caller's highest role.
    fn check_below(&self, actor: Actor, position: u64) -> Result<(), DiscordRefusal> {
        let below = self.rights(actor).is_none_or(|rights| position < rights.position);
        if below { Ok(()) } else { Err(DiscordErrorCode::MissingPermissions.into()) }
    }
}
