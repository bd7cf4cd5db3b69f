//! Permissions: the bits that the simulator looks at, and what remains of them in a channel.

use super::overwrite::{Overwrite, OverwriteKind};

/// All of them, whatever an overwrite says.
pub const ADMINISTRATOR: u64 = 1 << 3;
/// Making, changing and removing channels.
pub const MANAGE_CHANNELS: u64 = 1 << 4;
/// Seeing a channel.
pub const VIEW_CHANNEL: u64 = 1 << 10;
/// Writing messages.
pub const SEND_MESSAGES: u64 = 1 << 11;
/// Removing the messages of others.
pub const MANAGE_MESSAGES: u64 = 1 << 13;
/// Making, changing and removing roles, and who may what in a channel.
pub const MANAGE_ROLES: u64 = 1 << 28;
/// What a fresh guild's @everyone may: seeing, writing, reading back, speaking and the like; nothing that manages.
pub const EVERYONE: u64 = 0x0008_8637_CE41;

/// Who calls, as far as permissions go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerPermissions {
    /// The guild, which is also the id of @everyone.
    pub guild: u64,
    /// The caller.
    pub user: u64,
    /// The caller's highest role.
    pub role: u64,
    /// Where that role stands.
    pub position: u64,
    /// What the caller holds in the guild.
    pub held: u64,
}

impl CallerPermissions {
    /// Whether nothing is kept from the caller, hierarchy aside.
    #[must_use]
    pub const fn is_admin(&self) -> bool {
        self.held & ADMINISTRATOR != 0
    }

    /// Whether the caller holds all of these in the guild.
    #[must_use]
    pub const fn has(&self, bits: u64) -> bool {
        self.is_admin() || self.held & bits == bits
    }

    /// What the caller holds in a channel with these overwrites.
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
        targets.into_iter().fold(self.held, |held, (whom, id)| {
            let found = overwrites.iter().find(|overwrite| overwrite.kind == whom && overwrite.id == id);
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
        let on = |whom, id, allow, deny| Overwrite { id, kind: whom, allow, deny };
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
