//! What a pattern of a stranger may cost, read off its text.
//!
//! It must not know how patterns are matched, only that one without look-around, back references and the like takes a time that
//! grows with the text and with its own size.

use std::iter::Peekable;

/// What a class of Unicode counts for where a text is matched: it is walked by a handful of states.
const WALKED: Classes = Classes { few: 8, many: 8 };

/// What it counts for where it is compiled: one of digits or blanks has dozens of ranges, one of letters hundreds.
const COMPILED: Classes = Classes {
    few: 100,
    many: 400,
};

#[derive(Clone, Copy)]
struct Classes {
    few: u64,
    many: u64,
}

/// About how many states a match of a pattern may be in. `None` if a match may go back: then nothing is known.
///
/// What it does not know it takes for something that may go back.
pub(super) fn states(pattern: &str) -> Option<u64> {
    count(pattern, WALKED)
}

/// About how many states are compiled of it.
pub(super) fn size(pattern: &str) -> Option<u64> {
    count(pattern, COMPILED)
}

fn count(pattern: &str, classes: Classes) -> Option<u64> {
    let mut characters = pattern.chars().peekable();
    // For each open group what stands in it before its last part; the last part can still be repeated.
    let mut groups = vec![0_u64];
    let (mut last, mut sum) = (0_u64, 0_u64);
    let mut repeated = false;
    while let Some(character) = characters.next() {
        let repeats = matches!(character, '*' | '+' | '?' | '{');
        if repeats && repeated {
            // `a*?` is lazy; `a*+` never goes back, which only an engine that can do so knows.
            if character != '?' {
                return None;
            }
            repeated = false;
            continue;
        }
        repeated = repeats;
        match character {
            '(' => {
                if characters.next_if_eq(&'?').is_some() && characters.next() != Some(':') {
                    return None;
                }
                groups.push(sum.saturating_add(last));
                (last, sum) = (0, 0);
            }
            ')' => {
                let within = sum.saturating_add(last);
                sum = groups.pop().filter(|_| !groups.is_empty())?;
                last = within.saturating_add(2);
            }
            '*' | '+' | '?' => last = last.saturating_add(1),
            '{' => last = last.saturating_mul(times(&mut characters)?),
            _ => {
                sum = sum.saturating_add(last);
                last = match character {
                    '[' => class(&mut characters, classes)?,
                    '\\' => escape(&mut characters, classes)?,
                    '.' => WALKED.few,
                    _ => 1,
                };
            }
        }
    }
    (groups.len() == 1).then(|| sum.saturating_add(last).saturating_add(1))
}

/// The largest number between the braces.
fn times(characters: &mut impl Iterator<Item = char>) -> Option<u64> {
    let (mut most, mut number) = (1_u64, 0_u64);
    for character in characters {
        match character {
            '0'..='9' => {
                let digit = u64::from(character) - u64::from('0');
                number = number.saturating_mul(10).saturating_add(digit);
                most = most.max(number);
            }
            ',' => number = 0,
            // With no number after the comma there is a loop at the end.
            '}' => return Some(most.saturating_add(1)),
            _ => return None,
        }
    }
    None
}

fn class(characters: &mut Peekable<impl Iterator<Item = char>>, classes: Classes) -> Option<u64> {
    let (mut states, mut is_first) = (1_u64, true);
    while let Some(character) = characters.next() {
        match character {
            ']' if !is_first => return Some(states),
            '\\' => states = states.saturating_add(escape(characters, classes)?),
            '^' if is_first => {
                states = states.saturating_add(WALKED.few);
                continue;
            }
            // A class in a class, or an operator between two.
            '[' | '&' | '~' => return None,
            _ => states = states.saturating_add(u64::from(!character.is_ascii())),
        }
        is_first = false;
    }
    None
}

fn escape(characters: &mut Peekable<impl Iterator<Item = char>>, classes: Classes) -> Option<u64> {
    match characters.next()? {
        'p' | 'P' => {
            if characters.next_if_eq(&'{').is_some() {
                characters.find(|character| *character == '}')?;
            }
            Some(classes.many)
        }
        'w' | 'W' => Some(classes.many),
        'd' | 'D' | 's' | 'S' => Some(classes.few),
        'n' | 'r' | 't' | 'f' | 'v' | 'b' | 'B' | '0' | 'x' | 'u' => Some(1),
        character if character.is_ascii_alphanumeric() => None,
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_states_of_common_patterns_are_few() {
        for pattern in [
            "^[a-z]+$",
            "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
            r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$",
            r"^\p{L}+[\p{N}_]$",
            r"^[^@\s]+@[^@\s]+\.[a-z]{2,}?$",
            "",
        ] {
            assert!(
                states(pattern).is_some_and(|states| states < 300),
                "{pattern}: {:?}",
                states(pattern)
            );
        }
    }

    #[test]
    fn classes_of_letters_are_large_to_compile() {
        assert!(size(r"^\p{L}{20}$").is_some_and(|size| size > 8_000));
        assert!(size(r"^\d{4}-\d{2}$").is_some_and(|size| size < 1_000));
        assert!(size("^[a-z]{20}$").is_some_and(|size| size < 50));
    }

    #[test]
    fn repetitions_in_repetitions_multiply() {
        assert!(states(r"((\w{50}){50}){50}").is_some_and(|states| states > 1_000_000));
        assert!(states("(a{99}){99}").is_some_and(|states| states > 9_000));
        assert!(states("a{99}b{99}").is_some_and(|states| states < 300));
        assert_eq!(states("a{99999999999999999999999}"), Some(u64::MAX));
    }

    #[test]
    fn what_may_go_back_is_known() {
        for pattern in [
            "^(?=.*[A-Z])",
            "(?!a)",
            "(?<=a)b",
            "(?<!a)b",
            "(?>a)",
            "(?P<a>b)",
            r"(a)\1",
            r"\k<a>",
            "a*+",
            "a++",
            "a?+",
            "a{2}+",
            r"\Ga",
            r"\Ka",
            "(",
            ")",
            "a{x}",
            "[a",
            "[a&&b]",
            "a\\",
        ] {
            assert_eq!(states(pattern), None, "{pattern}");
        }
    }
}
