//! Converts the tree to a template: which fields exist, and what each may hold by itself. `check`
//! looks afterwards at whether they fit together.

use super::node::{Node, Value};
use super::reader::{MappingFields, ProblemCollector};
use super::{
    CategorySpec, ChannelSpec, ChannelType, DEFAULT_PREFIX, MessageSpec, NameStyle, OverwriteSource,
    OverwriteSpec, OverwriteTarget, RoleSpec, Template, TemplatePath, TemplateProblem,
};
use crate::bounds::SLOW_MODE_MAX;

/// The fields of each mapping of a template, by its name in the JSON Schema.
pub const FIELDS: [(&str, &[&str]); 6] = [
    ("template", &["prefix", "names", "roles", "categories", "channels", "messages"]),
    ("role", &["key", "name", "permissions", "color", "hoist", "mentionable"]),
    ("category", &["key", "name", "overwrites"]),
    (
        "channel",
        &[
            "key",
            "name",
            "type",
            "category",
            "topic",
            "nsfw",
            "slow_mode",
            "overwrites",
            "same_overwrites_as",
        ],
    ),
    ("overwrite", &["role", "allow", "deny"]),
    ("message", &["key", "channel", "content"]),
];

fn known_fields(mapping: &str) -> &'static [&'static str] {
    FIELDS.iter().find(|(name, _)| *name == mapping).map_or(&[], |(_, fields)| fields)
}

/// Reads what can be read, and reports what cannot. The template is `None` when its indices do not
/// match those of the file, so that nothing more can be said about it.
pub(super) fn template(root: &Node) -> (Option<Template>, Vec<TemplateProblem>) {
    let mut found = ProblemCollector::default();
    let mut made = Template {
        prefix: DEFAULT_PREFIX.into(),
        names: NameStyle::default(),
        roles: Vec::new(),
        categories: Vec::new(),
        channels: Vec::new(),
        messages: Vec::new(),
    };
    let Some(fields) = MappingFields::of(root, TemplatePath::default(), known_fields("template"), &mut found)
    else {
        return (None, found.0);
    };
    made.prefix = fields.text_or("prefix", DEFAULT_PREFIX, &mut found);
    made.names = name_style(&fields, &mut found);
    made.roles = parse_list(&fields, "roles", "role", &mut found, role);
    made.categories = parse_list(&fields, "categories", "category", &mut found, category);
    made.channels = parse_list(&fields, "channels", "channel", &mut found, channel);
    made.messages = parse_list(&fields, "messages", "message", &mut found, message);
    ((!found.1).then_some(made), found.0)
}

fn name_style(fields: &MappingFields<'_>, found: &mut ProblemCollector) -> NameStyle {
    let Some((node, path)) = fields.get("names") else { return NameStyle::default() };
    let word = found.text(node, &path).unwrap_or_default();
    let known = NameStyle::ALL.iter().find(|(_, known)| *known == word).map(|(style, _)| *style);
    known.unwrap_or_else(|| {
        let words = NameStyle::ALL.map(|(_, word)| word).join(", ");
        found.add(node, &path, format!("{word:?} is not a style of names: {words}."));
        NameStyle::default()
    })
}

/// Reads a list of mappings. Reports and skips an element that is not a mapping: after it, the
/// indices of template and file differ.
fn parse_list<T>(
    fields: &MappingFields<'_>,
    list: &'static str,
    mapping: &str,
    found: &mut ProblemCollector,
    read: fn(&MappingFields<'_>, &mut ProblemCollector) -> T,
) -> Vec<T> {
    let (items, path) = fields.list(list, found);
    let mut all = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match MappingFields::of(item, path.item(index), known_fields(mapping), found) {
            Some(fields) => all.push(read(&fields, found)),
            None => found.1 = true,
        }
    }
    all
}

fn role(fields: &MappingFields<'_>, found: &mut ProblemCollector) -> RoleSpec {
    RoleSpec {
        key: fields.key("key", found),
        name: fields.text("name", found),
        permissions: fields.permissions("permissions", found),
        color: color(fields, found),
        hoist: fields.flag("hoist", found),
        mentionable: fields.flag("mentionable", found),
    }
}

