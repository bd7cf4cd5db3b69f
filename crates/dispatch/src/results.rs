//! Copies the files of finished jobs to our own storage, because providers delete theirs. A file
//! has the key `{generation}/{number}.{extension}`, so a copy that is repeated replaces itself.

mod file_address;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use tidegate_images::OutputFile;
use url::Url;

use crate::config::AdapterConfig;
use crate::http_client::{Download, HttpClient};
use crate::payload::to_json;
use crate::provider_set::PickedProvider;
use crate::storage::{ResultStorage, content_type};
use file_address::check_address;

/// How long the download of one file may take.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(300);
/// The most redirects that are followed for one file.
const REDIRECTS_MAX: usize = 5;

/// A stored file of a generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultFile {
    /// Its key in the storage.
    pub key: String,
    /// Its content type, detected from its bytes.
    pub content_type: String,
    /// Its size.
    pub bytes: u64,
}

/// The files of a generation, as its operation keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GeneratedFiles {
    pub files: Vec<ResultFile>,
    #[serde(default)]
    pub provider: String,
}

impl GeneratedFiles {
    pub(crate) fn encode(&self, provider: &str) -> Vec<u8> {
        to_json(&Self { files: self.files.clone(), provider: provider.to_owned() })
    }

    pub(crate) fn decode(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }
}

/// Why files were not copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyError {
    /// Whether a later try may succeed.
    pub is_transient: bool,
    reason: String,
}

impl CopyError {
    /// A later try may succeed.
    pub(crate) fn transient(reason: impl Into<String>) -> Self {
        Self { is_transient: true, reason: reason.into() }
    }

    /// However often it is tried, it fails.
    pub(crate) fn lasting(reason: impl Into<String>) -> Self {
        Self { is_transient: false, reason: reason.into() }
    }

    /// The file stays as large as it is.
    pub(crate) fn too_large(most: usize) -> Self {
        Self::lasting(format!("it is larger than {most} bytes, the most that is kept"))
    }
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Copies files to a storage.
pub(crate) struct ResultCopier {
    pub storage: Arc<dyn ResultStorage>,
    pub client: Arc<HttpClient>,
    pub max_bytes: usize,
}

impl ResultCopier {
    /// Copies all files of a job; returns only when each of them is stored.
    pub(crate) async fn store(
        &self,
        picked: PickedProvider<'_>,
        operation: &str,
        files: &[OutputFile],
    ) -> Result<GeneratedFiles, CopyError> {
        if files.is_empty() {
            return Err(CopyError::lasting("the provider returned no file"));
        }
        let mut stored = GeneratedFiles::default();
        for (number, file) in files.iter().enumerate() {
            let content = self.content(picked, file).await;
            let content =
                content.map_err(|error| CopyError { reason: format!("file {number}: {error}"), ..error })?;
            let detected = content_type::detect(&content);
            let key = format!("{operation}/{number}.{}", extension(detected));
            let bytes = content.len() as u64;
            let put = self.storage.put(&key, detected, content).await;
            put.map_err(|error| CopyError { is_transient: error.is_transient(), reason: error.to_string() })?;
            stored.files.push(ResultFile { key, content_type: detected.to_owned(), bytes });
        }
        Ok(stored)
    }

    async fn content(&self, picked: PickedProvider<'_>, file: &OutputFile) -> Result<Bytes, CopyError> {
        let content = match file {
            OutputFile::Inline { data, .. } => data.clone(),
            OutputFile::Url(url) if url.starts_with("data:") => {
                decode_data_url(url).map_err(CopyError::lasting)?
            }
            OutputFile::Url(url) => return self.download(picked, url).await,
        };
        match content.len() {
            0 => Err(CopyError::lasting("it is empty")),
            len if len > self.max_bytes => Err(CopyError::too_large(self.max_bytes)),
            _ => Ok(content),
        }
    }

