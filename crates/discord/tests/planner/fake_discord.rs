//! A guild in memory that handles the planner's requests as Discord would, and its journal. It
//! knows no template: it only does what it is asked.

use serde_json::Value;
use tidegate_discord::guild::{Channel, Guild, Message, Overwrite, Role};
use tidegate_discord::journal::{GuildJournal, GuildJournalEntry};
use tidegate_discord::name::slug;
use tidegate_discord::permission::Permissions;
use tidegate_discord::plan::{
    Action, CallRequest, GuildRoute, Options, Plan, PlanStep, StepTarget, WriteMethod,
};
use tidegate_discord::template::Template;
use tidegate_discord::{Id, ObjectKind};

/// A guild and its journal.
#[derive(Clone, Debug)]
pub(crate) struct FakeDiscord {
    pub guild: Guild,
    pub journal: GuildJournal,
    pub calls: usize,
    next: u64,
}

impl FakeDiscord {
    /// Creates a guild with nothing but @everyone.
    pub(crate) fn new() -> Self {
        let everyone = br#"[{"id":"1","name":"@everyone","permissions":"1024","position":0}]"#;
        let guild = Guild::decode(Id(1), everyone, b"[]").unwrap();
        Self { guild, journal: GuildJournal::default(), calls: 0, next: 100 }
    }

    pub(crate) fn plan(&self, template: &Template) -> Plan {
        Plan::make(template, &self.guild, &self.journal, Options::default())
    }

    /// Applies a whole plan.
    pub(crate) fn apply(&mut self, plan: &Plan) {
        assert_eq!(plan.conflicts, []);
        for step in &plan.steps {
            self.step(step, true);
        }
    }

    /// Brings the guild to the state a template describes.
    pub(crate) fn deploy(&mut self, template: &Template) {
        let plan = self.plan(template);
        self.apply(&plan);
    }

    /// Applies one step; `recorded` is whether its entry reached the journal.
    pub(crate) fn step(&mut self, step: &PlanStep, recorded: bool) {
        let mut made = step.id;
        let mut place = None;
        if let Some(call) = &step.call {
            let request = call.request(&self.guild, &self.journal).unwrap();
            if let Some(request) = request {
                made = self.call(&request).or(made);
                self.calls += 1;
            }
            place = call.route.channel().map(|handle| handle.id(&self.journal).unwrap());
        }
        let StepTarget::Object(kind, key) = &step.target else { return };
        if !recorded {
            return;
        }
        if step.action == Action::Remove {
            self.journal.forget(*kind, key);
        } else if let Some(id) = made {
            let before = self.journal.get(*kind, key).and_then(|entry| entry.channel);
            let channel = (*kind == ObjectKind::Message)
                .then(|| place.or(before).or(self.guild.channel_of_message(id)))
                .flatten();
            let entry = GuildJournalEntry { id, channel, fingerprint: step.fingerprint.clone() };
            self.journal.record(*kind, key.clone(), entry);
        }
    }

    pub(crate) fn id(&mut self) -> Id {
        self.next += 1;
        Id(self.next)
    }

    fn call(&mut self, request: &CallRequest) -> Option<Id> {
        let parts: Vec<_> = request.path.trim_start_matches('/').split('/').collect();
        let id = |at: usize| parts[at].parse::<Id>().unwrap();
        let body = request.body.clone().unwrap_or(Value::Null);
        match (request.method, parts.as_slice()) {
            (WriteMethod::Post, ["guilds", "1", "roles"]) => Some(self.make_role(&body)),
            (WriteMethod::Post, ["guilds", "1", "channels"]) => Some(self.make_channel(&body)),
            (WriteMethod::Post, ["channels", _, "messages"]) => Some(self.post(id(1), &body)),
            (WriteMethod::Patch, ["guilds", "1", "roles"]) => self.move_roles(&body),
            (WriteMethod::Patch, ["guilds", "1", "channels"]) => self.move_channels(&body),
            (WriteMethod::Patch, ["guilds", "1", "roles", _]) => {
                let role = self.guild.roles.iter_mut().find(|role| role.id == id(3)).unwrap();
                change_role(role, &body);
                None
            }
            (WriteMethod::Patch, ["channels", _]) => {
                let channel = self.guild.channels.iter_mut().find(|channel| channel.id == id(1)).unwrap();
                change_channel(channel, &body);
                None
            }
            (WriteMethod::Patch, ["channels", _, "messages", _]) => {
                let own = self.guild.messages.get_mut(&id(1)).unwrap();
                let message = own.iter_mut().find(|message| message.id == id(3)).unwrap();
                message.content = body["content"].as_str().unwrap().trim().to_owned();
                None
            }
            (WriteMethod::Delete, _) => {
                self.remove(id(parts.len() - 1));
                None
            }
            other => panic!("there is no such route: {other:?}"),
        }
    }

