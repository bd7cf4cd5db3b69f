//! Which function a route is, once a call got in. It decides nothing else.

use serde_json::json;

use super::guild::{Actor, Guild, Turn, user};
use super::refusal::{Done, Outcome};
use super::route::Call;

/// What is told of the API and of the caller.
pub(super) fn about(call: Call, actor: Actor) -> Done {
    let url = "wss://gateway.invalid";
    Done::read(match (call, actor) {
        (Call::Me, Actor::Bot(bot)) => user(bot),
        (Call::GatewayBot, _) => {
            let limit = json!({ "total": 1_000, "remaining": 1_000, "reset_after": 0, "max_concurrency": 1 });
            json!({ "url": url, "shards": 1, "session_start_limit": limit })
        }
        _ => json!({ "url": url }),
    })
}

/// Does what a call asks of a guild.
pub(super) fn call(guild: &mut Guild, turn: &mut Turn<'_>) -> Outcome {
    match turn.target.route.call {
        Call::Guild | Call::Gateway | Call::GatewayBot | Call::Me => Ok(Done::read(guild.json())),
        Call::Member => guild.member(turn.target.inner),
        Call::Roles => Ok(Done::read(guild.roles_json())),
        Call::Role => Ok(Done::read(guild.role(turn.target.inner)?.json())),
        Call::RoleCreate => guild.create_role(turn),
        Call::RolePositions => guild.order_roles(turn),
        Call::RoleEdit => guild.edit_role(turn),
        Call::RoleDelete => guild.delete_role(turn),
        Call::Channels => Ok(Done::read(guild.channels_json())),
        Call::ChannelCreate => guild.create_channel(turn),
        Call::ChannelPositions => guild.order_channels(turn),
        Call::Channel => {
            let channel = guild.channel(turn.target.channel)?;
            guild.within(turn.actor, channel, 0)?;
            Ok(Done::read(channel.json()))
        }
        Call::ChannelEdit => guild.edit_channel(turn),
        Call::ChannelDelete => guild.delete_channel(turn),
        Call::OverwritePut => guild.put_overwrite(turn),
        Call::OverwriteDelete => guild.delete_overwrite(turn),
        Call::Messages => guild.list_messages(turn),
        Call::MessageCreate => guild.create_message(turn),
        Call::Message => guild.show_message(turn),
        Call::MessageEdit => guild.edit_message(turn),
        Call::MessageDelete => guild.delete_message(turn),
    }
}
