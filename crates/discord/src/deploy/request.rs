//! A deployment request, and its form in the journal, from which an interrupted deployment resumes.

use serde::{Deserialize, Serialize};

use super::builder::UPSTREAM;
use super::error::{Error, Result};
use crate::Id;
use crate::template::{Template, TemplateProblems};

/// A template for a guild.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DeployRequest {
    /// The guild.
    pub guild: Id,
    /// The name of the upstream that reaches Discord.
    pub upstream: String,
    /// The name of the template, for messages about it.
    pub file: String,
    /// The template.
    pub template: String,
    /// Whether to remove managed objects that are not in the template.
    #[serde(default)]
    pub prune: bool,
    /// Whether to believe the journal about messages, instead of reading the channels that hold
    /// them. One that was deleted or edited by hand is not noticed then.
    #[serde(default)]
    pub trust_journal: bool,
    /// Earlier versions read those channels only on request.
    #[serde(default, skip_serializing, rename = "verify")]
    _verify: bool,
    /// Whether to apply without checking first what the bot may do in the guild.
    #[serde(default)]
    pub skip_preflight: bool,
    /// The channel that receives a summary of what was done.
    #[serde(default)]
    pub audit_channel: Option<Id>,
    /// The digest of the plan that was agreed to. The journal does not keep it: a deployment that
    /// has begun was agreed to.
    #[serde(skip)]
    pub plan_digest: Option<String>,
}

impl DeployRequest {
    /// Requests that a guild match a template, through the upstream `discord`.
    #[must_use]
    pub fn new(guild: Id, template: impl Into<String>) -> Self {
        Self {
            guild,
            upstream: UPSTREAM.to_owned(),
            file: "the template".to_owned(),
            template: template.into(),
            prune: false,
            trust_journal: false,
            _verify: false,
            skip_preflight: false,
            audit_channel: None,
            plan_digest: None,
        }
    }

    /// Names the upstream that reaches Discord.
    #[must_use]
    pub fn with_upstream(mut self, upstream: impl Into<String>) -> Self {
        self.upstream = upstream.into();
        self
    }

    /// Names the template, for messages about it.
    #[must_use]
    pub fn with_file(mut self, file: impl Into<String>) -> Self {
        self.file = file.into();
        self
    }

    /// Sets whether to remove managed objects that are not in the template.
    #[must_use]
    pub fn with_prune(mut self, prune: bool) -> Self {
        self.prune = prune;
        self
    }

    /// Sets whether to believe the journal about messages.
    #[must_use]
    pub fn with_trust_journal(mut self, trust_journal: bool) -> Self {
        self.trust_journal = trust_journal;
        self
    }

    /// Sets the plan that was agreed to, by its digest: if the guild needs another one by now,
    /// nothing is applied.
    #[must_use]
    pub fn with_plan_digest(mut self, digest: impl Into<Option<String>>) -> Self {
        self.plan_digest = digest.into();
        self
    }

    /// Sets whether to apply without checking first what the bot may do in the guild.
    #[must_use]
    pub fn with_skip_preflight(mut self, skip_preflight: bool) -> Self {
        self.skip_preflight = skip_preflight;
        self
    }

    /// Sets the channel that receives a summary.
    #[must_use]
    pub fn with_audit_channel(mut self, audit_channel: impl Into<Option<Id>>) -> Self {
        self.audit_channel = audit_channel.into();
        self
    }

    /// Reads and checks the template.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its position.
    pub fn read(&self) -> std::result::Result<Template, TemplateProblems> {
        Template::read(&self.file, &self.template)
    }

    /// Returns the group of its operations, which is also the scope of its journal.
    #[must_use]
    pub fn group(&self) -> String {
        group(self.guild)
    }

    /// Encodes the request for the journal.
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self)
            .map_err(|error| Error::Invalid(format!("The template cannot be stored: {error}.")))
    }

    /// Decodes a request from the journal.
    ///
    /// # Errors
    /// When another version of this program wrote it in another form.
    pub fn decode(kept: &[u8]) -> Result<Self> {
        serde_json::from_slice(kept).map_err(|_| {
            Error::Invalid("The journal holds a deployment that this version cannot read.".into())
        })
    }
}

/// Returns the group of a guild's operations.
#[must_use]
pub fn group(guild: Id) -> String {
    format!("guild:{guild}")
}
