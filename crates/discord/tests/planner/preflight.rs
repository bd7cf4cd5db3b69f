//! What the bot may do in the guild, checked before the first write.

use tidegate_discord::guild::BotStanding;
use tidegate_discord::permission::Permissions;
use tidegate_discord::plan::{Conflict, check_standing};

use crate::adoption::deployed;

fn bot(names: &[&str]) -> BotStanding {
    let permissions = names.iter().filter_map(|name| Permissions::named(name));
    BotStanding {
        permissions: permissions.fold(Permissions(0), Permissions::union),
        top_position: 1_000,
        is_owner: false,
        has_community: Some(true),
    }
}

/// OPS-10, OPS-19: every missing permission is found at once, with what needs it; an administrator
/// and an owner lack none.
#[test]
fn ops_19_all_missing_permissions_are_found() {
    let (mut world, template) = deployed();
    world.guild.roles.retain(|role| role.id == world.guild.id);
    world.guild.channels.clear();
    world.guild.messages.clear();
    let plan = world.plan(&template);
    let missing = |bot: &BotStanding| -> Vec<String> {
        let conflicts = check_standing(&template, &plan, &world.guild, bot);
        conflicts.iter().map(ToString::to_string).collect()
    };
    let all = missing(&bot(&["VIEW_CHANNEL", "READ_MESSAGE_HISTORY"]));
    let named = |text: &str| all.iter().any(|problem| problem.contains(text));
    assert!(named("lacks MANAGE_ROLES, which ") && named("such as the role lead"), "{all:?}");
    assert!(named("lacks MANAGE_CHANNELS, which ") && named("lacks KICK_MEMBERS, which "), "{all:?}");
    assert!(named("lacks SEND_MESSAGES") && !named("lacks VIEW_CHANNEL"), "{all:?}");
    assert_eq!(missing(&bot(&["ADMINISTRATOR"])), [""; 0]);
    assert_eq!(missing(&BotStanding { is_owner: true, ..bot(&[]) }), [""; 0]);
}

/// OPS-19: a role above the bot's own, and channels that the guild cannot have, are found too.
#[test]
fn ops_19_positions_and_features_are_checked() {
    let (mut world, mut template) = deployed();
    template.roles[0].hoist = !template.roles[0].hoist;
    let plan = world.plan(&template);
    let low = BotStanding { top_position: 1, ..bot(&["ADMINISTRATOR"]) };
    let found = check_standing(&template, &plan, &world.guild, &low);
    assert!(
        matches!(&found[..], [Conflict::RoleAboveBot { key, .. }] if key.as_str() == "lead"),
        "{found:?}"
    );
    world.guild.channels.clear();
    let plan = world.plan(&template);
    let plain = BotStanding { has_community: Some(false), ..bot(&["ADMINISTRATOR"]) };
    let found = check_standing(&template, &plan, &world.guild, &plain);
    let [Conflict::NoCommunity { channels }] = &found[..] else { panic!("{found:?}") };
    assert_eq!(
        channels.iter().map(tidegate_discord::ObjectKey::as_str).collect::<Vec<_>>(),
        ["news", "ideas"]
    );
    let untold = BotStanding { has_community: None, ..plain };
    assert!(check_standing(&template, &plan, &world.guild, &untold).is_empty());
}