    /// Downloads a file. Redirects are followed, with the credential only to where it belongs.
    async fn download(&self, picked: PickedProvider<'_>, url: &str) -> Result<Bytes, CopyError> {
        let mut url = url.to_owned();
        for _ in 0..=REDIRECTS_MAX {
            check_address(picked.provider.config.adapter.base_url(), &url).await?;
            let headers = credential_for(picked, &url);
            match self.client.download(&url, headers, DOWNLOAD_TIMEOUT, self.max_bytes).await? {
                Download::Content(content) => return Ok(content),
                Download::Elsewhere(target) => url = redirected(&url, &target)?,
            }
        }
        Err(CopyError::transient(format!("it was redirected more than {REDIRECTS_MAX} times")))
    }
}

/// The address that a redirect leads to. Whoever sends the file in clear text after all is not
/// followed.
fn redirected(from: &str, target: &str) -> Result<String, CopyError> {
    let unusable = || CopyError::transient("its server redirects to an address that cannot be used");
    let from = Url::parse(from).map_err(|_| unusable())?;
    let to = from.join(target).map_err(|_| unusable())?;
    let is_safe = to.scheme() == "https" || (to.scheme() == "http" && from.scheme() == "http");
    if is_safe { Ok(to.into()) } else { Err(unusable()) }
}

/// The credential for a file: Google's videos are behind its API, and need the key of the request.
fn credential_for(picked: PickedProvider<'_>, url: &str) -> HeaderMap {
    let config = &picked.provider.config;
    let base = config.adapter.base_url().trim_end_matches('/');
    let is_below = url.strip_prefix(base).is_some_and(|rest| rest.starts_with('/'));
    let mut headers = HeaderMap::new();
    if is_below
        && matches!(config.adapter, AdapterConfig::Google { .. })
        && let Ok(mut value) = HeaderValue::from_str(picked.key.key.reveal())
    {
        value.set_sensitive(true);
        headers.insert("x-goog-api-key", value);
    }
    headers
}

/// The content of a `data:` URL in Base64.
fn decode_data_url(url: &str) -> Result<Bytes, String> {
    let (head, data) = url.split_once(',').ok_or("its data cannot be read")?;
    if !head.ends_with(";base64") {
        return Err("its data is not in Base64".into());
    }
    STANDARD.decode(data.trim()).map(Bytes::from).map_err(|_| "its data is not in Base64".into())
}

fn extension(content_type: &str) -> &'static str {
    match content_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/webp" => "webp",
        "image/gif" => "gif",
        "video/mp4" => "mp4",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_urls_are_decoded() {
        let decoded = decode_data_url("data:image/png;base64,iVBORw0KGgo=").unwrap();
        assert_eq!(&decoded[..4], b"\x89PNG");
        for wrong in ["data:image/png;base64", "data:text/plain,hello", "data:image/png;base64,%%"] {
            assert!(decode_data_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_redirect_is_resolved_and_never_leads_to_clear_text() {
        let table = [
            ("http://a/files/1?x=1", "/signed/1", Some("http://a/signed/1")),
            ("https://a/files/1", "https://b/1?sig=2", Some("https://b/1?sig=2")),
            ("http://a/files/1", "https://b/1", Some("https://b/1")),
            ("https://a/files/1", "http://a/1", None),
            ("https://a/files/1", "file:///etc/passwd", None),
            ("https://a/files/1", "https://", None),
        ];
        for (from, target, expected) in table {
            assert_eq!(redirected(from, target).ok().as_deref(), expected, "{target}");
        }
    }

    #[test]
    fn a_result_reads_back() {
        let file = ResultFile { key: "op/0.png".into(), content_type: "image/png".into(), bytes: 7 };
        let files = GeneratedFiles { files: vec![file], provider: "acme".into() };
        assert_eq!(GeneratedFiles::decode(&files.encode("acme")), files);
        assert_eq!(GeneratedFiles::decode(b"other"), GeneratedFiles::default());
    }
}