    /// Removes an object, as people do.
    pub(crate) fn remove(&mut self, id: Id) {
        self.guild.roles.retain(|role| role.id != id);
        self.guild.channels.retain(|channel| channel.id != id);
        self.guild.messages.remove(&id);
        for channel in &mut self.guild.channels {
            channel.parent = channel.parent.filter(|parent| *parent != id);
            channel.overwrites.retain(|overwrite| overwrite.id != id);
        }
        for own in self.guild.messages.values_mut() {
            own.retain(|message| message.id != id);
        }
    }

    fn make_role(&mut self, body: &Value) -> Id {
        let id = self.id();
        // A new role enters right above @everyone.
        for role in self.guild.roles.iter_mut().filter(|role| role.position > 0) {
            role.position += 1;
        }
        let mut role = Role {
            id,
            name: "new role".into(),
            permissions: Permissions(1024),
            color: 0,
            hoist: false,
            mentionable: false,
            position: 1,
            managed: false,
        };
        change_role(&mut role, body);
        self.guild.roles.push(role);
        id
    }

    fn make_channel(&mut self, body: &Value) -> Id {
        let id = self.id();
        let mut channel = Channel {
            id,
            kind: 0,
            name: String::new(),
            // What Discord does here is not documented. The same position for all is the hardest
            // case for sorting.
            position: 0,
            parent: None,
            topic: String::new(),
            nsfw: false,
            slow_mode: 0,
            overwrites: Vec::new(),
        };
        change_channel(&mut channel, body);
        self.guild.channels.push(channel);
        self.guild.messages.insert(id, Vec::new());
        id
    }

    fn post(&mut self, channel: Id, body: &Value) -> Id {
        let id = self.id();
        let content = body["content"].as_str().unwrap().trim().to_owned();
        self.guild.messages.entry(channel).or_default().push(Message { id, content });
        id
    }

    fn move_roles(&mut self, body: &Value) -> Option<Id> {
        for (id, position) in moves(body) {
            self.guild.roles.iter_mut().find(|role| role.id == id).unwrap().position = position;
        }
        None
    }

    fn move_channels(&mut self, body: &Value) -> Option<Id> {
        for (id, position) in moves(body) {
            self.guild.channels.iter_mut().find(|channel| channel.id == id).unwrap().position = position;
        }
        None
    }
}

fn moves(body: &Value) -> Vec<(Id, i64)> {
    let one = |entry: &Value| (text(&entry["id"]).parse().unwrap(), entry["position"].as_i64().unwrap());
    body.as_array().unwrap().iter().map(one).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn change_role(role: &mut Role, body: &Value) {
    for (field, value) in body.as_object().unwrap() {
        match field.as_str() {
            "name" => role.name = text(value).trim().to_owned(),
            "permissions" => role.permissions = Permissions(text(value).parse().unwrap()),
            "color" => role.color = u32::try_from(value.as_u64().unwrap()).unwrap(),
            "hoist" => role.hoist = value.as_bool().unwrap(),
            "mentionable" => role.mentionable = value.as_bool().unwrap(),
            other => panic!("a role has no {other}"),
        }
    }
}

fn change_channel(channel: &mut Channel, body: &Value) {
    let number = |value: &Value| value.as_u64().unwrap();
    for (field, value) in body.as_object().unwrap() {
        match field.as_str() {
            "name" => channel.name = text(value).trim().to_owned(),
            "type" => channel.kind = u8::try_from(number(value)).unwrap(),
            "topic" => channel.topic = text(value).to_owned(),
            "nsfw" => channel.nsfw = value.as_bool().unwrap(),
            "rate_limit_per_user" => channel.slow_mode = u32::try_from(number(value)).unwrap(),
            "parent_id" => channel.parent = value.as_str().map(|id| id.parse().unwrap()),
            "permission_overwrites" => {
                channel.overwrites = value.as_array().unwrap().iter().map(overwrite).collect();
            }
            other => panic!("a channel has no {other}"),
        }
    }
    if matches!(channel.kind, 0 | 5) {
        channel.name = slug::normalize(&channel.name);
    }
}

fn overwrite(value: &Value) -> Overwrite {
    let set = |name: &str| Permissions(text(&value[name]).parse().unwrap());
    let id = text(&value["id"]).parse().unwrap();
    Overwrite { id, of_member: value["type"] == 1, allow: set("allow"), deny: set("deny") }
}

/// Counts the steps that edit a channel's name or topic again, which the single create is there to
/// avoid.
pub(crate) fn renames(plan: &Plan) -> usize {
    plan.writes()
        .filter(|step| matches!(&step.call.as_ref().unwrap().route, GuildRoute::ChannelEdit(_)))
        .count()
}
