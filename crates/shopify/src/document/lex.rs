//! The tokens of a GraphQL document. Whitespace, commas and comments are skipped; an invalid token
//! ends the parsing.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name, also `true` or `query`.
    Name,
    /// A punctuator: `{`, `!`, `$`, `...`.
    Punctuator,
    /// A whole number.
    Int,
    /// Any other number.
    Float,
    /// A quoted string.
    Text,
}

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Its kind.
    pub kind: TokenKind,
    /// As it is written.
    pub text: &'a str,
    /// Where it ends, in bytes.
    pub end: usize,
}

impl Token<'_> {
    /// Returns whether it is this punctuator.
    #[must_use]
    pub fn is_punctuator(&self, mark: &str) -> bool {
        self.kind == TokenKind::Punctuator && self.text == mark
    }
}

/// Splits a text into tokens; `None` when a part of it is not a token.
#[must_use]
pub fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::with_capacity(text.len() / 6);
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let (kind, end) = match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b',' => {
                at += 1;
                continue;
            }
            // The byte order mark that some editors put before a text.
            0xEF if text[at..].starts_with('\u{feff}') => {
                at += '\u{feff}'.len_utf8();
                continue;
            }
            b'#' => {
                at = scan_while(bytes, at, |b| !matches!(b, b'\n' | b'\r'));
                continue;
            }
            b'_' | b'A'..=b'Z' | b'a'..=b'z' => {
                (TokenKind::Name, scan_while(bytes, at, |b| b == b'_' || b.is_ascii_alphanumeric()))
            }
            b'-' | b'0'..=b'9' => scan_number(bytes, at)?,
            b'"' => (TokenKind::Text, scan_string(bytes, at)?),
            b'.' if bytes[at..].starts_with(b"...") => (TokenKind::Punctuator, at + 3),
            b'!' | b'$' | b'&' | b'(' | b')' | b':' | b'=' | b'@' | b'[' | b']' | b'{' | b'|' | b'}' => {
                (TokenKind::Punctuator, at + 1)
            }
            _ => return None,
        };
        tokens.push(Token { kind, text: text.get(at..end)?, end });
        at = end;
    }
    Some(tokens)
}

/// Returns the first index from `at` on where `belongs` is false.
fn scan_while(bytes: &[u8], at: usize, belongs: impl Fn(u8) -> bool) -> usize {
    bytes[at..].iter().position(|byte| !belongs(*byte)).map_or(bytes.len(), |len| at + len)
}

fn scan_number(bytes: &[u8], at: usize) -> Option<(TokenKind, usize)> {
    let start = at + usize::from(bytes[at] == b'-');
    let whole = scan_while(bytes, start, |b| b.is_ascii_digit());
    if whole == start {
        return None;
    }
    let end =
        scan_while(bytes, whole, |b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    Some((if end == whole { TokenKind::Int } else { TokenKind::Float }, end))
}

/// Returns the end of a quoted string, of one line or of several.
fn scan_string(bytes: &[u8], at: usize) -> Option<usize> {
    let block = bytes[at..].starts_with(b"\"\"\"");
    let mut place = at + if block { 3 } else { 1 };
    loop {
        match *bytes.get(place)? {
            b'\\' if !block => place += 2,
            b'\\' if bytes[place..].starts_with(b"\\\"\"\"") => place += 4,
            b'"' if !block => return Some(place + 1),
            b'"' if bytes[place..].starts_with(b"\"\"\"") => return Some(place + 3),
            b'\n' | b'\r' if !block => return None,
            _ => place += 1,
        }
    }
}
