//! What is to be deployed, and its form in the journal, from which an interrupted deployment is gone on with.

use serde::{Deserialize, Serialize};

use super::error::{Error, Result};
use crate::Id;
use crate::template::{Template, TemplateProblems};

/// A template for a guild.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeployRequest {
    /// The guild.
    pub guild: Id,
    /// The upstream that reaches Discord, by its name.
    pub upstream: String,
    /// What the template is called, for messages about it.
    pub file: String,
    /// The template.
    pub template: String,
    /// Remove managed objects that are not in it.
    #[serde(default)]
    pub prune: bool,
    /// Read every channel that holds a message, so that one that was deleted by hand is noticed.
    #[serde(default)]
    pub verify: bool,
    /// A channel that is told what was done.
    #[serde(default)]
    pub audit_channel: Option<Id>,
}

impl DeployRequest {
    /// The template, read and checked.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place.
    pub fn read(&self) -> std::result::Result<Template, TemplateProblems> {
        Template::read(&self.file, &self.template)
    }

    /// The group of its operations, and the scope of its journal.
    #[must_use]
    pub fn group(&self) -> String {
        group(self.guild)
    }

    /// As it is kept.
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self)
            .map_err(|error| Error::Invalid(format!("The template cannot be kept: {error}.")))
    }

    /// Back from the journal.
    ///
    /// # Errors
    /// When another version of this program has written it in another form.
    pub fn decode(kept: &[u8]) -> Result<Self> {
        serde_json::from_slice(kept).map_err(|_| {
            Error::Invalid("The journal holds a deployment that this version cannot read.".into())
        })
    }
}

/// The group of a guild's operations.
#[must_use]
pub fn group(guild: Id) -> String {
    format!("guild:{guild}")
}
