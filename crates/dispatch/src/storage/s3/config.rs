//! The configuration of a bucket, and the URL that its objects are below.

use tidegate_upstream::{FieldRefusal, Secret};
use url::{Host, Url};

/// The lengths of the names of buckets.
const BUCKET_LEN: std::ops::RangeInclusive<usize> = 3..=63;
/// The lengths of the names of regions and of the ids of keys.
const WORD_LEN: std::ops::RangeInclusive<usize> = 1..=128;

/// Where a bucket is, and the credential for it.
#[derive(Clone, Debug)]
pub struct S3Config {
    /// The URL of the service, such as `https://s3.eu-central-1.amazonaws.com`.
    pub endpoint: String,
    /// The region that signatures name. Services without regions have one by convention, such as
    /// `auto` or `us-east-1`.
    pub region: String,
    /// The name of the bucket.
    pub bucket: String,
    /// How a request names the bucket.
    pub addressing: S3Addressing,
    /// The id of the access key.
    pub access_key_id: String,
    /// The secret of the access key.
    pub secret_access_key: Secret,
}

/// How a request names its bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum S3Addressing {
    /// In the path: `https://endpoint/bucket/key`. Most services other than Amazon's want this.
    #[default]
    Path,
    /// In the name of the host: `https://bucket.endpoint/key`.
    VirtualHost,
}

impl S3Config {
    /// The URL that objects are below, without a trailing slash.
    pub(super) fn base_url(&self) -> Result<String, FieldRefusal> {
        self.validate_names()?;
        let refuse = |message: &str| FieldRefusal::new("endpoint", message);
        let mut url = Url::parse(&self.endpoint).map_err(|_| refuse("It is not a URL."))?;
        if self.addressing == S3Addressing::VirtualHost {
            let Some(Host::Domain(host)) = url.host() else {
                return Err(refuse("A virtual host needs a name; use path addressing with an address."));
            };
            let host = format!("{}.{host}", self.bucket);
            url.set_host(Some(&host)).map_err(|_| refuse("The bucket and it do not form a host name."))?;
        }
        let bucket = match self.addressing {
            S3Addressing::Path => format!("/{}", self.bucket),
            S3Addressing::VirtualHost => String::new(),
        };
        // A query or a credential in it is refused with the whole URL.
        let path = format!("{}{bucket}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        Ok(url.as_str().trim_end_matches('/').to_owned())
    }

    fn validate_names(&self) -> Result<(), FieldRefusal> {
        let is_label = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.');
        let ends_well = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        let bucket = self.bucket.as_bytes();
        let is_bucket = BUCKET_LEN.contains(&bucket.len())
            && bucket.iter().copied().all(is_label)
            && ends_well(bucket.first())
            && ends_well(bucket.last())
            && !self.bucket.contains("..");
        let is_word = |text: &str| {
            WORD_LEN.contains(&text.len())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        };
        if !is_bucket {
            let message = "A bucket is 3 to 63 small letters, digits, '-' or '.'.";
            return Err(FieldRefusal::new("bucket", message));
        }
        if !is_word(&self.region) {
            return Err(FieldRefusal::new("region", "A region is a word such as us-east-1."));
        }
        if !is_word(&self.access_key_id) {
            return Err(FieldRefusal::new(
                "access_key_id",
                "An access key id is a word of letters and digits.",
            ));
        }
        if self.secret_access_key.reveal().is_empty() {
            return Err(FieldRefusal::new("secret_access_key", "It is empty."));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(endpoint: &str, addressing: S3Addressing) -> S3Config {
        S3Config {
            endpoint: endpoint.into(),
            region: "us-east-1".into(),
            bucket: "results".into(),
            addressing,
            access_key_id: "AKID".into(),
            secret_access_key: Secret::new("hunter2"),
        }
    }

    #[test]
    fn a_bucket_is_in_the_path_or_in_the_host() {
        let url = |endpoint, addressing| config(endpoint, addressing).base_url().unwrap();
        let (path, host) = (S3Addressing::Path, S3Addressing::VirtualHost);
        assert_eq!(url("https://s3.example", path), "https://s3.example/results");
        assert_eq!(url("http://127.0.0.1:9000/s3/", path), "http://127.0.0.1:9000/s3/results");
        assert_eq!(url("https://s3.example:8443", host), "https://results.s3.example:8443");
        let refused = config("http://127.0.0.1:9000", host).base_url().unwrap_err();
        assert_eq!(refused.field, "endpoint");
    }

    #[test]
    fn each_field_is_checked() {
        let good = config("https://s3.example", S3Addressing::Path);
        let refused = |config: S3Config| config.base_url().unwrap_err().field;
        for bucket in ["", "ab", "A-b", "a_b", "-ab", "ab-", "a..b", "a/b", &"a".repeat(64)] {
            assert_eq!(refused(S3Config { bucket: bucket.into(), ..good.clone() }), "bucket", "{bucket}");
        }
        assert_eq!(refused(S3Config { region: "a/b".into(), ..good.clone() }), "region");
        assert_eq!(refused(S3Config { access_key_id: String::new(), ..good.clone() }), "access_key_id");
        let secret_access_key = Secret::new("");
        assert_eq!(refused(S3Config { secret_access_key, ..good.clone() }), "secret_access_key");
        assert_eq!(refused(S3Config { endpoint: "s3.example".into(), ..good.clone() }), "endpoint");
        assert!(!format!("{good:?}").contains("hunter2"));
    }
}
