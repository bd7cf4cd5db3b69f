//! Operator commands about a limit: other figures, those of the configuration again, and to open
//! it.

use std::sync::Arc;

use tidegate_core::bounds;
use tidegate_core::fact::LimitShape;
use tidegate_core::model::{LimitRefusal, LimitView};
use tidegate_store::Clock;

use super::Engine;
use crate::error::{Error, ErrorKind, Result};

impl Engine {
    /// Changes the figures of a limit.
    ///
    /// # Errors
    /// When there is no limit of that name, or the figures are out of bounds.
    pub async fn set_limit(&self, name: &str, shape: LimitShape) -> Result<LimitView> {
        let limit: Arc<str> = name.into();
        let set = self.update_owner(move |owner| {
            let now = owner.clock.now();
            owner.model.set_limit(now, &limit, shape, &mut owner.building.facts)?;
            owner.model.limit(&limit, now).ok_or(LimitRefusal::Unknown)
        });
        set.await?.map_err(|refusal| limit_refusal_error(refusal, name))
    }

    /// Restores the configured figures of a limit.
    ///
    /// # Errors
    /// When there is no limit of that name.
    pub async fn reset_limit(&self, name: &str) -> Result<LimitView> {
        let limit: Arc<str> = name.into();
        let reset = self.update_owner(move |owner| {
            let now = owner.clock.now();
            owner.model.reset_limit(now, &limit, &mut owner.building.facts)?;
            owner.model.limit(&limit, now).ok_or(LimitRefusal::Unknown)
        });
        reset.await?.map_err(|refusal| limit_refusal_error(refusal, name))
    }

    /// Reopens a limit that an upstream had closed. Of a breaker it ends the cooldown: one call
    /// goes first, and the others follow when it succeeds.
    ///
    /// # Errors
    /// When there is no limit of that name.
    pub async fn thaw(&self, name: &str) -> Result<LimitView> {
        self.thaw_as(name, false).await
    }

    /// The same for a limit that is closed.
    ///
    /// # Errors
    /// When there is no limit of that name, or it is open.
    pub async fn thaw_closed(&self, name: &str) -> Result<LimitView> {
        self.thaw_as(name, true).await
    }

    async fn thaw_as(&self, name: &str, only_closed: bool) -> Result<LimitView> {
        let limit: Arc<str> = name.into();
        let thawed = self.update_owner(move |owner| {
            let now = owner.clock.now();
            let facts = &mut owner.building.facts;
            if only_closed {
                owner.model.thaw_closed(now, &limit, facts)?;
            } else {
                owner.model.thaw(now, &limit, facts)?;
            }
            owner.model.limit(&limit, now).ok_or(LimitRefusal::Unknown)
        });
        thawed.await?.map_err(|refusal| limit_refusal_error(refusal, name))
    }
}

fn limit_refusal_error(refusal: LimitRefusal, name: &str) -> Error {
    match refusal {
        LimitRefusal::Unknown => Error::new(ErrorKind::NoLimit, format!("there is no limit {name:?}")),
        LimitRefusal::OtherKind => {
            let message = format!(
                "{name:?} is of another kind: a cap takes at_once, a budget capacity and refill_per_s, a gate only open"
            );
            Error::new(ErrorKind::NotNow, message)
        }
        LimitRefusal::NotClosed => {
            Error::new(ErrorKind::NotNow, format!("the limit {name:?} is not closed now"))
        }
        LimitRefusal::TooMany => Error::new(ErrorKind::Invalid, "there are too many limits already"),
        LimitRefusal::OutOfBounds => {
            let most = bounds::TOKENS_MAX;
            let message = format!("capacity, refill_per_s and at_once must be above 0 and at most {most}");
            Error::new(ErrorKind::Invalid, message).field("capacity")
        }
    }
}
