//! Cursors: opaque to clients, and to us the name of an entry in one list. A client that goes on gets the rest of the list that
//! it began with, whatever changed since.

use super::shelf::{Kind, Print};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The cursor of the page behind the entry with this key, in the list with this print.
pub(crate) fn behind(list: Kind, print: Print, key: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}{} {key}", mark(list), print.text()))
}

/// Where a cursor stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    print: String,
    /// The key of the last entry that was told.
    pub(crate) key: String,
}

impl Place {
    /// Whether it is one in the list with this print.
    pub(crate) fn is_in(&self, print: Print) -> bool {
        self.print == print.text()
    }
}

/// The place that a cursor means; `None` if it was not made here, or for another kind of list.
pub(crate) fn read(list: Kind, cursor: &str) -> Option<Place> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let place = std::str::from_utf8(&bytes)
        .ok()?
        .strip_prefix(&mark(list))?;
    let (print, key) = place.split_once(' ')?;
    (!key.is_empty()).then(|| Place {
        print: print.to_owned(),
        key: key.to_owned(),
    })
}

/// Says what list a cursor belongs to, and of what make it is.
fn mark(list: Kind) -> String {
    format!("{} 2 ", list.list_member())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_went() {
        for key in ["a.b-c_9", "test://a b/ü"] {
            let cursor = behind(Kind::Resource, Print::default(), key);
            let place = read(Kind::Resource, &cursor).unwrap();
            assert_eq!(place.key, key);
            assert!(place.is_in(Print::default()));
        }
    }

    #[test]
    fn other_texts_are_no_cursors() {
        let foreign = URL_SAFE_NO_PAD.encode("tools 1 a");
        let of_another_list = behind(Kind::Prompt, Print::default(), "a");
        for text in [
            "",
            "0",
            "abc",
            "=?",
            "dG9vbHM",
            &foreign,
            &of_another_list,
            &behind(Kind::Tool, Print::default(), ""),
            &format!("{}=", behind(Kind::Tool, Print::default(), "abc")),
        ] {
            assert_eq!(read(Kind::Tool, text), None, "{text}");
        }
    }
}
