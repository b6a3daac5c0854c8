//! URI templates, read backwards: from a URI to the values of the variables.
//!
//! Of RFC 6570 it knows `{name}` and `{+name}`, which is what can be read backwards without doubt.

/// A template in pieces.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pattern(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Variable { name: String, over_slashes: bool },
}

impl Pattern {
    /// Reads a template; the error says what is wrong with it.
    pub(crate) fn parse(template: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = template;
        while let Some((text, after)) = rest.split_once('{') {
            if !text.is_empty() {
                pieces.push(Piece::Text(text.into()));
            }
            let (expression, after) = after
                .split_once('}')
                .ok_or_else(|| format!("a brace is open before `{after}`"))?;
            pieces.push(variable(expression)?);
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.into()));
        }
        Ok(Self(pieces))
    }

    /// The variables of a URI, by name, decoded. `None`: it does not fit.
    pub(crate) fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        let mut found = Vec::new();
        match_pieces(&self.0, uri, &mut found).then_some(found)
    }
}

fn variable(expression: &str) -> Result<Piece, String> {
    let name = expression.strip_prefix('+').unwrap_or(expression);
    let allowed = |character: char| character.is_ascii_alphanumeric() || character == '_';
    if name.is_empty() || !name.chars().all(allowed) {
        return Err(format!(
            "`{{{expression}}}` is neither {{name}} nor {{+name}}"
        ));
    }
    Ok(Piece::Variable {
        name: name.into(),
        over_slashes: expression.starts_with('+'),
    })
}

/// The shortest value of each variable with which the rest fits.
fn match_pieces(pieces: &[Piece], uri: &str, found: &mut Vec<(String, String)>) -> bool {
    let Some((piece, later)) = pieces.split_first() else {
        return uri.is_empty();
    };
    match piece {
        Piece::Text(text) => uri
            .strip_prefix(text.as_str())
            .is_some_and(|rest| match_pieces(later, rest, found)),
        Piece::Variable { name, over_slashes } => {
            let end = match uri.find(['/', '?', '#']) {
                Some(end) if !over_slashes => end,
                _ => uri.len(),
            };
            let ends = uri[..end].char_indices().map(|(at, c)| at + c.len_utf8());
            for end in ends {
                let before = found.len();
                let Some(value) = decoded(&uri[..end]) else {
                    continue;
                };
                found.push((name.clone(), value));
                if match_pieces(later, &uri[end..], found) {
                    return true;
                }
                found.truncate(before);
            }
            false
        }
    }
}

/// Takes percent-encoding out. `None`: it is broken, or what it says is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        Pattern::parse(template).unwrap().matches(uri)
    }

    fn pairs(pairs: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        let owned = |(name, value): &(&str, &str)| ((*name).into(), (*value).into());
        Some(pairs.iter().map(owned).collect())
    }

    #[test]
    fn variables_are_found_and_decoded() {
        let template = "notes://{year}/{month}.md";
        assert_eq!(
            matched(template, "notes://2026/a%20b.md"),
            pairs(&[("year", "2026"), ("month", "a b")])
        );
        assert_eq!(
            matched(template, "notes://2026/a.md.md"),
            pairs(&[("year", "2026"), ("month", "a.md")])
        );
        for wrong in [
            "notes://2026/",
            "notes:///x.md",
            "notes://1/2/3.md",
            "notes://1/%zz.md",
        ] {
            assert_eq!(matched(template, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_plus_reaches_over_slashes() {
        assert_eq!(matched("f:{+path}", "f:a/b"), pairs(&[("path", "a/b")]));
        assert_eq!(matched("f:{path}", "f:a/b"), None);
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for wrong in ["a{b", "a{}", "a{b,c}", "a{?q}", "a{b*}"] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
