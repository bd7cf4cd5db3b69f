//! Plans as people and scripts see them.

use tidegate_discord::journal::GuildJournal;
use tidegate_discord::plan::{KnownLimits, Options, Plan};
use tidegate_discord::template::Template;

use crate::adoption::{deployed, small};
use crate::fake_discord::FakeDiscord;

/// OPS-19: the plan for an empty guild, as text.
#[test]
fn ops_19_a_plan_as_text() {
    insta::assert_snapshot!(FakeDiscord::new().plan(&small()));
}

/// OPS-19: the same as JSON, with the body of each call.
#[test]
fn ops_19_a_plan_as_json() {
    let plan = FakeDiscord::new().plan(&small()).to_json();
    insta::assert_snapshot!(serde_json::to_string_pretty(&plan).unwrap());
}

/// OPS-14: everything adopted, nothing to do.
#[test]
fn ops_14_an_adopting_plan_as_text() {
    let (world, template) = deployed();
    insta::assert_snapshot!(Plan::make(
        &template,
        &world.guild,
        &GuildJournal::default(),
        Options::default()
    ));
}

/// OPS-26: the large example, counted and timed; once applied, a new plan is empty.
#[test]
fn ops_26_the_large_example_is_counted() {
    let text = include_str!("../../../../examples/guilds/large.yaml");
    let template = Template::read("large.yaml", text).unwrap();
    let mut world = FakeDiscord::new();
    let plan = world.plan(&template);
    let estimate = plan.estimate(&KnownLimits::documented(50));
    assert_eq!(estimate.calls, 463);
    assert_eq!(estimate.time_ms, 463 * 50, "twenty in a second are below the global limit");
    insta::assert_snapshot!(serde_json::to_string_pretty(&estimate.to_json()).unwrap());
    world.apply(&plan);
    assert_eq!(world.calls, 461, "both orders came out right by themselves");
    assert!(world.plan(&template).is_empty());
}
