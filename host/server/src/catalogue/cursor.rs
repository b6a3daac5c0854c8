//! Cursors: opaque to clients, and a name to us. A cursor says "behind this name", so it stays good when the list changes.

use super::shelf::Kind;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The cursor of the page behind the entry with this key.
pub(crate) fn behind(list: Kind, key: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}{key}", mark(list)))
}

/// The key in a cursor; `None` if it was not made here, or for another list.
pub(crate) fn read(list: Kind, cursor: &str) -> Option<String> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let key = std::str::from_utf8(&bytes)
        .ok()?
        .strip_prefix(&mark(list))?;
    (!key.is_empty()).then(|| key.to_owned())
}

/// Says what list a cursor belongs to, and of what make it is.
fn mark(list: Kind) -> String {
    format!("{} 1 ", list.list_member())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_went() {
        for key in ["a.b-c_9", "test://a b/ü"] {
            let cursor = behind(Kind::Resource, key);
            assert_eq!(read(Kind::Resource, &cursor).as_deref(), Some(key));
        }
    }

    #[test]
    fn other_texts_are_no_cursors() {
        let foreign = URL_SAFE_NO_PAD.encode("tools 2 a");
        let of_another_list = behind(Kind::Prompt, "a");
        for text in [
            "",
            "0",
            "abc",
            "=?",
            "dG9vbHM",
            &foreign,
            &of_another_list,
            &behind(Kind::Tool, ""),
            &format!("{}=", behind(Kind::Tool, "abc")),
        ] {
            assert_eq!(read(Kind::Tool, text), None, "{text}");
        }
    }
}
