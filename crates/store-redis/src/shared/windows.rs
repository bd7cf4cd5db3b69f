//! Hydration windows: a hash each. By the server's clock one that is closed goes by itself, because it is as good as
//! none.

use std::time::Duration;

use tidegate_core::shared::window::{Opened, Window};
use tidegate_store::Result;

use crate::scripts::{self, Call};
use crate::{Redis, reply, span};

impl Redis {
    pub(super) async fn open_one(&self, key: &str, level: u8, ttl: Duration) -> Result<Opened> {
        let call = Call::new(&scripts::WINDOW_OPEN, [self.keys.window(key)]);
        let call = call.with(self.now()).with(level).with(span(ttl));
        let (word, mut parts) = reply::said(self.step("open the window", &call).await?)?;
        let window = Window { level: reply::at(&mut parts, 0)?, until: reply::time_at(&mut parts, 1)? };
        Ok(if word == "ask" { Opened::Ask(window) } else { Opened::Wait(window) })
    }

    pub(super) async fn peek(&self, key: &str) -> Result<Option<Window>> {
        let call = Call::new(&scripts::WINDOW_PEEK, [self.keys.window(key)]).with(self.now());
        let mut parts = reply::list(self.step("look at the window", &call).await?)?;
        if parts.is_empty() {
            return Ok(None);
        }
        Ok(Some(Window { level: reply::at(&mut parts, 0)?, until: reply::time_at(&mut parts, 1)? }))
    }
}
