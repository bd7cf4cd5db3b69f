//! AWS Signature Version 4 for S3, in the `Authorization` header: a pure function of the request,
//! the credential and the time.

use std::fmt::Write as _;

use ring::{digest, hmac};
use tidegate_core::Time;
use tidegate_core::fingerprint::hex;
use tidegate_upstream::Secret;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The credential that signs requests, for one region.
#[derive(Clone, Debug)]
pub(super) struct SigningCredential {
    pub access_key_id: String,
    pub secret_access_key: Secret,
    pub region: String,
}

/// The parts of a request that its signature covers. There is never a query.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignedParts<'a> {
    pub method: &'a str,
    /// The path as it is sent, in percent-encoding.
    pub path: &'a str,
    /// The headers, with names in lower case and in order.
    pub headers: &'a [(&'a str, &'a str)],
    /// The SHA-256 of the body, in hexadecimal.
    pub content_sha256: &'a str,
}

impl SigningCredential {
    /// The value of the `Authorization` header.
    pub(super) fn authorize(&self, request: &SignedParts<'_>, at: Time) -> String {
        let timestamp = format_timestamp(at);
        let date = timestamp.split('T').next().unwrap_or_default();
        let scope = format!("{date}/{}/s3/aws4_request", self.region);
        let names: Vec<&str> = request.headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let canonical = sha256_hex(request.canonical(&names).as_bytes());
        let to_sign = format!("{ALGORITHM}\n{timestamp}\n{scope}\n{canonical}");
        let signature = hex(mac(self.signing_key(date).as_ref(), &to_sign).as_ref());
        let id = &self.access_key_id;
        format!("{ALGORITHM} Credential={id}/{scope},SignedHeaders={names},Signature={signature}")
    }

    /// The key of one day, region and service.
    fn signing_key(&self, date: &str) -> hmac::Tag {
        let secret = format!("AWS4{}", self.secret_access_key.reveal());
        let day = mac(secret.as_bytes(), date);
        let region = mac(day.as_ref(), &self.region);
        let service = mac(region.as_ref(), "s3");
        mac(service.as_ref(), "aws4_request")
    }
}

impl SignedParts<'_> {
    fn canonical(&self, names: &str) -> String {
        let mut text = format!("{}\n{}\n\n", self.method, self.path);
        for (name, value) in self.headers {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}:{}", value.trim());
        }
        let _ = write!(text, "\n{names}\n{}", self.content_sha256);
        text
    }
}

/// The SHA-256 of some bytes, in hexadecimal.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// A time as signatures have it: `20130524T000000Z`.
pub(super) fn format_timestamp(at: Time) -> String {
    let text = at.to_string();
    let seconds = text.split('.').next().unwrap_or_default();
    seconds.chars().filter(|c| !matches!(c, '-' | ':')).chain(['Z']).collect()
}

fn mac(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of "Signature Calculations for the Authorization Header" in the reference of
    /// Amazon S3: a GET of a range, and a PUT.
    #[test]
    fn dsp_20_requests_are_signed_like_the_examples_of_s3() {
        let credential = SigningCredential {
            access_key_id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_access_key: Secret::new("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            region: "us-east-1".into(),
        };
        let at = Time::parse_rfc_3339("2013-05-24T00:00:00Z").unwrap();
        let host = ("host", "examplebucket.s3.amazonaws.com");
        let date = ("x-amz-date", "20130524T000000Z");
        assert_eq!(format_timestamp(at), date.1);
        let scope = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,";

        let empty = sha256_hex(b"");
        let get = SignedParts {
            method: "GET",
            path: "/test.txt",
            headers: &[host, ("range", "bytes=0-9"), ("x-amz-content-sha256", &empty), date],
            content_sha256: &empty,
        };
        let expected = "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,\
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
        assert_eq!(credential.authorize(&get, at), format!("{scope}{expected}"));

        let content = sha256_hex(b"Welcome to Amazon S3.");
        let put = SignedParts {
            method: "PUT",
            path: "/test%24file.text",
            headers: &[
                ("date", "Fri, 24 May 2013 00:00:00 GMT"),
                host,
                ("x-amz-content-sha256", &content),
                date,
                ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ],
            content_sha256: &content,
        };
        let expected = "SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class,\
             Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
        assert_eq!(credential.authorize(&put, at), format!("{scope}{expected}"));
    }
}
