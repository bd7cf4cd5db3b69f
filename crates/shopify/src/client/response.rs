//! The response to a call, as its caller gets it. Printing it shows what it is about, never the
//! data.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{Error, Result, ShopifyErrorKind};
use crate::response_meta::ResponseMeta;

/// The response to a query or mutation that ran.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct GraphqlResponse {
    /// The data.
    pub data: Value,
    /// Errors next to the data: why parts of it are null.
    pub errors: Vec<Value>,
    /// The cost and what is left, the version that responded, and deprecations.
    pub meta: ResponseMeta,
}

/// The response to a REST call that succeeded.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct RestResponse {
    /// Its status.
    pub status: u16,
    /// Its body, `Null` when there is none.
    pub body: Value,
    /// The `Link` header, which leads to further pages.
    pub link: Option<String>,
    /// The calls used, the version that responded, and deprecations.
    pub meta: ResponseMeta,
}

impl GraphqlResponse {
    /// Deserializes the data into a type of the caller's.
    ///
    /// # Errors
    /// `Unreadable` when it does not fit.
    pub fn read<T: DeserializeOwned>(self) -> Result<T> {
        read(self.data)
    }
}

impl RestResponse {
    /// Deserializes the body into a type of the caller's.
    ///
    /// # Errors
    /// `Unreadable` when it does not fit.
    pub fn read<T: DeserializeOwned>(self) -> Result<T> {
        read(self.body)
    }
}

/// Deserializes JSON. The error says where it does not fit, and repeats no value.
pub(crate) fn read<T: DeserializeOwned>(json: Value) -> Result<T> {
    serde_json::from_value(json).map_err(|error| {
        let about = if error.is_data() { "it does not match the requested type" } else { "it is not JSON" };
        Error::new(ShopifyErrorKind::Unreadable(format!("{about}.")))
    })
}

impl fmt::Debug for GraphqlResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphqlResponse").field("meta", &self.meta).finish_non_exhaustive()
    }
}

impl fmt::Debug for RestResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestResponse")
            .field("status", &self.status)
            .field("meta", &self.meta)
            .finish_non_exhaustive()
    }
}
