//! Where the files of results are stored, because providers delete theirs. A storage keeps whole
//! files under keys: a put is atomic, and repeating it is harmless. It lists and deletes nothing.

pub mod content_type;
pub mod folder;
pub mod s3;

use std::pin::Pin;

use bytes::Bytes;
use http::HeaderValue;
use tidegate_core::bounds::{RESULT_FILE_LEN_MAX, STORAGE_KEY_LEN_MAX};

pub use folder::FolderStorage;
pub use s3::{S3Addressing, S3Config, S3Storage};

/// Longest content type, in bytes.
const CONTENT_TYPE_LEN_MAX: usize = 255;

/// A storage operation in progress.
pub type StorageFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StorageError>> + Send + 'a>>;

/// Stores the files of results.
///
/// A key has at most [`STORAGE_KEY_LEN_MAX`] bytes: segments of `A-Z a-z 0-9 . _ -` that do not
/// start with a dot, separated by `/`. A file has at most [`RESULT_FILE_LEN_MAX`] bytes.
pub trait ResultStorage: Send + Sync {
    /// Stores a file. When this returns, the file survives a crash, and no reader has seen a part
    /// of it. A file that exists under this key is replaced.
    fn put<'a>(&'a self, key: &'a str, content_type: &'a str, bytes: Bytes) -> StorageFuture<'a, ()>;

    /// Reads a file; `None` when there is none under this key.
    fn get<'a>(&'a self, key: &'a str) -> StorageFuture<'a, Option<StoredFile>>;
}

/// A file as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// Its content type; `application/octet-stream` when the storage does not know it.
    pub content_type: String,
    /// Its content.
    pub bytes: Bytes,
}

/// Why a file was not stored or read. No variant carries a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The key is invalid, by this rule.
    #[error("the key of a stored file {0}")]
    InvalidKey(&'static str),
    /// The content type is empty, too long, or no text for a header.
    #[error("the content type of a stored file must be 1 to {CONTENT_TYPE_LEN_MAX} printable characters")]
    InvalidContentType,
    /// The file is too large.
    #[error("a stored file has at most {RESULT_FILE_LEN_MAX} bytes")]
    TooLarge,
    /// The file system failed.
    #[error("{action} failed: {reason}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// The error of the system.
        reason: String,
    },
    /// The service did not respond, or failed, in every attempt.
    #[error("the storage is unavailable: {0}")]
    Unavailable(String),
    /// The service refused the request.
    #[error("the storage answered {status} {code}: {message}")]
    Refused {
        /// The status of its response.
        status: u16,
        /// Its code for the error, such as `AccessDenied`; empty when it sent none.
        code: String,
        /// Its message; empty when it sent none.
        message: String,
    },
}

impl StorageError {
    /// Whether the same operation may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Unavailable(_))
    }
}

/// Validates a key.
///
/// # Errors
/// When it could lead out of the storage, or is not portable.
pub fn validate_key(key: &str) -> Result<(), StorageError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/');
    let rule = if key.is_empty() || key.len() > STORAGE_KEY_LEN_MAX {
        "must have 1 to 512 bytes"
    } else if !key.bytes().all(is_allowed) {
        "may only contain letters, digits, '.', '_', '-' and '/'"
    } else if key.split('/').any(|segment| segment.is_empty() || segment.starts_with('.')) {
        "must not have a segment that is empty or starts with '.'"
    } else if key.split('/').any(|segment| segment.len() > SEGMENT_LEN_MAX) {
        "must not have a segment of more than 255 bytes"
    } else {
        return Ok(());
    };
    Err(StorageError::InvalidKey(rule))
}

/// Longest name of a file or folder that file systems allow, in bytes.
const SEGMENT_LEN_MAX: usize = 255;

/// Validates what is to be stored.
fn validate_file(key: &str, content_type: &str, bytes: &Bytes) -> Result<(), StorageError> {
    validate_key(key)?;
    let is_header = HeaderValue::from_str(content_type).is_ok_and(|value| value.to_str().is_ok());
    if content_type.is_empty() || content_type.len() > CONTENT_TYPE_LEN_MAX || !is_header {
        return Err(StorageError::InvalidContentType);
    }
    if bytes.len() > RESULT_FILE_LEN_MAX { Err(StorageError::TooLarge) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DSP-20: a key names a file inside the storage and nothing else.
    #[test]
    fn dsp_20_a_key_cannot_leave_its_storage() {
        let longest = format!("{}/{}/c", "a".repeat(255), "b".repeat(STORAGE_KEY_LEN_MAX - 258));
        for key in ["a", "generations/op_7/0.png", "A-b_c.1/x..y", &longest] {
            assert_eq!(validate_key(key), Ok(()), "{key}");
        }
        let too_long = "a/".repeat(STORAGE_KEY_LEN_MAX / 2) + "a";
        let long_segment = "a".repeat(256);
        for key in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            "..",
            "../a",
            "a/..",
            "a/../b",
            ".",
            "a/./b",
            ".hidden",
            "a/.b",
            "a\\b",
            "a b",
            "a%2e",
            "ä",
            "a\0",
            "a\n",
            "c:a",
            "a?b",
            "~",
            &too_long,
            &long_segment,
        ] {
            assert!(matches!(validate_key(key), Err(StorageError::InvalidKey(_))), "{key}");
        }
    }

    #[test]
    fn what_cannot_be_stored_is_refused() {
        let none = Bytes::new();
        assert_eq!(validate_file("a", "image/png", &none), Ok(()));
        for content_type in ["", "a\nb", "ä", &"x".repeat(256)] {
            let refused = validate_file("a", content_type, &none);
            assert_eq!(refused, Err(StorageError::InvalidContentType), "{content_type}");
        }
        let most = Bytes::from(vec![0; RESULT_FILE_LEN_MAX + 1]);
        assert_eq!(validate_file("a", "image/png", &most), Err(StorageError::TooLarge));
        assert_eq!(validate_file("a", "image/png", &most.slice(1..)), Ok(()));
    }
}
