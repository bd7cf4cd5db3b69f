//! Tells whoever asked for a deployment that it has begun, or why it has not. What happens after that is in the journal.

use std::sync::{Mutex, PoisonError};

use tidegate_discord::deploy::{Error, ProgressEvent, ProgressListener, Result};
use tokio::sync::oneshot;

/// Told once.
pub(super) struct OnceNotifier(Mutex<State>);

struct State {
    tell: Option<oneshot::Sender<Result<String>>>,
    begun: Option<String>,
}

impl OnceNotifier {
    pub(super) fn new(tell: oneshot::Sender<Result<String>>) -> Self {
        Self(Mutex::new(State { tell: Some(tell), begun: None }))
    }

    /// The deployment, if it has begun.
    pub(super) fn deployment_id(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).begun.clone()
    }

    /// It has not begun.
    pub(super) fn refuse(&self, why: Option<Error>) {
        self.notify(Err(why.unwrap_or(Error::LeaseLost)));
    }

    fn notify(&self, word: Result<String>) {
        let tell = self.0.lock().unwrap_or_else(PoisonError::into_inner).tell.take();
        if let Some(tell) = tell {
            // Whoever asked may have gone.
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
