//! Hydration windows: a hash each. With the server's clock, a closed one expires by itself, because
//! it is equivalent to none.

use std::time::Duration;

use tidegate_core::shared::window::{HydrationWindow, OpenWindowOutcome};
use tidegate_store::Result;

use crate::scripts::{self, ScriptCall};
use crate::{RedisStore, reply, span};

impl RedisStore {
    pub(super) async fn open_one(&self, key: &str, level: u8, ttl: Duration) -> Result<OpenWindowOutcome> {
        let call = ScriptCall::new(&scripts::WINDOW_OPEN, [self.keys.window(key)]);
        let call = call.with_arg(self.now()).with_arg(level).with_arg(span(ttl));
        let (word, mut parts) = reply::split_verdict(self.run_script("open the window", &call).await?)?;
        let window =
            HydrationWindow { level: reply::part_at(&mut parts, 0)?, until: reply::time_at(&mut parts, 1)? };
        Ok(if word == "ask" { OpenWindowOutcome::Ask(window) } else { OpenWindowOutcome::Wait(window) })
    }
}
