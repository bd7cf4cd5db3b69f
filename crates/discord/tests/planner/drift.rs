//! Manual changes to managed objects show up in the plan and are repaired.

use tidegate_discord::ObjectKind;
use tidegate_discord::guild::Overwrite;
use tidegate_discord::permission::Permissions;
use tidegate_discord::plan::{Action, Drift, StepTarget};
use tidegate_discord::template::NameStyle;

use crate::adoption::{deployed, id, step};

/// OPS-16, OPS-19: renamed, deleted and edited objects are reported as such, and are right again
/// afterwards.
#[test]
fn ops_19_drift_is_shown_and_put_right() {
    let (mut world, template) = deployed();
    let (lead, agent) = (id(&world, ObjectKind::Role, "lead"), id(&world, ObjectKind::Role, "agent"));
    let (desk, news, intake) = (
        id(&world, ObjectKind::Channel, "desk"),
        id(&world, ObjectKind::Channel, "news"),
        id(&world, ObjectKind::Channel, "intake"),
    );
    for role in &mut world.guild.roles {
        match role.id {
            id if id == lead => role.name = "Boss".into(),
            id if id == agent => role.permissions = Permissions(8),
            _ => {}
        }
    }
    world.remove(desk);
    let member =
        Overwrite { id: world.id(), of_member: true, allow: Permissions(1024), deny: Permissions(0) };
    let channel = world.guild.channels.iter_mut().find(|channel| channel.id == news).unwrap();
    channel.overwrites.push(member);
    let message = world.guild.messages[&intake][0].id;
    world.remove(message);
    let plan = world.plan(&template);
    let drift = |kind, key| {
        let step = step(&plan, kind, key);
        (step.action, step.drift)
    };
    assert_eq!(drift(ObjectKind::Role, "lead"), (Action::Update, Some(Drift::Renamed)));
    assert_eq!(drift(ObjectKind::Role, "agent"), (Action::Update, Some(Drift::Edited)));
    assert_eq!(drift(ObjectKind::Channel, "desk"), (Action::Create, Some(Drift::Deleted)));
    assert_eq!(drift(ObjectKind::Channel, "news"), (Action::Update, Some(Drift::Edited)));
    assert_eq!(drift(ObjectKind::Message, "welcome"), (Action::Create, Some(Drift::Deleted)));
    assert_eq!(drift(ObjectKind::Role, "guest"), (Action::Skip, None));
    assert_eq!(step(&plan, ObjectKind::Channel, "news").operation(), "OverwritesReplace");
    insta::assert_snapshot!(plan);
    world.apply(&plan);
    assert!(world.plan(&template).is_empty());
}

/// OPS-19: a changed template is no drift.
#[test]
fn ops_19_a_new_template_is_no_drift() {
    let (world, mut template) = deployed();
    template.roles[0].name = "Boss".into();
    let plan = world.plan(&template);
    assert_eq!(step(&plan, ObjectKind::Role, "lead").drift, None);
}

/// OPS-16: every plan has the warning, also one with nothing to do.
#[test]
fn ops_16_every_plan_warns_of_renaming() {
    let (world, template) = deployed();
    for plan in [world.plan(&template), crate::fake_discord::FakeDiscord::new().plan(&template)] {
        assert!(plan.to_string().contains(NameStyle::Keyed.warning()));
        assert_eq!(plan.to_json()["warning"], NameStyle::Keyed.warning());
    }
}

/// OPS-19: objects moved by hand are moved back in one call each, without touching unmanaged ones.
#[test]
fn ops_19_positions_are_put_right_in_one_call() {
    let (mut world, template) = deployed();
    let guest = id(&world, ObjectKind::Role, "guest");
    let office = id(&world, ObjectKind::Category, "office");
    world.guild.roles.iter_mut().filter(|role| role.id == guest).for_each(|role| role.position = 90);
    world.guild.channels.iter_mut().filter(|channel| channel.id == office).for_each(|one| one.position = -1);
    let plan = world.plan(&template);
    let targets: Vec<_> = plan.writes().map(|step| step.target.clone()).collect();
    assert_eq!(targets, [StepTarget::RoleOrder, StepTarget::ChannelOrder]);
    let before = world.calls;
    world.apply(&plan);
    assert_eq!(world.calls - before, 2);
    assert!(world.plan(&template).is_empty());
}
