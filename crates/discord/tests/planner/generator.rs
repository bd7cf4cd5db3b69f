//! Random templates, unmanaged objects and manual changes, all from one seed.

use tidegate_core::rng::SeededRng;
use tidegate_discord::guild::{CATEGORY, Channel, Guild, Role};
use tidegate_discord::permission::Permissions;
use tidegate_discord::template::{
    self, CategorySpec, ChannelType, MessageSpec, NameStyle, OverwriteSource, OverwriteSpec, OverwriteTarget,
    Template,
};
use tidegate_discord::{Id, ObjectKey, ObjectKind};

use crate::fake_discord::FakeDiscord;

/// Random numbers from a seed.
pub(crate) struct TemplateGenerator(SeededRng);

impl TemplateGenerator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SeededRng::new(seed))
    }

    /// Returns a number below `most`.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.0.next() % most.max(1) as u64).unwrap()
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn name(&mut self) -> String {
        (*self.pick(&["Staff", "Приёмная", "Old  hall", "雑談", "a-b-c", "Щит & Меч", "🎉", "ROOM 7", "x"]))
            .to_owned()
    }

    fn permissions(&mut self) -> Permissions {
        Permissions((self.below(1 << 30) as u64) & 0x3fff_ffff)
    }

    /// Returns some of the keys, in some order.
    fn keys(&mut self, all: &[&str]) -> Vec<ObjectKey> {
        let mut keys: Vec<_> = all.iter().map(|key| ObjectKey::new(key).unwrap()).collect();
        for at in (1..keys.len()).rev() {
            keys.swap(at, self.below(at + 1));
        }
        keys.truncate(self.below(all.len() + 1));
        keys
    }

    fn overwrites(&mut self, roles: &[ObjectKey]) -> Vec<OverwriteSpec> {
        let whom =
            [OverwriteTarget::Everyone].into_iter().chain(roles.iter().cloned().map(OverwriteTarget::Role));
        let mut made = Vec::new();
        for whom in whom {
            let (allow, deny) = (self.permissions(), self.permissions());
            let deny = deny.difference(allow);
            if self.coin() && !allow.union(deny).is_empty() {
                made.push(OverwriteSpec { target: whom, allow, deny });
            }
        }
        made
    }

    /// Returns a valid template.
    pub(crate) fn template(&mut self) -> Template {
        let roles = self.keys(&["lead", "Agent", "member", "guest-1", "bot_x"]);
        let categories = self.keys(&["front", "office", "Yard"]);
        let channels = self.keys(&["intake", "News-1", "ideas", "lobby", "desk", "stage", "old-intake"]);
        let made = Template {
            prefix: "SSO".into(),
            names: NameStyle::Keyed,
            roles: roles.iter().map(|key| self.role(key)).collect(),
            categories: categories
                .iter()
                .map(|key| CategorySpec {
                    key: key.clone(),
                    name: self.name(),
                    overwrites: self.overwrites(&roles),
                })
                .collect(),
            channels: channels.iter().map(|key| self.channel(key, &roles, &categories)).collect(),
            messages: Vec::new(),
        };
        let messages = self.keys(&["welcome", "hours", "rules"]);
        let places: Vec<_> =
            made.channels.iter().filter(|channel| channel.channel_type != ChannelType::Forum).collect();
        let message = |key: ObjectKey, chance: &mut Self| MessageSpec {
            key,
            channel: chance.pick(&places).key.clone(),
            content: format!("Text {}", chance.below(3)),
        };
        let messages =
            messages.into_iter().filter(|_| !places.is_empty()).map(|key| message(key, self)).collect();
        let made = Template { messages, ..made.clone() };
        assert_eq!(made.check(), []);
        made
    }

    fn role(&mut self, key: &ObjectKey) -> template::RoleSpec {
        template::RoleSpec {
            key: key.clone(),
            name: self.name(),
            permissions: self.permissions(),
            color: u32::try_from(self.below(1 << 24)).unwrap(),
            hoist: self.coin(),
            mentionable: self.coin(),
        }
    }

    /// Returns a channel. A key always has the same type, except that text and announcement may be
    /// swapped.
    fn channel(
        &mut self,
        key: &ObjectKey,
        roles: &[ObjectKey],
        categories: &[ObjectKey],
    ) -> template::ChannelSpec {
        let shape = match key.as_str() {
            "ideas" => ChannelType::Forum,
            "lobby" => ChannelType::Voice,
            "stage" => ChannelType::Stage,
            _ => *self.pick(&[ChannelType::Text, ChannelType::Announcement]),
        };
        let access = if self.coin() {
            OverwriteSource::Inherited
        } else {
            OverwriteSource::Own(self.overwrites(roles))
        };
        let category = (!categories.is_empty() && self.below(4) > 0).then(|| self.pick(categories).clone());
        template::ChannelSpec {
            key: key.clone(),
            name: self.name(),
            channel_type: shape,
            category,
            topic: if shape.has_topic() { (*self.pick(&["", "A topic"])).to_owned() } else { String::new() },
            nsfw: self.coin(),
            slow_mode: if shape.has_slow_mode() { u32::try_from(self.below(3)).unwrap() } else { 0 },
            access,
        }
    }
}

