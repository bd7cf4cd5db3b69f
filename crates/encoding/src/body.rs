//! Encodes and decodes bodies. Decoding takes memory for one window and for the output that the
//! caller allows, whatever the body claims.

use std::fmt;
use std::io;

use async_compression::tokio::bufread::{
    BrotliDecoder, BrotliEncoder, DeflateDecoder, GzipDecoder, GzipEncoder, ZlibDecoder, ZlibEncoder,
    ZstdDecoder, ZstdEncoder,
};
use async_compression::zstd::DParameter;
use bytes::Bytes;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

use crate::coding::{Coding, Codings};

/// The largest zstd window that HTTP allows, as a power of two: 8 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// The deflate format, in the low half of the first byte of zlib.
const ZLIB_DEFLATE: u8 = 8;

/// Why a body was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// It exceeds the bound.
    TooLarge,
    /// It is not in its coding, or is truncated.
    Damaged,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the decoded body exceeds the size limit",
            Self::Damaged => "the body is not in the coding that its header names",
        })
    }
}

impl std::error::Error for DecodeError {}

/// Decodes a whole body of at most `most` bytes. An empty body is empty in every coding.
///
/// # Errors
/// When it is larger, or damaged.
pub async fn decode(codings: &Codings, body: &Bytes, most: usize) -> Result<Bytes, DecodeError> {
    if codings.is_empty() || body.is_empty() {
        return if body.len() <= most { Ok(body.clone()) } else { Err(DecodeError::TooLarge) };
    }
    let reader = decoder(codings, io::Cursor::new(body.clone())).await.map_err(|_| DecodeError::Damaged)?;
    let mut decoded = Vec::new();
    let bound = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(bound).read_to_end(&mut decoded).await.map_err(|_| DecodeError::Damaged)?;
    if decoded.len() <= most { Ok(decoded.into()) } else { Err(DecodeError::TooLarge) }
}

/// A boxed reader.
type Reader = Box<dyn AsyncRead + Send + Sync + Unpin>;

/// Decodes a body while it is read.
///
/// # Errors
/// When its first bytes cannot be read.
pub async fn decoder(
    codings: &Codings,
    body: impl AsyncBufRead + Send + Sync + Unpin + 'static,
) -> io::Result<Reader> {
    let mut reader: Box<dyn AsyncBufRead + Send + Sync + Unpin> = Box::new(body);
    for coding in codings.outermost_first() {
        reader = Box::new(BufReader::new(decode_layer(coding, reader).await?));
    }
    Ok(Box::new(reader))
}

async fn decode_layer(
    coding: Coding,
    mut body: Box<dyn AsyncBufRead + Send + Sync + Unpin>,
) -> io::Result<Reader> {
    Ok(match coding {
        Coding::Gzip => {
            let mut gzip = GzipDecoder::new(body);
            gzip.multiple_members(true);
            Box::new(gzip)
        }
        Coding::Deflate => {
            let has_envelope = body.fill_buf().await?.first().is_some_and(|byte| byte & 0x0f == ZLIB_DEFLATE);
            if has_envelope { Box::new(ZlibDecoder::new(body)) } else { Box::new(DeflateDecoder::new(body)) }
        }
        Coding::Brotli => Box::new(BrotliDecoder::new(body)),
        Coding::Zstd => {
            let mut zstd = ZstdDecoder::with_params(body, &[DParameter::window_log_max(ZSTD_WINDOW_LOG_MAX)]);
            zstd.multiple_members(true);
            Box::new(zstd)
        }
    })
}

/// Encodes a body.
///
/// # Errors
/// When there is no memory for it.
pub async fn encode(coding: Coding, body: &[u8]) -> io::Result<Bytes> {
    let mut encoded = Vec::new();
    match coding {
        Coding::Gzip => GzipEncoder::new(body).read_to_end(&mut encoded).await,
        Coding::Deflate => ZlibEncoder::new(body).read_to_end(&mut encoded).await,
        Coding::Brotli => BrotliEncoder::new(body).read_to_end(&mut encoded).await,
        Coding::Zstd => ZstdEncoder::new(body).read_to_end(&mut encoded).await,
    }?;
    Ok(encoded.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_compression::tokio::bufread::DeflateEncoder;

    async fn back(codings: &str, body: &[u8], most: usize) -> Result<Bytes, DecodeError> {
        let codings = Codings::parse(codings).unwrap();
        decode(&codings, &Bytes::copy_from_slice(body), most).await
    }

    #[tokio::test]
    async fn what_is_encoded_is_decoded() {
        let body = b"{\"data\":{\"shop\":{\"name\":\"acme\"}}}".repeat(1_000);
        for coding in Coding::ALL {
            let encoded = encode(coding, &body).await.unwrap();
            assert!(encoded.len() < body.len() / 10, "{coding}");
            assert_eq!(back(coding.as_str(), &encoded, body.len()).await.unwrap(), body, "{coding}");
            assert_eq!(back(coding.as_str(), b"", 0).await.unwrap(), "", "{coding}");
            let twice = encode(Coding::Gzip, &encoded).await.unwrap();
            assert_eq!(back(&format!("{coding}, gzip"), &twice, body.len()).await.unwrap(), body, "{coding}");
        }
        let mut bare = Vec::new();
        DeflateEncoder::new(&body[..]).read_to_end(&mut bare).await.unwrap();
        assert_eq!(back("deflate", &bare, body.len()).await.unwrap(), body, "without its envelope");
        let one = encode(Coding::Gzip, b"a").await.unwrap();
        assert_eq!(back("gzip", &[one.clone(), one].concat(), 9).await.unwrap(), "aa", "two members");
    }

    #[tokio::test]
    async fn a_body_that_grows_beyond_its_bound_is_refused() {
        let bomb = vec![0_u8; 8 << 20];
        for coding in Coding::ALL {
            let encoded = encode(coding, &bomb).await.unwrap();
            assert_eq!(
                back(coding.as_str(), &encoded, 1 << 20).await,
                Err(DecodeError::TooLarge),
                "{coding}"
            );
        }
        assert_eq!(back("", b"abc", 2).await, Err(DecodeError::TooLarge));
    }

    #[tokio::test]
    async fn a_damaged_body_is_refused() {
        let body = b"some text that is long enough".repeat(50);
        for coding in Coding::ALL {
            let encoded = encode(coding, &body).await.unwrap();
            let cut = &encoded[..encoded.len() / 2];
            assert_eq!(back(coding.as_str(), cut, body.len()).await, Err(DecodeError::Damaged), "{coding}");
            assert!(back(coding.as_str(), b"not encoded", 100).await.is_err(), "{coding}");
        }
    }
}
