//! A job to run in bulk, and how it is recognized among the operations at Shopify: a query by its
//! text, a mutation by a mark in its text that stands for the file it runs on.

use std::fmt;

use tidegate_core::fingerprint::{Fingerprint, hex};

use super::operation::BulkOperation;
use crate::client::error::{Result, ShopifyErrorKind};

/// Longest document that Shopify accepts, in bytes.
const DOCUMENT_MAX: usize = 65_535;
/// The beginning of the mark, a comment on its own line.
const MARK: &str = "# tidegate:";

/// A query or mutation to run in bulk.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Job {
    /// The document that Shopify gets.
    pub(crate) text: String,
    /// The path of a mutation's file; none for a query.
    pub(crate) staged_upload_path: Option<String>,
}

/// Whether an operation at Shopify is a given job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobMatch {
    Same,
    /// The text is the same, but the mark is missing: it is someone else's, or Shopify has dropped
    /// the mark.
    Unmarked,
    Other,
}

impl fmt::Debug for Job {
    /// Prints what it is, never its content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({} bytes)", self.text.len())
    }
}

impl Job {
    pub(crate) fn query(text: &str) -> Self {
        Self { text: text.to_owned(), staged_upload_path: None }
    }

    pub(crate) fn mutation(text: &str, path: &str) -> Self {
        let mark = hex(&Fingerprint::of("bulk").part(path.as_bytes()).short().to_be_bytes());
        Self { text: format!("{}\n{MARK}{mark}", text.trim_end()), staged_upload_path: Some(path.to_owned()) }
    }

    /// Checks that Shopify can accept the job.
    pub(crate) fn check(&self) -> Result<()> {
        let len = self.text.len();
        if self.text.trim().is_empty() || self.text.trim_start().starts_with(MARK) {
            return Err(
                ShopifyErrorKind::Invalid("There is nothing to run: the text is empty.".into()).into()
            );
        }
        if len > DOCUMENT_MAX {
            let message = format!("The text is {len} bytes long; the most is {DOCUMENT_MAX}.");
            return Err(ShopifyErrorKind::Invalid(message).into());
        }
        if self.staged_upload_path.as_ref().is_some_and(|path| path.trim().is_empty()) {
            return Err(ShopifyErrorKind::Invalid(
                "A bulk mutation needs the path of its uploaded file.".into(),
            )
            .into());
        }
        Ok(())
    }

    pub(crate) const fn is_mutation(&self) -> bool {
        self.staged_upload_path.is_some()
    }

    /// Compares an operation with this job.
    pub(crate) fn match_operation(&self, operation: &BulkOperation) -> JobMatch {
        let Some(theirs) = operation.query.as_deref() else { return JobMatch::Other };
        if words(theirs).eq(words(&self.text)) {
            return JobMatch::Same;
        }
        let unmarked = self.text.rsplit_once(MARK).map(|(text, _)| text);
        if unmarked.is_some_and(|text| words(theirs).eq(words(text))) {
            return JobMatch::Unmarked;
        }
        JobMatch::Other
    }
}

/// Splits a text into words: white space between them does not matter.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::operation::BulkStatus;

    fn running(query: &str) -> BulkOperation {
        BulkOperation {
            query: Some(query.to_owned()),
            ..BulkOperation::new("gid://shopify/BulkOperation/1", &BulkStatus::Running)
        }
    }

    /// LIM-29: a query is recognized by its text, a mutation only together with the file it runs
    /// on.
    #[test]
    fn lim_29_a_job_is_known_again() {
        let query = Job::query("{ products\n { edges { node { id } } } }");
        assert_eq!(
            query.match_operation(&running("{ products { edges {\tnode { id } } } }")),
            JobMatch::Same
        );
        assert_eq!(query.match_operation(&running("{ orders { edges { node { id } } } }")), JobMatch::Other);
        let (one, other) =
            (Job::mutation("mutation m { x }", "tmp/1"), Job::mutation("mutation m { x }", "tmp/2"));
        assert_eq!(one.match_operation(&running(&one.text)), JobMatch::Same);
        assert_eq!(one.match_operation(&running(&other.text)), JobMatch::Other);
        assert_eq!(one.match_operation(&running("mutation m { x }")), JobMatch::Unmarked);
        assert!(!one.text.contains("tmp/1"), "the path of the file leaked");
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        for job in [
            Job::query(" "),
            Job::mutation(" ", "tmp/1"),
            Job::mutation("mutation m { x }", " "),
            Job::query(&"x".repeat(65_536)),
        ] {
            assert!(matches!(job.check().unwrap_err().kind(), ShopifyErrorKind::Invalid(_)));
        }
        assert!(Job::query("{ shop { id } }").check().is_ok());
    }
}
