//! The `Content-Type` of a request, as far as it counts: the media type and the charset. Clients
//! write the same type in several ways, and may do so from one attempt to the next.

/// The charset of a body whose type names none.
const DEFAULT_CHARSET: &str = "utf-8";

/// A content type, read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ContentType {
    /// In lower case.
    media_type: String,
    /// In lower case; none is UTF-8.
    charset: Option<String>,
    boundary: Option<String>,
}

impl ContentType {
    /// Parses a content type. Whatever is no type is taken for one, and compared as text.
    pub(super) fn parse(text: &str) -> Self {
        let mut parameters = parameters(text);
        let media_type = parameters.next().unwrap_or_default().trim().to_ascii_lowercase();
        let mut parsed = Self { media_type, charset: None, boundary: None };
        for (name, value) in parameters.filter_map(|parameter| parameter.split_once('=')) {
            let place = match name.trim().to_ascii_lowercase().as_str() {
                "charset" => &mut parsed.charset,
                "boundary" => &mut parsed.boundary,
                _ => continue,
            };
            // Of two the first counts, as in browsers.
            place.get_or_insert_with(|| unquoted(value.trim()));
        }
        let charset = parsed.charset.take().map(|charset| charset.to_ascii_lowercase());
        parsed.charset = charset.filter(|charset| !matches!(charset.as_str(), DEFAULT_CHARSET | "utf8" | ""));
        parsed
    }

    /// Returns the boundary, if the body has parts.
    pub(super) fn boundary(&self) -> Option<&str> {
        let boundary = self.boundary.as_deref().filter(|boundary| !boundary.is_empty());
        boundary.filter(|_| self.media_type.starts_with("multipart/"))
    }

    pub(super) fn is_json(&self) -> bool {
        self.media_type == "application/json" || self.media_type.ends_with("+json")
    }

    /// Returns what is compared: the media type, and the charset if it is not UTF-8.
    pub(super) fn compared(&self) -> String {
        match &self.charset {
            Some(charset) => format!("{};charset={charset}", self.media_type),
            None => self.media_type.clone(),
        }
    }
}

/// Splits a header value at its semicolons, except those in quotes.
fn parameters(text: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |letter| {
        let is_free = !is_escaped;
        is_escaped = is_quoted && letter == '\\' && is_free;
        is_quoted ^= letter == '"' && is_free;
        letter == ';' && !is_quoted
    })
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return value.to_owned();
    };
    let mut letters = inner.chars();
    std::iter::from_fn(|| {
        letters.next().map(|letter| if letter == '\\' { letters.next().unwrap_or(letter) } else { letter })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boundary_is_found_among_other_parameters() {
        for (content_type, boundary) in [
            ("multipart/form-data; boundary=abc", "abc"),
            ("Multipart/Mixed;charset=utf-8; Boundary=\"a;\\\"b\" ", "a;\"b"),
        ] {
            assert_eq!(ContentType::parse(content_type).boundary(), Some(boundary), "{content_type}");
        }
        for other in
            ["application/json; boundary=a", "multipart/form-data", "multipart/form-data; boundary=", "é", ""]
        {
            assert_eq!(ContentType::parse(other).boundary(), None, "{other}");
        }
    }

    /// IDM-20: how a type is written does not count; another type or charset does.
    #[test]
    fn idm_20_one_type_has_many_spellings() {
        let compared = |text: &str| ContentType::parse(text).compared();
        for same in [
            "application/json",
            "Application/JSON",
            " application/json ;",
            "application/json; charset=utf-8",
            "application/json;charset=UTF-8",
            "application/json; charset=\"utf-8\" ; q=1",
            "application/json; Charset = utf8",
        ] {
            assert_eq!(compared(same), "application/json", "{same}");
        }
        assert_eq!(compared("text/plain; charset=ISO-8859-1"), "text/plain;charset=iso-8859-1");
        assert_eq!(compared("text/plain; charset=latin1; charset=utf-8"), "text/plain;charset=latin1");
        assert_eq!(compared("multipart/form-data; boundary=a"), "multipart/form-data");
        assert_ne!(compared("application/json"), compared("application/problem+json"));
        assert_eq!(compared("no type"), "no type");
    }
}
