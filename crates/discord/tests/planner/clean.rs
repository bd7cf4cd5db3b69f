//! Clean names: what people see has no key, and a lost journal is rebuilt all the same.

use tidegate_discord::journal::GuildJournal;
use tidegate_discord::plan::{Action, Conflict};
use tidegate_discord::template::{NameStyle, Template};
use tidegate_discord::{ObjectKind, name};

use crate::adoption::{id, small, step};
use crate::fake_discord::FakeDiscord;

fn clean() -> Template {
    let template = Template { names: NameStyle::Clean, ..small() };
    assert_eq!(template.check(), []);
    template
}

fn deployed() -> (FakeDiscord, Template) {
    let (mut world, template) = (FakeDiscord::new(), clean());
    world.deploy(&template);
    // A run looks at the guild again, and puts it in order.
    world.deploy(&template);
    (world, template)
}

/// A server that keeps nothing that has no width.
fn strip_markers(world: &mut FakeDiscord) {
    world.guild.roles.iter_mut().for_each(|role| role.name = name::visible_text(&role.name));
    for channel in &mut world.guild.channels {
        channel.name = name::visible_text(&channel.name);
        channel.topic = name::visible_text(&channel.topic);
    }
}

/// OPS-13, OPS-16: nobody sees a key in a clean name, and the plan says what that rests on.
#[test]
fn ops_13_clean_names_are_what_the_template_says() {
    let (world, template) = deployed();
    for role in &template.roles {
        let live = world.guild.role(id(&world, ObjectKind::Role, role.key.as_str())).unwrap();
        assert_eq!(name::visible_text(&live.name), role.name);
    }
    for channel in &template.channels {
        let live = world.guild.channel(id(&world, ObjectKind::Channel, channel.key.as_str())).unwrap();
        assert_eq!(name::visible_text(&live.topic), channel.topic);
        assert!(!live.name.ends_with(&format!("-{}", channel.key.short())), "{}", live.name);
    }
    let plan = world.plan(&template);
    assert!(plan.is_empty(), "{plan}");
    assert!(plan.to_string().contains(NameStyle::Clean.warning()));
}

/// OPS-14: without the journal, markers find everything, also what was renamed by hand; a server
/// that keeps no markers has its objects found by their exact names.
#[test]
fn ops_14_clean_objects_are_found_without_a_journal() {
    let (mut world, template) = deployed();
    world.journal = GuildJournal::default();
    assert!(world.plan(&template).is_empty(), "{}", world.plan(&template));
    let mut stripped = FakeDiscord::new();
    stripped.guild = world.guild.clone();
    strip_markers(&mut stripped);
    let plan = stripped.plan(&template);
    assert!(plan.is_empty(), "a marker that was not kept is no difference: {plan}");
    assert!(plan.steps.iter().filter(|step| step.target.kind().is_some()).all(|step| step.adopted));
    let first = template.roles[0].key.as_str();
    let marker =
        world.guild.roles.iter_mut().find(|role| name::visible_text(&role.name) == template.roles[0].name);
    let role = marker.unwrap();
    role.name = role.name.replace(&template.roles[0].name, "Boss");
    let plan = world.plan(&template);
    assert_eq!(plan.writes().count(), 1, "{plan}");
    assert_eq!(step(&plan, ObjectKind::Role, first).action, Action::Update);
}

/// OPS-14: two objects of one clean name and no journal are a conflict, never a guess; and a name
/// that is taken twice in the template is refused.
#[test]
fn ops_14_clean_twins_are_a_conflict() {
    let (mut world, template) = deployed();
    strip_markers(&mut world);
    world.journal = GuildJournal::default();
    let mut twin = world.guild.roles.iter().find(|role| role.name == template.roles[1].name).unwrap().clone();
    twin.id = world.id();
    world.guild.roles.push(twin);
    let plan = world.plan(&template);
    let [Conflict::DuplicateKey { key, ids, .. }] = &plan.conflicts[..] else { panic!("{plan}") };
    assert_eq!((key, ids.len()), (&template.roles[1].key, 2));
    let mut alike = clean();
    alike.roles[1].name = format!(" {} ", alike.roles[0].name);
    let problems = alike.check();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].1.contains("no two may be called alike"), "{problems:?}");
    assert_eq!(Template { names: NameStyle::Keyed, ..alike }.check(), [], "keys tell them apart");
}

/// OPS-14: with the journal, a template changes between the two styles and back, and every object
/// stays the same one.
#[test]
fn ops_14_a_style_is_changed_with_the_journal() {
    let (mut world, template) = deployed();
    let keyed = small();
    let before = world.guild.roles.len() + world.guild.channels.len();
    for next in [&keyed, &template, &keyed] {
        let plan = world.plan(next);
        assert!(plan.writes().all(|step| step.action == Action::Update), "{plan}");
        world.apply(&plan);
        assert!(world.plan(next).is_empty(), "{}", world.plan(next));
    }
    assert_eq!(world.guild.roles.len() + world.guild.channels.len(), before);
}

/// OPS-19: the style is read from the template, and a wrong word has its place.
#[test]
fn ops_19_the_style_of_names_is_read() {
    assert_eq!(Template::read("t", "names: clean").unwrap().names, NameStyle::Clean);
    assert_eq!(Template::read("t", "names: keyed").unwrap(), Template::read("t", "{}").unwrap());
    let wrong = Template::read("t", "names: tidy").unwrap_err().to_string();
    assert!(wrong.contains("t:1:8") && wrong.contains("keyed, clean"), "{wrong}");
}
