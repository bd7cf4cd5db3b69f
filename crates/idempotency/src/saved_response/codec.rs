//! Encodes saved responses: a version, a checksum over the record's name, its fingerprint and
//! everything that follows, and the response. A sealed response is authenticated by the seal
//! instead. Bytes that do not check are never served.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, StatusCode};
use sha2::{Digest, Sha256};

use super::sealing_keys::SealingKeys;
use super::{BufferedResponse, SavedResponse};

/// The version of a plain response, with a checksum.
const PLAIN: u8 = 1;
/// The version of a sealed response.
const SEALED: u8 = 2;
const CHECK_LEN: usize = 16;

const WHOLE: u8 = 0;
const TOO_LARGE: u8 = 1;

/// Why a saved response cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResponseDecodeError {
    /// The bytes are not those that were written, or were written for another request.
    #[error("its bytes are not those that were stored")]
    Changed,
    /// The response is sealed, and no configured key opens it.
    #[error("it is sealed with a key that is not configured")]
    NoKey,
    /// A newer version of the program wrote it.
    #[error("it was stored in a format that this program does not know")]
    Unknown,
}

/// The record that a response is bound to: it is invalid in another one.
pub(crate) struct ResponseBinding<'a> {
    pub(crate) name: &'a str,
    pub(crate) fingerprint: &'a [u8; 32],
}

impl ResponseBinding<'_> {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.name.len() + self.fingerprint.len());
        bytes.extend_from_slice(self.fingerprint);
        bytes.extend_from_slice(self.name.as_bytes());
        bytes
    }

    fn check(&self, content: &[u8]) -> [u8; CHECK_LEN] {
        let hash = Sha256::new().chain_update(self.bytes()).chain_update(content).finalize();
        let mut check = [0; CHECK_LEN];
        check.copy_from_slice(&hash[..CHECK_LEN]);
        check
    }
}

/// Encodes a response; `None` when it could not be sealed.
pub(crate) fn encode(
    kept: &SavedResponse,
    bound: &ResponseBinding<'_>,
    seal: Option<&SealingKeys>,
) -> Option<Bytes> {
    let content = write(kept);
    let mut out = BytesMut::with_capacity(content.len() + 64);
    match seal {
        Some(seal) => {
            out.put_u8(SEALED);
            out.put_slice(&seal.seal(&content, &bound.bytes())?);
        }
        None => {
            out.put_u8(PLAIN);
            out.put_slice(&bound.check(&content));
            out.put_slice(&content);
        }
    }
    Some(out.freeze())
}

pub(crate) fn decode(
    mut bytes: Bytes,
    bound: &ResponseBinding<'_>,
    seal: Option<&SealingKeys>,
) -> Result<SavedResponse, ResponseDecodeError> {
    let version = bytes.try_get_u8().map_err(|_| ResponseDecodeError::Changed)?;
    let content = match version {
        SEALED => Bytes::from(seal.ok_or(ResponseDecodeError::NoKey)?.open(&bytes, &bound.bytes())?),
        PLAIN if bytes.len() >= CHECK_LEN => {
            let check = bytes.split_to(CHECK_LEN);
            if *check != bound.check(&bytes) {
                return Err(ResponseDecodeError::Changed);
            }
            bytes
        }
        PLAIN | 0 => return Err(ResponseDecodeError::Changed),
        _ => return Err(ResponseDecodeError::Unknown),
    };
    read(content).ok_or(ResponseDecodeError::Unknown)
}

fn write(kept: &SavedResponse) -> BytesMut {
    let mut out = BytesMut::new();
    match kept {
        SavedResponse::TooLarge(status) => {
            out.put_u8(TOO_LARGE);
            out.put_u16(status.as_u16());
        }
        SavedResponse::Buffered(whole) => {
            out.reserve(whole.body.len() + 512);
            out.put_u8(WHOLE);
            out.put_u16(whole.status.as_u16());
            write_headers(&mut out, whole.headers.iter().map(|(name, value)| (name, value)));
            out.put_u8(u8::from(whole.trailers.is_some()));
            if let Some(trailers) = &whole.trailers {
                write_headers(&mut out, trailers.iter());
            }
            out.put_slice(&whole.body);
        }
    }
    out
}

fn write_headers<'a>(out: &mut BytesMut, headers: impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)>) {
    let at = out.len();
    out.put_u32(0);
    let mut count = 0_u32;
    for (name, value) in headers {
        out.put_u32(name.as_str().len() as u32);
        out.put_slice(name.as_str().as_bytes());
        out.put_u32(value.len() as u32);
        out.put_slice(value.as_bytes());
        count += 1;
    }
    out[at..at + 4].copy_from_slice(&count.to_be_bytes());
}

/// Decodes the content; `None` where its layout is unknown.
fn read(mut content: Bytes) -> Option<SavedResponse> {
    let kind = content.try_get_u8().ok()?;
    let status = StatusCode::from_u16(content.try_get_u16().ok()?).ok()?;
    match kind {
        TOO_LARGE => Some(SavedResponse::TooLarge(status)),
        WHOLE => {
            let headers = read_headers(&mut content)?;
            let trailers = match content.try_get_u8().ok()? {
                0 => None,
                _ => Some(read_headers(&mut content)?.into_iter().fold(
                    HeaderMap::new(),
                    |mut all, (name, value)| {
                        all.append(name, value);
                        all
                    },
                )),
            };
            Some(SavedResponse::Buffered(BufferedResponse { status, headers, body: content, trailers }))
        }
        _ => None,
    }
}

fn read_headers(content: &mut Bytes) -> Option<Vec<(HeaderName, HeaderValue)>> {
    let count = content.try_get_u32().ok()?;
    (0..count)
        .map(|_| {
            let name = HeaderName::from_bytes(&text(content)?).ok()?;
            let value = HeaderValue::from_maybe_shared(text(content)?).ok()?;
            Some((name, value))
        })
        .collect()
}

fn text(content: &mut Bytes) -> Option<Bytes> {
    let len = content.try_get_u32().ok()? as usize;
    (len <= content.len()).then(|| content.split_to(len))
}

#[cfg(test)]
mod tests;