fn color(fields: &MappingFields<'_>, found: &mut ProblemCollector) -> u32 {
    let Some((node, path)) = fields.get("color") else { return 0 };
    if node.is_nothing() {
        found.add(
            node,
            &path,
            "the color is missing; # begins a comment, so write it in quotes: \"#3498db\".",
        );
        return 0;
    }
    let text = found.text(node, &path).unwrap_or_default();
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6 && !digits.starts_with('+'));
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_else(|| {
        found.add(node, &path, format!("{text:?} is not a color: write it as \"#3498db\"."));
        0
    })
}

fn category(fields: &MappingFields<'_>, found: &mut ProblemCollector) -> CategorySpec {
    CategorySpec {
        key: fields.key("key", found),
        name: fields.text("name", found),
        overwrites: parse_list(fields, "overwrites", "overwrite", found, overwrite),
    }
}

fn channel(fields: &MappingFields<'_>, found: &mut ProblemCollector) -> ChannelSpec {
    ChannelSpec {
        key: fields.key("key", found),
        name: fields.text("name", found),
        channel_type: channel_type(fields, found),
        category: fields.get("category").map(|(node, path)| found.key(node, &path)),
        topic: fields.text_or("topic", "", found).trim().to_owned(),
        nsfw: fields.flag("nsfw", found),
        slow_mode: slow_mode(fields, found),
        access: access(fields, found),
    }
}

fn channel_type(fields: &MappingFields<'_>, found: &mut ProblemCollector) -> ChannelType {
    let Some((node, path)) = fields.get("type") else { return ChannelType::Text };
    let word = found.text(node, &path).unwrap_or_default();
    let known = ChannelType::ALL.iter().find(|(_, known, _)| *known == word).map(|(shape, ..)| *shape);
    known.unwrap_or_else(|| {
        let words: Vec<_> = ChannelType::ALL.iter().map(|(_, word, _)| *word).collect();
        found.add(node, &path, format!("{word:?} is not a channel type: {}.", words.join(", ")));
        ChannelType::Text
    })
}

fn slow_mode(fields: &MappingFields<'_>, found: &mut ProblemCollector) -> u32 {
    let Some((node, path)) = fields.get("slow_mode") else { return 0 };
    let seconds = match &node.value {
        Value::Scalar(text, false) => text.parse().ok(),
        _ => None,
    };
    seconds.filter(|seconds| *seconds <= SLOW_MODE_MAX).unwrap_or_else(|| {
        found.add(node, &path, format!("this must be a number of seconds, 0 to {SLOW_MODE_MAX}."));
        0
    })
}

fn access(fields: &MappingFields<'_>, found: &mut ProblemCollector) -> OverwriteSource {
    if let Some((node, path)) = fields.get("same_overwrites_as") {
        if fields.get("overwrites").is_some() {
            found.add(node, &path, "a channel has overwrites of its own or those of another, not both.");
        }
        return OverwriteSource::SameAs(found.key(node, &path));
    }
    if fields.get("overwrites").is_none() {
        return OverwriteSource::Inherited;
    }
    OverwriteSource::Own(parse_list(fields, "overwrites", "overwrite", found, overwrite))
}

fn overwrite(fields: &MappingFields<'_>, found: &mut ProblemCollector) -> OverwriteSpec {
    let everyone = fields
        .get("role")
        .is_some_and(|(node, _)| matches!(&node.value, Value::Scalar(text, _) if text == "@everyone"));
    let whom =
        if everyone { OverwriteTarget::Everyone } else { OverwriteTarget::Role(fields.key("role", found)) };
    let (allow, deny) = (fields.permissions("allow", found), fields.permissions("deny", found));
    OverwriteSpec { target: whom, allow, deny }
}

fn message(fields: &MappingFields<'_>, found: &mut ProblemCollector) -> MessageSpec {
    MessageSpec {
        key: fields.key("key", found),
        channel: fields.key("channel", found),
        content: fields.text("content", found).replace("\r\n", "\n").trim().to_owned(),
    }
}
