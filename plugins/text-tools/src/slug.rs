//! Slugs: lower-case ASCII words joined by hyphens.

/// The slug of `title`, at most `length_max` characters long, cut at a word where that is possible.
pub(crate) fn slug(title: &str, length_max: usize) -> String {
    let mut slug = String::new();
    for word in words(title) {
        let joint = usize::from(!slug.is_empty());
        if slug.len() + joint + word.len() > length_max {
            if slug.is_empty() {
                slug.push_str(&word[..length_max]);
            }
            break;
        }
        if joint == 1 {
            slug.push('-');
        }
        slug.push_str(&word);
    }
    slug
}

/// The words of a title, in lower-case ASCII. Letters that have no such spelling part words, as spaces do.
fn words(title: &str) -> Vec<String> {
    let mut ascii = String::new();
    for c in title.chars().flat_map(char::to_lowercase) {
        match c {
            'a'..='z' | '0'..='9' => ascii.push(c),
            '\'' | '’' => {}
            '&' => ascii.push_str(" and "),
            _ => ascii.push_str(spelled(c).unwrap_or(" ")),
        }
    }
    ascii.split_whitespace().map(str::to_owned).collect()
}

fn spelled(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ä' | 'æ' => "ae",
        'ö' | 'œ' | 'ø' => "oe",
        'ü' => "ue",
        'ß' => "ss",
        'à' | 'á' | 'â' | 'ã' | 'ą' => "a",
        'å' => "aa",
        'ç' | 'ć' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è' | 'é' | 'ê' | 'ë' | 'ę' | 'ě' => "e",
        'ğ' => "g",
        'ì' | 'í' | 'î' | 'ï' | 'ı' => "i",
        'ł' => "l",
        'ñ' | 'ń' | 'ň' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ő' => "o",
        'ř' => "r",
        'ś' | 'š' | 'ş' | 'ș' => "s",
        'ť' | 'ț' => "t",
        'þ' => "th",
        'ù' | 'ú' | 'û' | 'ů' | 'ű' => "u",
        'ý' | 'ÿ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        // The dot that a lower-cased İ leaves behind.
        '\u{307}' => "",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_become_slugs() {
        for (title, expected) in [
            ("Über uns!", "ueber-uns"),
            ("  Don't -- panic  ", "dont-panic"),
            ("R&D 2026", "r-and-d-2026"),
            ("İstanbul", "istanbul"),
            ("日本", ""),
        ] {
            assert_eq!(slug(title, 80), expected, "{title}");
        }
    }

    #[test]
    fn long_ones_are_cut_at_a_word() {
        assert_eq!(slug("one two three", 9), "one-two");
        assert_eq!(slug("incomprehensibilities", 5), "incom");
    }
}
