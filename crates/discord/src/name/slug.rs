//! Channel names as Discord stores them, so that a requested name equals the listed one. Cyrillic
//! is transliterated to Latin letters; other scripts stay as they are, because Discord keeps them.

/// Normalizes the name of a text channel as Discord was observed to do (it is not documented):
/// lower case, `-` for spaces, no ASCII punctuation except `-`, `_` and `.`, and never two `-` in a
/// row.
#[must_use]
pub fn normalize(name: &str) -> String {
    let mut kept = String::with_capacity(name.len());
    for c in name.to_lowercase().chars() {
        let c = if c.is_whitespace() { '-' } else { c };
        let gone = c.is_control() || (c.is_ascii_punctuation() && !matches!(c, '-' | '_' | '.'));
        let again = c == '-' && kept.ends_with('-');
        if !(gone || again) {
            kept.push(c);
        }
    }
    kept
}

/// Builds the slug of a display name. It never begins or ends with `-`; it may be empty.
#[must_use]
pub fn slugify(name: &str) -> String {
    let shown = name.to_lowercase();
    let letters = shown.chars().filter(|c| !is_dropped(*c)).map(Letter::of);
    let latin = letters.fold(String::new(), |mut all, letter| {
        match letter {
            Letter::Latin(text) => all.push_str(text),
            Letter::Other(c) => all.push(c),
        }
        all
    });
    normalize(&latin).trim_matches('-').to_owned()
}

/// Returns whether a character is dropped: a combining accent, or one without width.
fn is_dropped(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

enum Letter {
    Latin(&'static str),
    Other(char),
}

impl Letter {
    /// Transliterates a letter as most signs and passports do, without diacritics.
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
            'ъ' | 'ь' => "",
            '–' | '—' | '・' | '·' | '/' | '|' | '&' | '+' | ':' | ',' => "-",
            other => return Self::Other(other),
        })
    }
}
