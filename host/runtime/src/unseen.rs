//! Characters that are not seen but do something: to a terminal, to the order of what stands around them, or to a line of a log.
//!
//! Who shows what a stranger wrote escapes them, each in the way of its place.

/// Whether a character is one of those: a control character, or one of Unicode's that steer or hide text (categories Cf, Zl and
/// Zp). Marks that belong to letters are seen.
pub fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_or_hides_is_told_from_what_is_seen() {
        for unseen in [
            '\0', '\n', '\u{1b}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}',
        ] {
            assert!(is_unseen(unseen), "{unseen:?}");
        }
        for seen in ['a', ' ', '"', '\\', 'é', '\u{301}', '世', '🦀'] {
            assert!(!is_unseen(seen), "{seen:?}");
        }
    }
}
