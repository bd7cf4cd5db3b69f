//! Invariants for any template, guild, manual changes and moment of a crash.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidegate_discord::ObjectKind;
use tidegate_discord::guild::{CATEGORY, Role};
use tidegate_discord::name;
use tidegate_discord::plan::Action;
use tidegate_discord::template::Template;

use crate::fake_discord::FakeDiscord;
use crate::generator::{TemplateGenerator, add_unmanaged_objects, edit_by_hand, unmanaged_objects};

/// Creates a guild with unmanaged objects, a deployed template, manual changes, and the next
/// template.
fn history(seed: u64) -> (FakeDiscord, Template, TemplateGenerator) {
    let mut chance = TemplateGenerator::new(seed);
    let mut world = FakeDiscord::new();
    add_unmanaged_objects(&mut world, &mut chance);
    if chance.below(3) > 0 {
        let first = chance.template();
        world.deploy(&first);
        edit_by_hand(&mut world, &mut chance);
    }
    let next = chance.template();
    (world, next, chance)
}

/// Checks that there is exactly one object for each key, with the right name.
fn is_as_wanted(world: &FakeDiscord, template: &Template) -> Result<(), TestCaseError> {
    let mut names = BTreeMap::new();
    for role in &world.guild.roles {
        *names.entry((ObjectKind::Role, role.name.clone())).or_insert(0) += 1;
    }
    for channel in &world.guild.channels {
        let ours = channel.parent.is_none_or(|id| world.journal.key_of(ObjectKind::Category, id).is_some());
        let kind = if channel.kind == CATEGORY { ObjectKind::Category } else { ObjectKind::Channel };
        *names.entry((kind, channel.name.clone())).or_insert(0) += usize::from(ours);
    }
    let roles = template
        .roles
        .iter()
        .map(|role| (ObjectKind::Role, name::managed_name("SSO", &role.name, &role.key)));
    let categories = template
        .categories
        .iter()
        .map(|own| (ObjectKind::Category, name::managed_name("SSO", &own.name, &own.key)));
    let channels = template
        .channels
        .iter()
        .map(|own| (ObjectKind::Channel, name::managed_channel_name(&own.name, &own.key)));
    for wanted in roles.chain(categories).chain(channels) {
        prop_assert_eq!(names.get(&wanted), Some(&1), "{:?}", wanted);
    }
    let place = |role: &Role| {
        template.roles.iter().position(|own| name::managed_name("SSO", &own.name, &own.key) == role.name)
    };
    let order: Vec<_> = world.guild.roles_in_order().into_iter().filter_map(place).collect();
    prop_assert!(order.is_sorted(), "{:?}", order);
    for message in &template.messages {
        let marker = name::message_marker("SSO", &message.key);
        let place = world.journal.get(ObjectKind::Channel, &message.channel).unwrap().id;
        let posted = world.guild.messages[&place].iter().filter(|own| own.content.ends_with(&marker));
        prop_assert_eq!(posted.count(), 1, "{}", message.key);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// OPS-18, OPS-19: an applied plan needs nothing more: 0 writes, and no duplicates.
    #[test]
    fn ops_18_a_second_plan_is_empty(seed in any::<u64>()) {
        let (mut world, template, _) = history(seed);
        world.deploy(&template);
        is_as_wanted(&world, &template)?;
        let again = world.plan(&template);
        prop_assert!(again.is_empty(), "{again}");
        let before = world.calls;
        world.apply(&again);
        prop_assert_eq!(world.calls, before);
    }

    /// OPS-14, OPS-15: after any number of steps, with or without the last entry of the journal, a
    /// new plan finishes the work and creates no duplicates.
    #[test]
    fn ops_15_a_plan_that_broke_off_is_finished(seed in any::<u64>()) {
        let (mut world, template, mut chance) = history(seed);
        let plan = world.plan(&template);
        let stop = chance.below(plan.steps.len() + 1);
        let recorded = chance.below(2) == 0;
        for (place, step) in plan.steps[..stop].iter().enumerate() {
            world.step(step, recorded || place + 1 < stop);
        }
        world.deploy(&template);
        is_as_wanted(&world, &template)?;
        prop_assert!(world.plan(&template).is_empty());
    }

    /// OPS-14: without any journal everything is found by its name, and nothing is created or
    /// changed.
    #[test]
    fn ops_14_a_lost_journal_is_found_again(seed in any::<u64>()) {
        let (mut world, template, _) = history(seed);
        world.deploy(&template);
        let known = std::mem::take(&mut world.journal);
        let plan = world.plan(&template);
        prop_assert!(plan.is_empty(), "{plan}");
        prop_assert!(plan.steps.iter().all(|step| step.adopted && step.action == Action::Skip));
        world.apply(&plan);
        for step in &plan.steps {
            let tidegate_discord::plan::StepTarget::Object(kind, key) = &step.target else { continue };
            prop_assert_eq!(world.journal.get(*kind, key), known.get(*kind, key));
        }
    }

    /// OPS-14, OPS-19: unmanaged objects are never touched, whatever they are called.
    #[test]
    fn ops_14_strangers_are_left_alone(seed in any::<u64>()) {
        let mut chance = TemplateGenerator::new(seed);
        let mut world = FakeDiscord::new();
        add_unmanaged_objects(&mut world, &mut chance);
        let (first_own, kept) = (world.id(), world.guild.clone());
        for _ in 0..2 {
            world.deploy(&chance.template());
            edit_by_hand(&mut world, &mut chance);
            prop_assert_eq!(unmanaged_objects(&world.guild, first_own), unmanaged_objects(&kept, first_own));
        }
    }
}
