//! Channel names as Discord keeps them, so that what is asked for is what is listed afterwards. Cyrillic is written
//! in Latin letters; other scripts stay as they are, because Discord keeps them.

/// What Discord does with the name of a text channel, as it was seen (it is not documented): lower case, `-` for
/// spaces, ASCII punctuation gone except `-`, `_` and `.`, and never two `-` in a row.
#[must_use]
pub fn kept(name: &str) -> String {
    let mut kept = String::with_capacity(name.len());
    for c in name.to_lowercase().chars() {
        let c = if c.is_whitespace() { '-' } else { c };
        let gone = c.is_control() || (c.is_ascii_punctuation() && !matches!(c, '-' | '_' | '.'));
        if !gone && !(c == '-' && kept.ends_with('-')) {
            kept.push(c);
        }
    }
    kept
}

/// The slug of a display name. Never begins or ends with `-`; may be empty.
#[must_use]
pub fn of(name: &str) -> String {
    let latin: String = name.to_lowercase().chars().map(Letter::of).fold(String::new(), |mut all, letter| {
        match letter {
            Letter::Latin(text) => all.push_str(text),
            Letter::Other(c) => all.push(c),
        }
        all
    });
    kept(&latin).trim_matches('-').to_owned()
}

enum Letter {
    Latin(&'static str),
    Other(char),
}

impl Letter {
    /// Letters as they are mostly written on signs and in passports, without marks above or below. Accents that come
    /// as characters of their own are dropped, and so is what only joins emoji.
    fn of(c: char) -> Self {
        Self::Latin(match c {
            'а' => "a",
            'б' => "b",
            'в' => "v",
            'г' | 'ґ' => "g",
            'д' => "d",
            'е' | 'ё' | 'э' => "e",
            'є' => "ye",
            'ж' => "zh",
            'з' => "z",
            'и' | 'і' => "i",
            'ї' => "yi",
            'й' | 'ы' => "y",
            'к' => "k",
            'л' => "l",
            'м' => "m",
            'н' => "n",
            'о' => "o",
            'п' => "p",
            'р' => "r",
            'с' => "s",
            'т' => "t",
            'у' | 'ў' => "u",
            'ф' => "f",
            'х' => "kh",
            'ц' => "ts",
            'ч' => "ch",
            'ш' => "sh",
            'щ' => "shch",
            'ю' => "yu",
            'я' => "ya",
            'ј' => "j",
            'љ' => "lj",
            'њ' => "nj",
            'ђ' => "dj",
            'ћ' => "c",
            'џ' => "dz",
            'ъ' | 'ь' | '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => "",
            '\u{feff}' | '\u{2060}'..='\u{2064}' => "",
            '–' | '—' | '・' | '·' | '/' | '|' | '&' | '+' | ':' | ',' => "-",
            other => return Self::Other(other),
        })
    }
}
