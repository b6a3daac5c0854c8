//! Cursors: opaque to clients, and a name to us. A cursor says "behind this name", so it stays good when the list changes.

use super::tool::is_name;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Says what list a cursor belongs to, and of what make it is.
const TOOLS: &str = "tools 1 ";

/// The cursor of the page behind the tool named.
pub(crate) fn behind(name: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{TOOLS}{name}"))
}

/// The name in a cursor; `None` if it was not made here.
pub(crate) fn read(cursor: &str) -> Option<String> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let name = std::str::from_utf8(&bytes).ok()?.strip_prefix(TOOLS)?;
    is_name(name).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_went() {
        assert_eq!(read(&behind("a.b-c_9")).as_deref(), Some("a.b-c_9"));
    }

    #[test]
    fn other_texts_are_no_cursors() {
        let foreign = URL_SAFE_NO_PAD.encode("tools 2 a");
        let bad_name = behind("a b");
        for text in [
            "",
            "0",
            "abc",
            "=?",
            "dG9vbHM",
            &foreign,
            &bad_name,
            &format!("{}=", behind("abc")),
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
