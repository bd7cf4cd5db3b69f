//! The kinds of the operations that execute a plan.

use tidegate_discord::ObjectKind::{Category, Channel, Message, Role};
use tidegate_discord::deploy::executor::{KINDS, READ};

use crate::adoption::{deployed, id, small, step};
use crate::fake_discord::FakeDiscord;

/// OPS-2: each step is an operation of its own kind, and the deployer executes all of them.
#[test]
fn ops_2_each_step_has_its_kind() {
    let plan = FakeDiscord::new().plan(&small());
    for (object, key, kind) in [
        (Role, "lead", "RoleEnsure"),
        (Category, "front", "ChannelEnsure"),
        (Channel, "news", "ChannelEnsure"),
        (Message, "welcome", "MessageEnsure"),
    ] {
        assert_eq!(step(&plan, object, key).operation(), kind, "{key}");
    }
    let (mut world, template) = deployed();
    let news = id(&world, Channel, "news");
    let channel = world.guild.channels.iter_mut().find(|channel| channel.id == news).unwrap();
    channel.overwrites.clear();
    let repair = world.plan(&template);
    assert_eq!(step(&repair, Channel, "news").operation(), "OverwritesReplace");
    assert!(plan.steps.iter().chain(&repair.steps).all(|step| KINDS.contains(&step.operation())));
    assert!(KINDS.contains(&READ) && READ == "Read");
}
