//! What the bot may do in the guild, checked before the first write.

use tidegate_discord::guild::{BotStanding, Overwrite};
use tidegate_discord::permission::Permissions;
use tidegate_discord::plan::{Conflict, check_standing, find_lockouts};
use tidegate_discord::template::{OverwriteSource, OverwriteSpec, OverwriteTarget};
use tidegate_discord::{Id, ObjectKind};

use crate::adoption::deployed;

fn bot(names: &[&str]) -> BotStanding {
    let permissions = names.iter().filter_map(|name| Permissions::named(name));
    BotStanding {
        id: Id(7),
        roles: vec![Id(8)],
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

/// OPS-10, OPS-19: where an overwrite takes a permission that the bot's roles have, no one is told
/// to grant it; edits are checked with the overwrites that the guild has now, and a plan says when
/// it will lock the bot out.
#[test]
fn ops_19_overwrites_that_lock_the_bot_out_are_named() {
    let (mut world, mut template) = deployed();
    let bot = bot(&[
        "MANAGE_ROLES",
        "MANAGE_CHANNELS",
        "VIEW_CHANNEL",
        "SEND_MESSAGES",
        "MANAGE_MESSAGES",
        "READ_MESSAGE_HISTORY",
    ]);
    let view = Permissions::named("VIEW_CHANNEL").unwrap();
    let desk = crate::adoption::id(&world, ObjectKind::Channel, "desk");
    let hidden = |id, of_member, allow, deny| Overwrite { id, of_member, allow, deny };
    let nothing = Permissions(0);
    let live = world.guild.channels.iter_mut().find(|channel| channel.id == desk).unwrap();
    live.overwrites = vec![hidden(Id(1), false, nothing, view)];
    live.slow_mode = 9;
    let plan = world.plan(&template);
    let found = check_standing(&template, &plan, &world.guild, &bot);
    let is_locked = |found: &[Conflict], by: bool| {
        found.iter().any(|one| {
            matches!(one, Conflict::LockedOut { permission, key, by_template, .. }
                if *permission == view && key.as_str() == "desk" && *by_template == by)
        })
    };
    assert!(is_locked(&found, false), "{found:?}");
    assert!(found.iter().all(|one| !one.to_string().contains("Grant it")), "{found:?}");
    for own in [hidden(Id(8), false, view, nothing), hidden(Id(7), true, view, nothing)] {
        let live = world.guild.channels.iter_mut().find(|channel| channel.id == desk).unwrap();
        live.overwrites.truncate(1);
        live.overwrites.push(own);
        let found = check_standing(&template, &world.plan(&template), &world.guild, &bot);
        assert!(!is_locked(&found, false), "an overwrite for the bot lets it in: {found:?}");
    }
    let channel = template.channels.iter_mut().find(|channel| channel.key.as_str() == "desk").unwrap();
    let everyone = OverwriteSpec { target: OverwriteTarget::Everyone, allow: nothing, deny: view };
    channel.access = OverwriteSource::Own(vec![everyone]);
    template.messages[0].channel = channel.key.clone();
    world.guild.channels.clear();
    world.guild.messages.clear();
    let plan = world.plan(&template);
    let found = check_standing(&template, &plan, &world.guild, &bot);
    assert!(is_locked(&found, true), "{found:?}");
    let told = find_lockouts(&template, &plan, &world.guild, &bot).unwrap();
    assert!(told.contains("channel desk"), "{told}");
    let administrator = BotStanding { permissions: Permissions(8), ..bot };
    assert_eq!(find_lockouts(&template, &plan, &world.guild, &administrator), None);
    assert_eq!(check_standing(&template, &plan, &world.guild, &administrator), []);
}
