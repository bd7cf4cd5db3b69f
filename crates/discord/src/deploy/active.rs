//! The deployments that this process carries. Who carries a step asks here: what an interrupted run left in the queue must
//! not be sent when the queue is opened for something else, such as a plan. It is one list for the process, because queue
//! and deployer know of each other only by the operations between them.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static ALL: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// One of them, for as long as this lives.
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
