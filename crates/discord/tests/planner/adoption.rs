//! Which objects are adopted, which are not, and which are a conflict.

use tidegate_discord::journal::GuildJournal;
use tidegate_discord::plan::{Action, Conflict, Options, Plan, PlanStep, StepTarget, channels_to_read};
use tidegate_discord::template::{ChannelType, Template};
use tidegate_discord::{Id, ObjectKey, ObjectKind};

use crate::fake_discord::{FakeDiscord, renames};

pub(crate) fn small() -> Template {
    Template::read("small.yaml", include_str!("../../../../examples/guilds/small.yaml")).unwrap()
}

pub(crate) fn key(text: &str) -> ObjectKey {
    ObjectKey::new(text).unwrap()
}

pub(crate) fn step<'a>(plan: &'a Plan, kind: ObjectKind, text: &str) -> &'a PlanStep {
    plan.steps.iter().find(|step| step.target == StepTarget::Object(kind, key(text))).unwrap()
}

pub(crate) fn deployed() -> (FakeDiscord, Template) {
    let mut world = FakeDiscord::new();
    let template = small();
    world.deploy(&template);
    (world, template)
}

pub(crate) fn id(world: &FakeDiscord, kind: ObjectKind, text: &str) -> Id {
    world.journal.get(kind, &key(text)).unwrap().id
}

/// OPS-19: a new channel is complete with its one call; nothing is renamed afterwards.
#[test]
fn ops_19_everything_in_one_call() {
    let template = small();
    let plan = FakeDiscord::new().plan(&template);
    assert_eq!(renames(&plan), 0);
    assert_eq!(plan.writes().count(), 4 + 2 + 6 + 2 + 2);
}

/// OPS-14: a changed display name is an update of the one object, with a journal and without.
#[test]
fn ops_14_a_new_display_name_is_an_update() {
    for keeps_journal in [true, false] {
        let (mut world, mut template) = deployed();
        template.roles[0].name = "Chief".into();
        template.categories[0].name = "Entrance".into();
        template.channels[1].name = "Ask here".into();
        if !keeps_journal {
            world.journal = GuildJournal::default();
        }
        let plan = world.plan(&template);
        assert_eq!(plan.writes().count(), 3, "{plan}");
        assert!(plan.writes().all(|step| step.action == Action::Update && step.changes.len() == 1));
        let call = step(&plan, ObjectKind::Channel, "intake").call.as_ref().unwrap();
        assert_eq!(
            call.to_display_json(),
            serde_json::json!({"name": "ask-here-intake"}),
            "only what differs is sent"
        );
        world.apply(&plan);
        assert!(world.plan(&template).is_empty());
    }
}

/// OPS-14: two objects with one key stop the deployment, and both are named. If the journal knows
/// one of them, that one is ours, and the other one is left alone.
#[test]
fn ops_14_several_are_a_conflict_with_both_ids() {
    let (mut world, template) = deployed();
    let lead = id(&world, ObjectKind::Role, "lead");
    let mut twin = world.guild.role(lead).unwrap().clone();
    twin.id = world.id();
    twin.name = "〚SSO〛 Somebody else 〔lead〕".into();
    let desk = id(&world, ObjectKind::Channel, "desk");
    let mut other = world.guild.channel(desk).unwrap().clone();
    other.id = world.id();
    other.name = "copy-desk".into();
    let alone = world.plan(&template);
    world.guild.roles.push(twin.clone());
    world.guild.channels.push(other.clone());
    let plan = Plan::make(&template, &world.guild, &GuildJournal::default(), Options { prune: true });
    let found: Vec<_> = plan.conflicts.iter().map(duplicates).collect();
    assert_eq!(
        found,
        [("role lead".to_owned(), vec![lead, twin.id]), ("channel desk".to_owned(), vec![desk, other.id])]
    );
    assert!(!plan.is_empty());
    let touched =
        |kind, text: &str| plan.steps.iter().any(|step| step.target == StepTarget::Object(kind, key(text)));
    assert!(!touched(ObjectKind::Role, "lead") && !touched(ObjectKind::Channel, "desk"), "{plan}");
    let told = plan.to_string();
    assert!(told.contains(&format!("and {} \"copy-desk\"", other.id)), "{told}");
    let known = Plan::make(&template, &world.guild, &world.journal, Options { prune: true });
    assert_eq!((known.conflicts.len(), known.digest()), (0, alone.digest()), "{known}");
    let namesakes: Vec<_> = known.namesakes.iter().map(|other| (other.id, other.managed_id)).collect();
    assert_eq!(namesakes, [(twin.id, lead), (other.id, desk)]);
    assert!(known.to_string().contains("= channel \"copy-desk\""), "{known}");
}

/// The object and the ids of a conflict about a key.
fn duplicates(conflict: &Conflict) -> (String, Vec<tidegate_discord::Id>) {
    let Conflict::DuplicateKey { kind, key, ids, .. } = conflict else { panic!("{conflict}") };
    (format!("{kind} {key}"), ids.clone())
}

