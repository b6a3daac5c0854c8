//! Owns what a bench has found: ratios and figures by name, as text and as JSON.
//!
//! Must not know how anything was measured. A name says what is meant and in which unit.

use std::fmt;

use serde_json::{Map, Value, json};

/// What was found. Both parts keep the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// One thing against another of the same run; without a unit.
    ratios: Map<String, Value>,
    /// Measured as such: names end with the unit (`_us`, `_ms`, `_bytes`, `_per_s`, `_count`).
    figures: Map<String, Value>,
}

impl Report {
    /// Add one thing against another.
    pub(crate) fn ratio(&mut self, name: &str, value: f64) {
        self.ratios.insert(name.to_owned(), rounded(value));
    }

    /// Add a figure; its name ends with its unit.
    pub(crate) fn figure(&mut self, name: &str, value: f64) {
        self.figures.insert(name.to_owned(), rounded(value));
    }

    /// A figure, if it was measured.
    pub(crate) fn find(&self, name: &str) -> Option<f64> {
        self.figures.get(name)?.as_f64()
    }

    /// Add what another part has found.
    pub(crate) fn extend(&mut self, other: Self) {
        self.ratios.extend(other.ratios);
        self.figures.extend(other.figures);
    }

    /// As an object with the objects `ratios` and `figures`.
    pub(crate) fn json(&self) -> Value {
        json!({ "ratios": self.ratios, "figures": self.figures })
    }
}

/// To four digits: the rest is noise.
fn rounded(value: f64) -> Value {
    // By way of text: what is computed would have digits of its own again.
    let text = format!("{value:.3e}");
    json!(
        text.parse()
            .ok()
            .filter(|value: &f64| value.is_finite())
            .unwrap_or(0.0)
    )
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, entries) in [("ratios", &self.ratios), ("figures", &self.figures)] {
            if !entries.is_empty() {
                writeln!(f, "{title}")?;
            }
            for (name, value) in entries {
                writeln!(f, "  {name:<48} {value:>12}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_four_digits_and_their_order() {
        let mut report = Report::default();
        report.figure("z_us", 12.345_678);
        report.figure("a_bytes", 130_899_999.9);
        report.ratio("of_nothing", f64::NAN);
        let expected =
            r#"{"ratios":{"of_nothing":0.0},"figures":{"z_us":12.35,"a_bytes":130900000.0}}"#;
        assert_eq!(report.json().to_string(), expected);
    }
}
