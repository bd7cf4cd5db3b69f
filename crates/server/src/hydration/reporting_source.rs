//! A source whose failures are known in this process: whoever waits here learns at once that it
//! could not look. Over the bus an error is no answer.

use std::sync::Arc;

use tidegate_hydration::{EntityQuestion, EntitySource, Hydrator, SourceFuture};

pub(super) struct ReportingSource {
    source: Arc<dyn EntitySource>,
    /// Who asks in this process.
    hydrator: Hydrator,
}

impl ReportingSource {
    pub(super) fn new(source: Arc<dyn EntitySource>, hydrator: Hydrator) -> Self {
        Self { source, hydrator }
    }
}

impl EntitySource for ReportingSource {
    fn load<'a>(&'a self, question: &'a EntityQuestion) -> SourceFuture<'a> {
        self.source.load(question)
    }

    fn report_failure(&self, question: &EntityQuestion) {
        self.hydrator.source_failed(question);
    }

    fn module(&self) -> Option<String> {
        self.source.module()
    }
}
