//! Logs once per shop what an operator should know: that another version responds than was asked
//! for, and that a call is deprecated.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::response_meta::ResponseMeta;
use crate::version::ApiVersion;

/// What was logged already.
#[derive(Debug, Default)]
pub(crate) struct OnceLogger {
    fell_forward: AtomicBool,
    deprecated: AtomicBool,
}

impl OnceLogger {
    /// Logs what is new in a response.
    pub(crate) fn log(&self, shop: &str, said: &ResponseMeta, asked: Option<ApiVersion>) {
        if let (Some(answered), Some(asked)) = (self.first_newer_version(said, asked), asked) {
            tracing::warn!(
                shop,
                %asked,
                %answered,
                "Shopify no longer has the requested version and responds with another"
            );
        }
        if let Some(reason) = &said.deprecated
            && !self.deprecated.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(shop, reason, "Shopify reports that a call is deprecated");
        }
    }

    /// Returns the version that responded instead, the first time.
    fn first_newer_version(&self, said: &ResponseMeta, asked: Option<ApiVersion>) -> Option<ApiVersion> {
        said.fell_forward(asked).filter(|_| !self.fell_forward.swap(true, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LIM-17: a response from another version is logged once, however often it occurs.
    #[test]
    fn lim_17_another_version_is_told_once() {
        let (telling, asked) = (OnceLogger::default(), "2026-04".parse().ok());
        let said = |version: &str| ResponseMeta { version: version.parse().ok(), ..ResponseMeta::default() };
        assert_eq!(telling.first_newer_version(&said("2026-04"), asked), None);
        assert!(telling.first_newer_version(&said("2026-07"), asked).is_some());
        assert_eq!(telling.first_newer_version(&said("2026-07"), asked), None);
        assert_eq!(telling.first_newer_version(&said("2026-10"), asked), None);
    }
}
