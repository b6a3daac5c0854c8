//! Answers to orders, for people. What plugins say of themselves is written without what would not be seen.

use longshore_runtime::is_unseen;
use serde_json::Value;
use std::fmt::Write as _;

/// Digits of a version that people are shown; enough to tell versions apart.
const SHORT: usize = 12;

/// How the plugins stand.
pub(crate) fn list_text(standing: &Value) -> String {
    let list = |name: &str| standing[name].as_array().map_or(&[][..], Vec::as_slice);
    let mut names: Vec<&str> = ["plugins", "refused", "withheld"]
        .iter()
        .flat_map(|name| list(name))
        .map(name_of)
        .collect();
    names.sort_unstable();
    names.dedup();
    let of =
        |list: &'_ [Value], name: &str| list.iter().find(|entry| name_of(entry) == name).cloned();
    let mut text = String::new();
    for name in names {
        let plugin = of(list("plugins"), name);
        let shown = plain_text(name);
        text.push_str(&plugin_text(&shown, plugin.as_ref()));
        if let Some(refused) = of(list("refused"), name) {
            let reason = plain(&refused["reason"]);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  refused: {reason}");
        }
        if let Some(withheld) = of(list("withheld"), name) {
            text.push_str(&withheld_text(&shown, &withheld));
        }
    }
    if text.is_empty() {
        text.push_str("there is no plugin");
    }
    text.trim_end().to_owned()
}

fn plugin_text(name: &str, plugin: Option<&Value>) -> String {
    let Some(plugin) = plugin else {
        return format!("{name}  not served\n");
    };
    let mut text = format!("{name}  {}", short(&plugin["version"]));
    for list in ["tools", "prompts", "resources", "templates"] {
        if let Some(count) = plugin[list].as_u64().filter(|count| *count > 0) {
            let _ = write!(text, "  {count} {list}");
        }
    }
    text.push('\n');
    for entry in plugin["left_out"].as_array().into_iter().flatten() {
        let (kind, name, reason) = (&entry["kind"], &entry["name"], &entry["reason"]);
        let (kind, name, reason) = (plain(kind), plain(name), plain(reason));
        let _ = writeln!(text, "  left out: the {kind} {name}: {reason}");
    }
    text
}

fn withheld_text(name: &str, withheld: &Value) -> String {
    let version = short(&withheld["version"]);
    if withheld["why"] == "rolled_back" {
        return format!(
            "  withheld: {version}, which is in the file and was rolled back; `longshore plugin approve {name}` serves it\n"
        );
    }
    let mut text = format!(
        "  withheld: {version}, which is in the file and waits for `longshore plugin approve {name}` (--show shows more):\n"
    );
    for change in withheld["changes"].as_array().into_iter().flatten() {
        let _ = writeln!(text, "    {}", plain(&change["what"]));
    }
    text
}

/// The versions of a plugin that were served, the latest first.
pub(crate) fn history_text(history: &Value) -> String {
    let line = |entry: &Value| {
        let serving = if entry["serving"] == true {
            "  serving"
        } else {
            ""
        };
        let (since, by) = (plain(&entry["since"]), plain(&entry["by"]));
        format!(
            "{}  since {since}  by {by}{serving}",
            short(&entry["version"])
        )
    };
    let lines = history.as_array().into_iter().flatten().map(line);
    lines.collect::<Vec<_>>().join("\n")
}

/// What would change if the version of a plugin that is withheld were served. `None`: none is.
pub(crate) fn changes_text(standing: &Value, name: &str) -> Option<String> {
    let withheld = standing["withheld"].as_array()?;
    let withheld = withheld.iter().find(|entry| name_of(entry) == name)?;
    let (name, version) = (plain_text(name), short(&withheld["version"]));
    let mut text = format!("{name}  {version}  is withheld\n");
    let changes = withheld["changes"].as_array()?;
    if changes.is_empty() {
        text.push_str("there are no definitions to compare it with\n");
    }
    for change in changes {
        let _ = writeln!(text, "{}", plain(&change["what"]));
        for (sign, side) in [('-', &change["before"]), ('+', &change["after"])] {
            if !side.is_null() {
                let _ = writeln!(text, "{sign} {}", plain(side));
            }
        }
    }
    Some(text.trim_end().to_owned())
}

fn name_of(entry: &Value) -> &str {
    entry["name"].as_str().unwrap_or_default()
}

fn short(version: &Value) -> &str {
    let version = version.as_str().unwrap_or("-");
    version.get(..SHORT).unwrap_or(version)
}

/// A terminal must not take what a stranger wrote for its own.
fn plain(value: &Value) -> String {
    match value.as_str() {
        Some(text) => plain_text(text),
        None => plain_text(&value.to_string()),
    }
}

/// The same of a text.
pub(crate) fn plain_text(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' => "\\n".to_owned(),
        unseen if is_unseen(unseen) => unseen.escape_default().to_string(),
        other => other.to_string(),
    };
    text.chars().map(shown).collect()
}
