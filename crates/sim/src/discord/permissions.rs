//! Permissions: the bits that the simulator checks, and what remains of them in a channel.

use super::overwrite::{Overwrite, OverwriteKind};

/// All permissions, whatever an overwrite says.
pub const ADMINISTRATOR: u64 = 1 << 3;
/// Creating, changing and removing channels.
pub const MANAGE_CHANNELS: u64 = 1 << 4;
/// Seeing a channel.
pub const VIEW_CHANNEL: u64 = 1 << 10;
/// Posting messages.
pub const SEND_MESSAGES: u64 = 1 << 11;
/// Removing the messages of others.
pub const MANAGE_MESSAGES: u64 = 1 << 13;
/// Creating, changing and removing roles, and permissions in channels.
pub const MANAGE_ROLES: u64 = 1 << 28;
/// The permissions of @everyone in a new guild: viewing, writing, reading history, speaking and the
/// like; nothing that manages.
pub const EVERYONE: u64 = 0x0008_8637_CE41;

/// The caller's permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerPermissions {
    /// The guild, which is also the id of @everyone.
    pub guild: u64,
    /// The caller.
    pub user: u64,
    /// The caller's highest role.
    pub role: u64,
    /// The position of that role.
    pub position: u64,
    /// The caller's permissions in the guild.
    pub held: u64,
}

impl CallerPermissions {
    /// Returns whether the caller has every permission, apart from the hierarchy.
    #[must_use]
    pub const fn is_admin(&self) -> bool {
        self.held & ADMINISTRATOR != 0
    }

    /// Returns whether the caller holds all of these in the guild.
    #[must_use]
    pub const fn has(&self, bits: u64) -> bool {
        self.is_admin() || self.held & bits == bits
    }

    /// Returns what the caller holds in a channel with these overwrites.
    #[must_use]
    pub fn in_channel(&self, overwrites: &[Overwrite]) -> u64 {
        if self.is_admin() {
            return u64::MAX;
        }
        let targets = [
            (OverwriteKind::Role, self.guild),
            (OverwriteKind::Role, self.role),
            (OverwriteKind::Member, self.user),
        ];
        targets.into_iter().fold(self.held, |held, (kind, id)| {
            let found = overwrites.iter().find(|overwrite| overwrite.kind == kind && overwrite.id == id);
            found.map_or(held, |overwrite| held & !overwrite.deny | overwrite.allow)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overwrites_apply_to_everyone_then_the_role_then_the_member() {
        let rights =
            CallerPermissions { guild: 1, user: 2, role: 3, position: 1, held: VIEW_CHANNEL | SEND_MESSAGES };
        let on = |kind, id, allow, deny| Overwrite { id, kind, allow, deny };
        let everyone = on(OverwriteKind::Role, 1, 0, VIEW_CHANNEL | SEND_MESSAGES);
        let role = on(OverwriteKind::Role, 3, VIEW_CHANNEL, 0);
        let member = on(OverwriteKind::Member, 2, SEND_MESSAGES, VIEW_CHANNEL);
        assert_eq!(rights.in_channel(&[]), VIEW_CHANNEL | SEND_MESSAGES);
        assert_eq!(rights.in_channel(&[everyone]), 0);
        assert_eq!(rights.in_channel(&[role, everyone]), VIEW_CHANNEL);
        assert_eq!(rights.in_channel(&[member, role, everyone]), SEND_MESSAGES);
        assert_eq!(
            rights.in_channel(&[
                on(OverwriteKind::Member, 3, 0, u64::MAX),
                on(OverwriteKind::Role, 9, 0, u64::MAX)
            ]),
            rights.held
        );
        let admin = CallerPermissions { held: ADMINISTRATOR, ..rights };
        assert_eq!((admin.in_channel(&[everyone]), admin.has(MANAGE_ROLES)), (u64::MAX, true));
    }
}