/// Adds roles, categories and channels of other people, some with names that look like ours.
pub(crate) fn add_unmanaged_objects(world: &mut FakeDiscord, chance: &mut TemplateGenerator) {
    let role_names = ["Admin", "〚OLD〛 Lead 〔lead〕", "〚SSO〛 no key", "Agent 〔Agent〕"];
    for (place, name) in role_names.iter().enumerate() {
        let id = world.id();
        world.guild.roles.push(Role {
            id,
            name: (*name).to_owned(),
            permissions: chance.permissions(),
            color: 7,
            hoist: true,
            mentionable: true,
            position: place as i64 + 1,
            managed: chance.coin(),
        });
    }
    let mut channel = |kind: u8, name: &str, parent: Option<Id>, position: i64| {
        let id = world.id();
        let channel = Channel {
            id,
            kind,
            name: name.to_owned(),
            position,
            parent,
            topic: "theirs".into(),
            nsfw: false,
            slow_mode: 9,
            overwrites: Vec::new(),
        };
        world.guild.channels.push(channel);
        id
    };
    let theirs = channel(CATEGORY, "Their rooms", None, 0);
    channel(CATEGORY, "〚OLD〛 Front 〔front〕", None, 1);
    channel(0, "priemnaya-intake", Some(theirs), 0);
    channel(2, "x-lobby", Some(theirs), 1);
    channel(0, "general", None, 2);
}

/// Makes manual changes to managed objects: rename, edit, delete, move.
pub(crate) fn edit_by_hand(world: &mut FakeDiscord, chance: &mut TemplateGenerator) {
    let of = |world: &FakeDiscord, kind| {
        world.journal.entries_of(kind).map(|(_, entry)| entry.id).collect::<Vec<_>>()
    };
    for id in of(world, ObjectKind::Role) {
        match chance.below(6) {
            0 => world.remove(id),
            1 => change(
                &mut world.guild.roles,
                |role| role.id == id,
                |role| role.name = format!("by hand {id}"),
            ),
            2 => change(&mut world.guild.roles, |role| role.id == id, |role| role.permissions.0 ^= 8),
            3 => change(&mut world.guild.roles, |role| role.id == id, |role| role.position += 3),
            _ => {}
        }
    }
    let channels = of(world, ObjectKind::Channel).into_iter().chain(of(world, ObjectKind::Category));
    for id in channels.collect::<Vec<_>>() {
        let own = |channel: &Channel| channel.id == id;
        match chance.below(7) {
            0 => world.remove(id),
            1 => change(&mut world.guild.channels, own, |channel| channel.name = format!("by-hand{id}")),
            2 => change(&mut world.guild.channels, own, |channel| channel.overwrites.clear()),
            3 => change(&mut world.guild.channels, own, |channel| channel.parent = None),
            4 => change(&mut world.guild.channels, own, |channel| channel.position += 2),
            _ => {}
        }
    }
    for id in of(world, ObjectKind::Message) {
        if chance.below(3) == 0 {
            world.remove(id);
        }
    }
}

fn change<T>(all: &mut [T], own: impl Fn(&T) -> bool, with: impl Fn(&mut T)) {
    all.iter_mut().filter(|one| own(one)).for_each(with);
}

/// Returns everything unmanaged, as it must stay. Positions are left out: others may be shifted.
pub(crate) fn unmanaged_objects(guild: &Guild, made_before: Id) -> (Vec<Role>, Vec<Channel>) {
    let roles = guild.roles.iter().filter(|role| role.id < made_before);
    let channels = guild.channels.iter().filter(|channel| channel.id < made_before);
    let roles = roles.map(|role| Role { position: 0, ..role.clone() });
    (roles.collect(), channels.map(|channel| Channel { position: 0, ..channel.clone() }).collect())
}
