//! The deployments that this process is running. The executor of a step checks this list: what an
//! interrupted run left in the queue must not be sent when the queue is opened for something else,
//! such as a plan. The list is global to the process, because queue and deployer know of each other
//! only through the operations between them.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static ALL: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Keeps one deployment on the list until it is dropped.
#[derive(Debug)]
pub(super) struct ActiveDeployment(String);

impl ActiveDeployment {
    pub(super) fn new(deployment: &str) -> Self {
        ALL.lock().unwrap_or_else(PoisonError::into_inner).insert(deployment.to_owned());
        Self(deployment.to_owned())
    }
}

impl Drop for ActiveDeployment {
    fn drop(&mut self) {
        ALL.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

pub(super) fn is_active(deployment: &str) -> bool {
    ALL.lock().unwrap_or_else(PoisonError::into_inner).contains(deployment)
}
