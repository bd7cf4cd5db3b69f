//! Managed objects that left the template: reported, and removed only on request.

use tidegate_discord::ObjectKind;
use tidegate_discord::plan::{Action, Options, Plan};

use crate::adoption::{deployed, id};

/// OPS-19: an object that left the template stays and is reported; with prune it is removed, in a
/// possible order.
#[test]
fn ops_19_only_prune_removes() {
    let (mut world, mut template) = deployed();
    let roles = world.guild.roles.len();
    template.roles.retain(|role| role.key.as_str() != "guest");
    template.categories.retain(|category| category.key.as_str() != "office");
    template.channels.retain(|channel| !matches!(channel.key.as_str(), "desk" | "archive"));
    template.messages.retain(|message| message.key.as_str() != "hours");
    let plan = world.plan(&template);
    assert_eq!((plan.writes().count(), plan.leftovers.len()), (0, 5), "{plan}");
    insta::assert_snapshot!(plan);

    let pruned = Plan::make(&template, &world.guild, &world.journal, Options { prune: true });
    let kinds: Vec<_> = pruned.writes().map(|step| (step.action, step.target.kind().unwrap())).collect();
    let gone = [
        ObjectKind::Message,
        ObjectKind::Channel,
        ObjectKind::Channel,
        ObjectKind::Category,
        ObjectKind::Role,
    ];
    assert_eq!(kinds, gone.map(|kind| (Action::Remove, kind)));
    let told = pruned.to_string();
    for lost in [
        "    - messages: all are lost with the channel",
        "    - name: \"〚SSO〛 Guest 〔guest〕\"",
        "    - type: text",
    ] {
        assert!(told.contains(lost), "{lost}: {told}");
    }
    world.apply(&pruned);
    assert_eq!(world.guild.roles.len(), roles - 1);
    let again = Plan::make(&template, &world.guild, &world.journal, Options { prune: true });
    assert!(again.is_empty() && again.leftovers.is_empty(), "{again}");
}

/// OPS-19: where there is no room for the new objects otherwise, the old ones are removed first;
/// and what they leave is counted.
#[test]
fn ops_19_prune_makes_room() {
    let (mut world, mut template) = deployed();
    while world.guild.roles.len() < 250 {
        let stranger = tidegate_discord::guild::Role {
            id: tidegate_discord::Id(1_000_000 + world.guild.roles.len() as u64),
            name: "a stranger's".to_owned(),
            ..world.guild.roles[0].clone()
        };
        world.guild.roles.push(stranger);
    }
    let guest = template.roles.iter_mut().find(|role| role.key.as_str() == "guest").unwrap();
    guest.key = tidegate_discord::ObjectKey::new("visitor").unwrap();
    let kept = Plan::make(&template, &world.guild, &world.journal, Options::default());
    assert_eq!(kept.conflicts.len(), 1, "{kept}");
    let pruned = Plan::make(&template, &world.guild, &world.journal, Options { prune: true });
    assert!(pruned.conflicts.is_empty(), "{pruned}");
    let actions: Vec<_> = pruned.scheduled_steps().iter().map(|step| step.action).collect();
    assert_eq!(actions, [Action::Remove, Action::Create]);
}

/// OPS-19: prune without a journal knows roles and categories by their prefix, and leaves channels
/// alone: a name alone does not prove whose they are.
#[test]
fn ops_19_prune_is_sure_of_what_it_removes() {
    let (mut world, mut template) = deployed();
    template.roles.clear();
    template.categories.clear();
    template.channels.clear();
    template.messages.clear();
    let journal = tidegate_discord::journal::GuildJournal::default();
    world.guild.messages.clear();
    let plan = Plan::make(&template, &world.guild, &journal, Options { prune: true });
    let kinds: Vec<_> = plan.writes().filter_map(|step| step.target.kind()).collect();
    assert_eq!(kinds, [vec![ObjectKind::Category; 2], vec![ObjectKind::Role; 4]].concat());
}

/// OPS-14: an object that the journal knew by an old key, and whose name has the new one, is kept.
#[test]
fn ops_14_a_key_that_changed_its_case_is_no_leftover() {
    let (mut world, mut template) = deployed();
    template.messages.clear();
    template.channels.retain(|channel| channel.key.as_str() == "intake");
    template.channels[0].key = tidegate_discord::ObjectKey::new("Intake").unwrap();
    let plan = Plan::make(&template, &world.guild, &world.journal, Options { prune: true });
    let intake = id(&world, ObjectKind::Channel, "intake");
    assert!(plan.leftovers.iter().all(|left| left.id != intake), "{plan}");
    world.apply(&plan);
    assert!(world.guild.channel(intake).is_some());
    let again = Plan::make(&template, &world.guild, &world.journal, Options { prune: true });
    assert!(again.is_empty(), "{again}");
}
