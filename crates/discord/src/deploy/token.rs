//! Recognizes that Discord refused the bot's token: by the response to a call, and by the wait of a
//! call that is not sent because of it.

use tidegate::{Filter, Reason};
use tidegate_core::{Fault, FaultClass, OperationId, State};

use super::error::{Error, Result};
use super::queue::GuildQueue;
use crate::dialect::UNKNOWN_TOKEN;

/// The part of the message about such a response that names its status.
const REFUSED: &str = " was answered 401";
/// Failed operations that are searched for it, newest first.
const LOOKED_AT: usize = 20;

/// Returns the error of a call whose token was refused.
pub(super) fn token_refusal(fault: &Fault) -> Option<Error> {
    is_token_refused(fault).then(|| Error::TokenRefused { fault: fault.clone(), left: UNKNOWN_TOKEN })
}

fn is_token_refused(fault: &Fault) -> bool {
    fault.class == FaultClass::Forbidden && fault.message.contains(REFUSED)
}

impl GuildQueue<'_> {
    /// Fails if an operation waits because the token was refused not long ago: it would wait for
    /// minutes and then be refused again.
    pub(super) async fn check_token(&self, id: OperationId, reason: &Reason) -> Result<()> {
        let ahead = match reason.behind {
            Some(ahead) => Some(self.engine.why(ahead).await?),
            None => None,
        };
        let reason = ahead.as_ref().unwrap_or(reason);
        if reason.name.as_deref() != Some(self.upstream) {
            return Ok(());
        }
        let now = self.engine.now();
        let mut filter = Filter::default().with_states([State::Failed]);
        filter.upstream = Some(self.upstream.into());
        filter.created_after = Some(now.before(UNKNOWN_TOKEN));
        filter.limit = LOOKED_AT;
        let failed = self.engine.list(filter).await?.operations.into_iter();
        let Some(fault) = failed.filter_map(|view| view.fault).find(is_token_refused) else { return Ok(()) };
        self.engine.withdraw(id).await?;
        let left = reason.until.map_or(UNKNOWN_TOKEN, |until| until.since(now));
        Err(Error::TokenRefused { fault, left })
    }
}

/// Returns the server's own words, without what follows from them.
pub(super) fn refusal_words(fault: &Fault) -> &str {
    let words = fault.message.as_str();
    words.split_once("; nothing is sent").map_or(words, |(words, _)| words).trim_end_matches('.')
}
