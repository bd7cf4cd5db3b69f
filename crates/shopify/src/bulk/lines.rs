//! Reads a result line by line, in constant memory: one line, and the rest of the chunk that its
//! end arrived in. A line longer than allowed is an error, not a larger buffer.

use std::fmt;

use bytes::{Bytes, BytesMut};
use serde::de::DeserializeOwned;
use tidegate_upstream::http::download::{Download, DownloadError};

use crate::client::error::{Result, ShopifyErrorKind};

/// The lines of a result. Rows have `__parentId` or `__lineNumber` where they belong to another
/// one.
pub struct ResultLines {
    download: Download,
    split: LineSplitter,
}

impl ResultLines {
    pub(super) fn new(download: Download, line_max: usize) -> Self {
        Self { download, split: LineSplitter::new(line_max) }
    }

    /// Returns the next line as received, without its line end; `None` after the last. Skips empty
    /// lines.
    ///
    /// # Errors
    /// `Unreadable` when the result breaks off or a line is too long. Nothing can be read after
    /// that.
    pub async fn next_line(&mut self) -> Result<Option<Bytes>> {
        loop {
            if let Some(line) = self.split.next_line()? {
                return Ok(Some(line));
            }
            if self.split.is_over {
                return Ok(None);
            }
            match self.download.piece().await {
                Ok(piece) => self.split.feed(piece),
                Err(DownloadError(reason)) => {
                    self.split.end();
                    return Err(ShopifyErrorKind::Unreadable(reason).into());
                }
            }
        }
    }

    /// Returns the next line as a type of the caller's.
    ///
    /// # Errors
    /// As for [`ResultLines::next_line`]; also `Unreadable` when the line does not fit the type,
    /// after which the next line may be read.
    pub async fn next_row<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let Some(line) = self.next_line().await? else { return Ok(None) };
        let number = self.split.lines;
        let told = |_| {
            ShopifyErrorKind::Unreadable(format!(
                "line {number} of the result does not match the requested type."
            ))
        };
        Ok(Some(serde_json::from_slice(&line).map_err(told)?))
    }
}

impl fmt::Debug for ResultLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultLines").field("lines", &self.split.lines).finish_non_exhaustive()
    }
}

/// Splits chunks into lines.
#[derive(Debug)]
struct LineSplitter {
    /// The last chunk, as far as it was not returned. It is sliced, never copied.
    piece: Bytes,
    /// The start of a line whose end is in a later chunk.
    begun: BytesMut,
    line_max: usize,
    lines: u64,
    is_over: bool,
}

impl LineSplitter {
    fn new(line_max: usize) -> Self {
        Self { piece: Bytes::new(), begun: BytesMut::new(), line_max, lines: 0, is_over: false }
    }

    /// Takes the next chunk, or the end. The last one must have been used up.
    fn feed(&mut self, piece: Option<Bytes>) {
        match piece {
            Some(piece) => self.piece = piece,
            None => self.is_over = true,
        }
    }

    /// Ends the splitting; no more lines are returned.
    fn end(&mut self) {
        (self.piece, self.begun, self.is_over) = (Bytes::new(), BytesMut::new(), true);
    }

    /// Returns the next whole line, if there is one.
    fn next_line(&mut self) -> Result<Option<Bytes>> {
        loop {
            let line = match self.piece.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    let rest = self.piece.split_to(end + 1).slice(..end);
                    if self.begun.is_empty() { rest } else { self.finish_line(&rest)? }
                }
                None => {
                    let rest = std::mem::take(&mut self.piece);
                    self.check(self.begun.len() + rest.len())?;
                    self.begun.extend_from_slice(&rest);
                    if !self.is_over {
                        return Ok(None);
                    }
                    // The last line may have no line end.
                    std::mem::take(&mut self.begun).freeze()
                }
            };
            let line = if line.last() == Some(&b'\r') { line.slice(..line.len() - 1) } else { line };
            if !line.is_empty() {
                self.check(line.len())?;
                self.lines += 1;
                return Ok(Some(line));
            }
            if self.is_over && self.piece.is_empty() {
                return Ok(None);
            }
        }
    }

    fn finish_line(&mut self, rest: &[u8]) -> Result<Bytes> {
        self.check(self.begun.len() + rest.len())?;
        self.begun.extend_from_slice(rest);
        Ok(std::mem::take(&mut self.begun).freeze())
    }

    fn check(&mut self, len: usize) -> Result<()> {
        if len <= self.line_max {
            return Ok(());
        }
        let (line, most) = (self.lines + 1, self.line_max);
        self.end();
        let message = format!("line {line} of the result is longer than the limit of {most} bytes.");
        Err(ShopifyErrorKind::Unreadable(message).into())
    }
}

#[cfg(test)]
mod tests;