/// OPS-14: a channel in an unmanaged category is not ours, even with the exact name; outside all
/// categories it is only if it has the whole name, or the template wants it there.
#[test]
fn ops_14_a_channel_needs_more_than_a_key() {
    let template = small();
    let adopted = |name: &str, kind: u8, in_category: bool| {
        let mut world = FakeDiscord::new();
        world.deploy(&Template { channels: Vec::new(), messages: Vec::new(), ..template.clone() });
        let mut place = world.guild.channels[0].clone();
        place.id = world.id();
        place.name = "Theirs".into();
        let mut live = place.clone();
        (live.id, live.kind, live.name) = (world.id(), kind, name.to_owned());
        live.parent = in_category.then_some(place.id);
        world.guild.channels.extend([place, live.clone()]);
        step(&world.plan(&template), ObjectKind::Channel, "intake").id == Some(live.id)
    };
    assert!(!adopted("priemnaya-intake", 0, true));
    assert!(adopted("priemnaya-intake", 0, false));
    assert!(adopted("priemnaya-intake", 5, false), "text and announcement turn into each other");
    assert!(!adopted("priemnaya-intake", 2, false));
    assert!(!adopted("general-intake", 0, false));
}

/// OPS-14: a channel whose type cannot be changed is a conflict, and no second one is created.
#[test]
fn ops_14_another_type_is_a_conflict() {
    let (mut world, mut template) = deployed();
    template.channels[1].channel_type = ChannelType::Voice;
    (template.channels[1].topic, template.messages) = (String::new(), Vec::new());
    for keeps_journal in [true, false] {
        if !keeps_journal {
            world.journal = GuildJournal::default();
        }
        let plan = world.plan(&template);
        let told: Vec<_> = plan.conflicts.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("is a text channel and cannot become a voice channel"), "{told:?}");
        assert_eq!(plan.writes().count(), 0, "{plan}");
    }
}

/// OPS-14: a role that belongs to an integration is never ours.
#[test]
fn ops_14_integration_roles_are_not_adopted() {
    let (mut world, template) = deployed();
    let lead = id(&world, ObjectKind::Role, "lead");
    world.guild.roles.iter_mut().find(|role| role.id == lead).unwrap().managed = true;
    assert_eq!(step(&world.plan(&template), ObjectKind::Role, "lead").action, Action::Create);
}

/// OPS-20: a message is found by its marker among the bot's own and edited; a second one with the
/// marker stops the deployment.
#[test]
fn ops_20_a_message_is_found_by_its_marker() {
    let (mut world, mut template) = deployed();
    world.journal = GuildJournal::default();
    template.messages[0].content = "Hello.".into();
    let plan = world.plan(&template);
    let (welcome, hours) =
        (step(&plan, ObjectKind::Message, "welcome"), step(&plan, ObjectKind::Message, "hours"));
    assert_eq!((welcome.action, hours.action), (Action::Update, Action::Skip));
    assert!(welcome.adopted && hours.adopted);
    world.apply(&plan);
    let place = id(&world, ObjectKind::Channel, "intake");
    assert_eq!(world.guild.messages[&place].len(), 2);
    let mut twin = world.guild.messages[&place][0].clone();
    twin.id = world.id();
    world.guild.messages.get_mut(&place).unwrap().push(twin);
    assert!(matches!(
        world.plan(&template).conflicts.as_slice(),
        [Conflict::DuplicateKey { kind: ObjectKind::Message, .. }]
    ));
}

/// OPS-18, OPS-20: what the journal settles need not be read; what it does not settle is listed.
#[test]
fn ops_18_messages_are_read_only_where_needed() {
    let (mut world, mut template) = deployed();
    let place = id(&world, ObjectKind::Channel, "intake");
    assert!(channels_to_read(&template, &world.guild, &world.journal, |_| false).is_empty());
    assert!(channels_to_read(&template, &world.guild, &world.journal, |_| true).contains(&place));
    world.guild.messages.clear();
    assert!(world.plan(&template).is_empty(), "the journal is believed where nothing was read");
    template.messages[1].content = "Always.".into();
    assert!(channels_to_read(&template, &world.guild, &world.journal, |_| false).contains(&place));
    let plan = world.plan(&template);
    assert_eq!(step(&plan, ObjectKind::Message, "hours").action, Action::Update);
}

/// OPS-19, OPS-26: a lack of room in a nearly full guild is reported before the first call.
#[test]
fn ops_19_room_is_counted_with_strangers() {
    let mut world = FakeDiscord::new();
    let role = world.guild.roles[0].clone();
    while world.guild.roles.len() < 247 {
        let id = world.id();
        world.guild.roles.push(tidegate_discord::guild::Role {
            id,
            position: 1,
            name: "r".into(),
            ..role.clone()
        });
    }
    let plan = world.plan(&small());
    let told: Vec<_> = plan.conflicts.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["there would be 251 roles; Discord allows 250."]);
    world.guild.roles.pop();
    assert_eq!(world.plan(&small()).conflicts, []);
}

/// OPS-19: channels that are not ours count in a category too.
#[test]
fn ops_19_room_in_a_category_is_counted_with_strangers() {
    let (mut world, template) = deployed();
    let front = id(&world, ObjectKind::Category, "front");
    let is_there = |channel: &&tidegate_discord::guild::Channel| channel.parent == Some(front);
    let stranger = world.guild.channels.iter().find(is_there).unwrap().clone();
    while world.guild.channels.iter().filter(is_there).count() < 50 {
        let id = world.id();
        world.guild.channels.push(tidegate_discord::guild::Channel {
            id,
            name: "stranger".into(),
            ..stranger.clone()
        });
    }
    assert_eq!(world.plan(&template).conflicts, []);
    let lobby = id(&world, ObjectKind::Channel, "lobby");
    world.remove(lobby);
    assert_eq!(world.plan(&template).conflicts, [], "one left, and there is room for it again");
    let id = world.id();
    world.guild.channels.push(tidegate_discord::guild::Channel { id, name: "stranger".into(), ..stranger });
    let told: Vec<_> = world.plan(&template).conflicts.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["there would be 51 channels in the category front; Discord allows 50."]);
}
