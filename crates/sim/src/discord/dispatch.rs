//! Maps a route to its function, once a call was admitted. It decides nothing else.

use serde_json::{Value, json};

use super::guild::{Actor, Guild, GuildCall, user};
use super::refusal::{CallResult, CompletedCall};
use super::route::DiscordEndpoint;

/// Returns information about the API and the caller.
pub(super) fn api_info(call: DiscordEndpoint, actor: Actor) -> CompletedCall {
    let url = "wss://gateway.invalid";
    CompletedCall::read(match (call, actor) {
        (DiscordEndpoint::Me, Actor::Bot(bot)) => user(bot),
        (DiscordEndpoint::Application, Actor::Bot(bot)) => application(bot),
        (DiscordEndpoint::GatewayBot, _) => {
            let limit = json!({ "total": 1_000, "remaining": 1_000, "reset_after": 0, "max_concurrency": 1 });
            json!({ "url": url, "shards": 1, "session_start_limit": limit })
        }
        _ => json!({ "url": url }),
    })
}

/// The application of a bot, as libraries ask for it when they log in.
fn application(bot: u64) -> Value {
    let owner = user(bot);
    json!({
        "id": bot.to_string(), "name": owner["username"], "description": "", "icon": null, "cover_image": null,
        "bot_public": false, "bot_require_code_grant": false, "verify_key": "00".repeat(32), "flags": 0,
        "rpc_origins": [], "tags": [], "team": null, "summary": "", "hook": true, "redirect_uris": [],
        "interactions_endpoint_url": null, "role_connections_verification_url": null,
        "approximate_guild_count": 1, "approximate_user_install_count": 0,
        "integration_types_config": {}, "owner": owner,
    })
}

/// Executes a call on a guild.
pub(super) fn dispatch(guild: &mut Guild, turn: &mut GuildCall<'_>) -> CallResult {
    match turn.target.route.call {
        DiscordEndpoint::Guild
        | DiscordEndpoint::Gateway
        | DiscordEndpoint::GatewayBot
        | DiscordEndpoint::Me
        | DiscordEndpoint::Application => Ok(CompletedCall::read(guild.json())),
        DiscordEndpoint::Member => guild.member(turn.target.inner),
        DiscordEndpoint::Roles => Ok(CompletedCall::read(guild.roles_json())),
        DiscordEndpoint::Role => Ok(CompletedCall::read(guild.role(turn.target.inner)?.json())),
        DiscordEndpoint::RoleCreate => guild.create_role(turn),
        DiscordEndpoint::RolePositions => guild.order_roles(turn),
        DiscordEndpoint::RoleEdit => guild.edit_role(turn),
        DiscordEndpoint::RoleDelete => guild.delete_role(turn),
        DiscordEndpoint::Channels => Ok(CompletedCall::read(guild.channels_json())),
        DiscordEndpoint::ChannelCreate => guild.create_channel(turn),
        DiscordEndpoint::ChannelPositions => guild.order_channels(turn),
        DiscordEndpoint::Channel => {
            let channel = guild.channel(turn.target.channel)?;
            guild.require_in_channel(turn.actor, channel, 0)?;
            Ok(CompletedCall::read(channel.json()))
        }
        DiscordEndpoint::ChannelEdit => guild.edit_channel(turn),
        DiscordEndpoint::ChannelDelete => guild.delete_channel(turn),
        DiscordEndpoint::OverwritePut => guild.put_overwrite(turn),
        DiscordEndpoint::OverwriteDelete => guild.delete_overwrite(turn),
        DiscordEndpoint::Messages => guild.list_messages(turn),
        DiscordEndpoint::MessageCreate => guild.create_message(turn),
        DiscordEndpoint::Message => guild.show_message(turn),
        DiscordEndpoint::MessageEdit => guild.edit_message(turn),
        DiscordEndpoint::MessageDelete => guild.delete_message(turn),
    }
}
