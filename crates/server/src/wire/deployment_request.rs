//! A request for a deployment, parsed field by field.

use tidegate_core::bounds::DEPLOYMENT_LEN_MAX;
use tidegate_discord::Id;
use tidegate_discord::deploy::DeployRequest;

use super::field::Field;
use super::object::{self, Fields};
use crate::error::{Error, ErrorCode, Result};

const NAMES: [&str; 9] = [
    "guild",
    "upstream",
    "template",
    "prune",
    "trust_journal",
    "skip_preflight",
    "audit_channel",
    "dry_run",
    "plan_digest",
];
/// The file name of a received template in messages.
const FILE: &str = "template";

/// A request for a deployment.
pub(crate) struct DeploymentRequest {
    pub wanted: DeployRequest,
    /// Whether to plan only.
    pub dry_run: bool,
}

/// Parses a body.
///
/// # Errors
/// All invalid fields. Problems inside the template are reported separately.
pub(crate) fn read(body: &[u8]) -> Result<DeploymentRequest> {
    let Fields { values, mut problems } = object::read(body, &NAMES)?;
    let mut fields = NAMES.iter().zip(values).map(|(name, raw)| Field { name, raw });
    let mut next = || fields.next().unwrap_or(Field { name: "", raw: None });
    let (guild, upstream, template) = (next(), next(), next());
    let (prune, trust_journal, skip_preflight) = (next(), next(), next());
    let (audit_channel, dry_run, plan_digest) = (next(), next(), next());
    let guild = guild.required_text().and_then(|text| parse_discord_id(guild.name, &text)).map(Some);
    let audit_channel = audit_channel
        .text()
        .and_then(|text| text.map(|text| parse_discord_id(audit_channel.name, &text)).transpose());
    let (guild, audit_channel) = (problems.check(guild), problems.check(audit_channel));
    let wanted = DeployRequest::new(guild.unwrap_or(Id(0)), problems.check(template.required_text()))
        .with_upstream(problems.check(upstream.required_text()))
        .with_file(FILE)
        .with_prune(problems.check(prune.flag()).unwrap_or(false))
        .with_trust_journal(problems.check(trust_journal.flag()).unwrap_or(false))
        .with_skip_preflight(problems.check(skip_preflight.flag()).unwrap_or(false))
        .with_plan_digest(problems.check(plan_digest.text()))
        .with_audit_channel(audit_channel);
    let dry_run = problems.check(dry_run.flag()).unwrap_or(false);
    problems.finish()?;
    let length = serde_json::to_vec(&wanted).map_or(usize::MAX, |kept| kept.len());
    if length > DEPLOYMENT_LEN_MAX {
        let message =
            format!("The deployment takes {length} bytes as JSON; at most {DEPLOYMENT_LEN_MAX} are kept.");
        return Err(Error::new(ErrorCode::TooLarge, message).field("template"));
    }
    Ok(DeploymentRequest { wanted, dry_run })
}

/// Parses a Discord id from a field or a parameter.
pub(crate) fn parse_discord_id(field: &str, text: &str) -> Result<Id> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = text.parse().ok().filter(|_| is_plain);
    parsed.ok_or_else(|| {
        let message = format!("{field:?} must be a Discord id: a number in quotes, such as \"4177\".");
        Error::new(ErrorCode::Malformed, message).field(field)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_off() {
        let asked = read(br#"{"guild":"7","upstream":"discord","template":"roles: []"}"#).unwrap();
        let DeployRequest { guild, prune, trust_journal, audit_channel, .. } = asked.wanted;
        assert_eq!(
            (guild, prune, trust_journal, audit_channel, asked.dry_run),
            (Id(7), false, false, None, false)
        );
    }

    #[test]
    fn each_mistake_is_told_by_its_field() {
        let table = [
            (r#"{"upstream":"d","template":""}"#, "guild"),
            (r#"{"guild":7,"upstream":"d","template":""}"#, "guild"),
            (r#"{"guild":"+7","upstream":"d","template":""}"#, "guild"),
            (r#"{"guild":"7","template":""}"#, "upstream"),
            (r#"{"guild":"7","upstream":"d"}"#, "template"),
            (r#"{"guild":"7","upstream":"d","template":"","prune":1}"#, "prune"),
            (r#"{"guild":"7","upstream":"d","template":"","audit_channel":"x"}"#, "audit_channel"),
            (r#"{"guild":"7","upstream":"d","template":"","file":"x"}"#, "file"),
        ];
        for (body, field) in table {
            let error = read(body.as_bytes()).err().unwrap();
            assert_eq!((error.code, error.field.as_deref()), (ErrorCode::Malformed, Some(field)), "{body}");
        }
        let long = "x".repeat(DEPLOYMENT_LEN_MAX);
        let body = format!(r#"{{"guild":"7","upstream":"d","template":"{long}"}}"#);
        assert_eq!(read(body.as_bytes()).err().unwrap().code, ErrorCode::TooLarge);
    }
}
