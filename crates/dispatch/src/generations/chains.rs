//! Gives generations that were created earlier the chain that their model has now.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tidegate::{Filter, State};
use tidegate_core::bounds::PAGE_ITEMS_MAX;
use tidegate_core::{Alternatives, Fault, FaultClass};

use super::Generations;
use crate::dispatch::KIND;
use crate::error::DispatchError;
use crate::executor::find_model;

/// What became of generations whose models had changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowedChains {
    /// The number of those that have another chain now.
    pub changed: usize,
    /// The number of those that failed: their model is gone.
    pub failed: usize,
    /// The models that are gone, by name.
    pub gone: BTreeSet<Arc<str>>,
}

/// The states of generations that have not ended. None is held with an unknown outcome: that
/// follows the policy of its model.
const UNFINISHED: [State; 3] = [State::Queued, State::Waiting, State::Running];

impl Generations {
    /// Lets every generation that has not ended follow the chain that its model has now. One that
    /// is at a provider stays there, and one that waits for a model that is gone fails. To be
    /// called after a restart, and whenever
    /// [`Dispatch::model_changes`](crate::Dispatch::model_changes) notifies.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn follow_chains(&self) -> Result<FollowedChains, DispatchError> {
        let models = self.state.models();
        let alternatives = |name: &str| match find_model(&models, name) {
            Ok(model) => Ok(Arc::new(self.state.providers.alternatives(&model.config))),
            Err(refusal) => Err(Fault::new(FaultClass::NotFound, refusal.message)),
        };
        let mut chains: HashMap<Arc<str>, Result<Arc<Alternatives>, Fault>> = HashMap::new();
        let most = usize::try_from(PAGE_ITEMS_MAX).unwrap_or(usize::MAX);
        let filter = Filter::default().with_kind(KIND).with_states(UNFINISHED).with_limit(most);
        let (mut before, mut followed) = (None, FollowedChains::default());
        loop {
            let page = self.engine.list_without_requests(filter.clone().with_before(before)).await?;
            let (mut kept, mut gone) = (Vec::new(), Vec::new());
            for view in page.operations {
                let Some(model) = view.upstream else { continue };
                match chains.entry(Arc::clone(&model)).or_insert_with_key(|model| alternatives(model)) {
                    Ok(chain) => kept.push((view.id, Arc::clone(chain))),
                    Err(fault) => {
                        gone.push((view.id, fault.clone()));
                        followed.gone.insert(model);
                    }
                }
            }
            followed.changed += self.engine.replace_alternatives(kept).await?;
            followed.failed += self.engine.fail_waiting(gone).await?;
            before = page.next;
            if before.is_none() {
                return Ok(followed);
            }
        }
    }
}
