//! Reports the end of each generation to the application that asked for it: each report is an
//! operation of its own, submitted under a key, so that an end that is seen twice is reported once.
//! Ends that came while no one listened are found in the list when a partition is opened.

use tidegate::{Engine, ErrorKind, Submission};
use tidegate_core::OperationId;
use tidegate_dispatch::notify::{GenerationEnd, Notification};
use tidegate_dispatch::{Generation, GenerationQuery, GenerationStatus, Generations};

use crate::wire::generation::GenerationOut;

/// The generations that are looked at when a partition is opened, or events were missed.
const LOOKED_AT: usize = 200;

/// Reports ends until the engine stops.
pub(super) struct EndReporter {
    pub engine: Engine,
    pub generations: Generations,
    /// The address of the reports of those that name none.
    pub default_url: Option<String>,
    /// Where the receivers of reports reach this server, if that is configured.
    pub public_url: Option<String>,
}

impl EndReporter {
    pub(super) async fn run(self) {
        let mut changes = self.generations.changes(None);
        self.report_latest().await;
        while let Some(change) = changes.next().await {
            if std::mem::take(&mut changes.gap) {
                self.report_latest().await;
            }
            if change.status.is_ended() {
                self.report(change.id).await;
            }
        }
    }

    async fn report_latest(&self) {
        let query = GenerationQuery { user: None, status: None, before: None, limit: LOOKED_AT };
        let page = match self.generations.list(&query).await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(%error, "ends of generations may be reported late");
                return;
            }
        };
        for one in page.generations.iter().filter(|one| one.status.is_ended()) {
            self.report(one.id).await;
        }
    }

    /// Submits the report of one end, if it has an address.
    async fn report(&self, id: OperationId) {
        let Ok(one) = self.generations.get(id).await else { return };
        let Some(submission) = self.submission(&one) else { return };
        match self.engine.submit(submission).await {
            // It was reported before, under another public_url.
            Err(error) if error.kind == ErrorKind::KeyConflict => {}
            Err(error) => {
                tracing::warn!(generation = %id, %error, "the end of a generation was not reported");
            }
            Ok(_) => {}
        }
    }

    fn submission(&self, one: &Generation) -> Option<Submission> {
        let url = one.notify_url.clone().or_else(|| self.default_url.clone())?;
        let end = match one.status {
            GenerationStatus::Completed => GenerationEnd::Completed,
            GenerationStatus::Failed => GenerationEnd::Failed,
            GenerationStatus::Canceled => GenerationEnd::Canceled,
            _ => return None,
        };
        let (at, mut data) = (one.finished_at?, GenerationOut::whole(one));
        if let Some(base) = &self.public_url {
            data = data.with_base(base);
        }
        let report = Notification::new(url, &one.id.to_string(), end, at, &data).ok()?;
        let operation = report.to_operation().ok()?;
        let submission = Submission::new(operation.kind, operation.group, operation.payload)
            .with_dedupe_key(operation.dedupe_key)
            .with_max_attempts(operation.max_attempts);
        Some(submission)
    }
}
