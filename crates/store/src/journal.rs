//! The journal of deployments, which any process may write and read. Each verb is one atomic step and answers exactly as
//! [`Book`](tidegate_core::journal::Book) does; what was answered is durable.

use tidegate_core::journal::{Deployment, Lines, Mapped, REQUEST_LEN_MAX, STEPS_AT_ONCE_MAX, Step};

use crate::{Answer, Error, Kind, Result};

/// The journal.
pub trait Journal: Send + Sync {
    /// Writes a deployment, new or known; `false` when somebody with a newer fence has written it since.
    fn keep_deployment(&self, deployment: Deployment) -> Answer<'_, bool>;

    /// Writes lines of a deployment, all or none; `false` when it is not there, or somebody with a newer fence has written
    /// it since.
    fn write_journal(&self, deployment: &str, fence: u64, lines: Lines) -> Answer<'_, bool>;

    /// The deployment of this id.
    fn deployment(&self, id: &str) -> Answer<'_, Option<Deployment>>;

    /// Deployments of a scope, or of all, the newest first; at most `most`.
    fn deployments(&self, scope: Option<&str>, most: usize) -> Answer<'_, Vec<Deployment>>;

    /// The steps of a deployment, in their order.
    fn deployment_steps(&self, id: &str) -> Answer<'_, Vec<Step>>;

    /// The objects of a scope, by kind and key.
    fn mapped(&self, scope: &str) -> Answer<'_, Vec<Mapped>>;
}

/// That a deployment may be kept. Every store asks it first.
///
/// # Errors
/// `Invalid` when it is larger than a store keeps.
pub fn check_deployment(deployment: &Deployment) -> Result<()> {
    let length = deployment.request.len();
    if length <= REQUEST_LEN_MAX {
        return Ok(());
    }
    let message = format!("a deployment of {length} bytes; at most {REQUEST_LEN_MAX} are kept");
    Err(Error::new(Kind::Invalid, message))
}

/// That lines may be written. Every store asks it first.
///
/// # Errors
/// `Invalid` when there are more than are written at once.
pub fn check_lines(lines: &Lines) -> Result<()> {
    let count = lines.steps.len().max(lines.mapped.len());
    if count <= STEPS_AT_ONCE_MAX {
        return Ok(());
    }
    let message = format!("{count} lines for the journal; at most {STEPS_AT_ONCE_MAX} are written at once");
    Err(Error::new(Kind::Invalid, message))
}
