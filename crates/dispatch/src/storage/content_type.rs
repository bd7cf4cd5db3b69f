//! Detects the content type of a file from its first bytes. What a provider claims about a file is
//! not trusted: a browser that is told `text/html` would run it.

/// The type of everything that is not recognized.
pub const UNKNOWN: &str = "application/octet-stream";

/// Brands of MP4 files, at byte 8, behind `ftyp`. Other brands are other formats in the same
/// container, such as AVIF.
const MP4_BRANDS: [&[u8; 4]; 10] =
    [b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"M4V ", b"dash"];

/// The content type of PNG, JPEG, WebP, GIF and MP4 files; [`UNKNOWN`] for everything else.
#[must_use]
pub fn detect(bytes: &[u8]) -> &'static str {
    let part = |range: std::ops::Range<usize>| bytes.get(range).unwrap_or_default();
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        "image/png"
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        "image/jpeg"
    } else if bytes.starts_with(b"RIFF") && part(8..12) == b"WEBP" {
        "image/webp"
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        "image/gif"
    } else if part(4..8) == b"ftyp" && MP4_BRANDS.iter().any(|brand| part(8..12) == *brand) {
        "video/mp4"
    } else {
        UNKNOWN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_first_bytes() {
        let table: [(&[u8], &str); 12] = [
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
            (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
            (b"GIF87a", "image/gif"),
            (b"GIF89a", "image/gif"),
            (b"\0\0\0\x20ftypisom\0\0\x02\0", "video/mp4"),
            (b"\0\0\0\x20ftypavif\0\0\0\0", UNKNOWN),
            (b"RIFF\x24\0\0\0WAVEfmt ", UNKNOWN),
            (b"<!doctype html><script>", UNKNOWN),
            (b"<svg onload=alert(1)>", UNKNOWN),
            (b"\x89PNG", UNKNOWN),
            (b"", UNKNOWN),
        ];
        for (bytes, expected) in table {
            assert_eq!(detect(bytes), expected, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
