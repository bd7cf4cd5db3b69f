//! Checks counts and lengths, including everything that makes a name managed and a message
//! findable.

use super::Findings;
use crate::bounds::{
    CHANNELS_MAX, CHANNELS_PER_CATEGORY_MAX, FORUM_TOPIC_MAX, MESSAGE_MAX, NAME_MAX, PREFIX_MAX, ROLES_MAX,
    TOPIC_MAX, length,
};
use crate::name::{self, BRACKETS};
use crate::template::{ChannelSpec, ChannelType, Template, TemplatePath};

pub(super) fn check(template: &Template, findings: &mut Findings) {
    if !name::is_prefix(&template.prefix) {
        let message =
            format!("{:?} is not a prefix: 1 to {PREFIX_MAX} letters, digits, _ or -.", template.prefix);
        findings.push((TemplatePath::of("prefix"), message));
    }
    counts(template, findings);
    for (index, role) in template.roles.iter().enumerate() {
        let made = template.role_name(role);
        display_name(&role.name, &made, &TemplatePath::of("roles").item(index), findings);
    }
    for (index, category) in template.categories.iter().enumerate() {
        let made = template.category_name(category);
        display_name(&category.name, &made, &TemplatePath::of("categories").item(index), findings);
    }
    for (index, channel) in template.channels.iter().enumerate() {
        let at = TemplatePath::of("channels").item(index);
        display_name(&channel.name, &template.channel_name(channel), &at, findings);
        settings(template, channel, &at, findings);
    }
    messages(template, findings);
}

fn counts(template: &Template, findings: &mut Findings) {
    // @everyone is one of them.
    let roles = template.roles.len() + 1;
    if roles > ROLES_MAX {
        let at = TemplatePath::of("roles").item(ROLES_MAX - 1);
        findings.push((at, format!("{roles} roles with @everyone; a guild has at most {ROLES_MAX}.")));
    }
    let channels = template.channels.len() + template.categories.len();
    if channels > CHANNELS_MAX {
        let message = format!("{channels} channels with the categories; a guild has at most {CHANNELS_MAX}.");
        findings.push((TemplatePath::of("channels"), message));
    }
    for (index, category) in template.categories.iter().enumerate() {
        let inside =
            template.channels.iter().filter(|channel| channel.category.as_ref() == Some(&category.key));
        let inside = inside.count();
        if inside > CHANNELS_PER_CATEGORY_MAX {
            let at = TemplatePath::of("categories").item(index);
            let key = &category.key;
            let message =
                format!("{inside} channels in {key}; a category has at most {CHANNELS_PER_CATEGORY_MAX}.");
            findings.push((at, message));
        }
    }
}

fn display_name(display: &str, made: &str, at: &TemplatePath, findings: &mut Findings) {
    let at = at.field("name");
    if name::normalize_display_name(display).is_empty() {
        // A missing one was reported already, at the same path.
        findings.push((at, "the name is empty.".into()));
        return;
    }
    let is_bad = |c: &char| c.is_control() || BRACKETS.contains(c);
    let bad = display.chars().find(is_bad);
    if let Some(bad) = bad.or_else(|| name::has_invisible_marker(display).then_some('\u{2060}')) {
        findings.push((at.clone(), format!("{bad:?} is not allowed in a name.")));
    }
    let length = length(made);
    if length > NAME_MAX {
        findings
            .push((at, format!("{made:?} is {length} characters long; Discord accepts at most {NAME_MAX}.")));
    }
}

fn settings(template: &Template, channel: &ChannelSpec, at: &TemplatePath, findings: &mut Findings) {
    let word = channel.channel_type.as_str();
    if !channel.topic.is_empty() && !channel.channel_type.has_topic() {
        findings.push((at.field("topic"), format!("a {word} channel has no topic.")));
    }
    let most = if channel.channel_type == ChannelType::Forum { FORUM_TOPIC_MAX } else { TOPIC_MAX };
    let length = length(&template.channel_topic(channel));
    if length > most {
        let message = format!("the topic is {length} characters; a {word} channel's has at most {most}.");
        findings.push((at.field("topic"), message));
    }
    if channel.slow_mode > 0 && !channel.channel_type.has_slow_mode() {
        findings.push((at.field("slow_mode"), format!("a {word} channel has no slow mode.")));
    }
}

fn messages(template: &Template, findings: &mut Findings) {
    for (index, message) in template.messages.iter().enumerate() {
        let at = TemplatePath::of("messages").item(index);
        let most = MESSAGE_MAX - length(&name::message_marker(&template.prefix, &message.key)) - 1;
        let length = length(&message.content);
        if length > most {
            let text = format!("{length} characters; with the line that marks it there is room for {most}.");
            findings.push((at.field("content"), text));
        }
        if message.content.is_empty() {
            findings.push((at.field("content"), "the message is empty.".into()));
        }
        let channel = template.channels.iter().find(|channel| channel.key == message.channel);
        if channel.is_some_and(|channel| channel.channel_type == ChannelType::Forum) {
            let text = format!("{} is a forum: it holds posts, and no messages of its own.", message.channel);
            findings.push((at.field("channel"), text));
        }
    }
}
