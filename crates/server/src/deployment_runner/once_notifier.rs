//! Notifies the request that asked for a deployment that it has started, or why it has not. What
//! happens after that is in the journal.

use std::sync::{Mutex, PoisonError};

use tidegate_discord::deploy::{Error, ProgressEvent, ProgressListener, Result};
use tokio::sync::oneshot;

/// A progress listener that notifies the waiting request once.
pub(super) struct OnceNotifier(Mutex<State>);

struct State {
    tell: Option<oneshot::Sender<Result<String>>>,
    begun: Option<String>,
}

impl OnceNotifier {
    pub(super) fn new(tell: oneshot::Sender<Result<String>>) -> Self {
        Self(Mutex::new(State { tell: Some(tell), begun: None }))
    }

    /// The id of the deployment, if it has started.
    pub(super) fn deployment_id(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).begun.clone()
    }

    /// Reports that the deployment has not started.
    pub(super) fn refuse(&self, why: Option<Error>) {
        self.notify(Err(why.unwrap_or(Error::LeaseLost)));
    }

    fn notify(&self, word: Result<String>) {
        let tell = self.0.lock().unwrap_or_else(PoisonError::into_inner).tell.take();
        if let Some(tell) = tell {
            // The request may have been dropped.
            let _ = tell.send(word);
        }
    }
}

impl ProgressListener for OnceNotifier {
    fn on_event(&self, told: &ProgressEvent<'_>) {
        if let ProgressEvent::Begun { deployment, .. } = told {
            let id = (*deployment).to_owned();
            self.0.lock().unwrap_or_else(PoisonError::into_inner).begun = Some(id.clone());
            self.notify(Ok(id));
        }
    }
}
