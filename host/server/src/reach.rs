//! What a component imports, in plain words, what that is worth where nothing is granted, and what would grant it.
//!
//! It goes by names alone: how the runtime serves an interface is not known here.

use longshore_runtime::{Wants, key_of};

/// The start of an interface's name, and what it lets a plugin do. What only carries others (types, streams, polls) has no
/// line of its own.
const WORDS: [(&str, &str); 16] = [
    (
        "longshore:plugin/task@",
        "the call it serves: progress, questions, its result",
    ),
    (
        "longshore:plugin/log@",
        "the log, and the client's if it asks for it",
    ),
    (
        "longshore:plugin/notify@",
        "clients, to be told that something has changed",
    ),
    ("wasi:clocks/", "clocks and waits"),
    ("wasi:random/", "random numbers"),
    (
        "wasi:cli/stdout@",
        "standard output and error, which go to the log",
    ),
    (
        "wasi:cli/stderr@",
        "standard output and error, which go to the log",
    ),
    ("wasi:cli/stdin@", "standard input, which is empty"),
    ("wasi:cli/exit@", "its own end"),
    (
        "wasi:cli/environment@",
        "environment variables: none, unless they are granted",
    ),
    (
        "wasi:filesystem/",
        "files: none, unless folders are granted",
    ),
    (
        "wasi:http/",
        "HTTP requests: none, unless hosts are granted",
    ),
    (
        "wasi:sockets/",
        "sockets: none; every connection is refused",
    ),
    ("wasi:cli/terminal-", ""),
    ("wasi:io/", ""),
    ("longshore:plugin/types@", ""),
];

/// A line for each thing that these imports let a plugin reach, once. An import that nobody here knows stands by its name.
pub(crate) fn reach(imports: &[String]) -> Vec<&str> {
    let imported = |start: &str| imports.iter().any(|import| import.starts_with(start));
    let mut lines: Vec<&str> = Vec::new();
    for (_, words) in WORDS.iter().filter(|(start, _)| imported(start)) {
        if !words.is_empty() && !lines.contains(words) {
            lines.push(words);
        }
    }
    let known = |import: &str| WORDS.iter().any(|(start, _)| import.starts_with(start));
    lines.extend(
        imports
            .iter()
            .map(String::as_str)
            .filter(|import| !known(import)),
    );
    lines
}

/// What an operator would write to grant all that a component could use; no line if it could use nothing.
pub(crate) fn grants(plugin: &str, wants: Wants) -> Vec<String> {
    let folder = "host = \"/some/folder\", guest = \"/some/folder\"";
    let mut lines = Vec::new();
    if wants.changed_files {
        lines.push(format!("directories = [{{ {folder}, write = true }}]"));
    } else if wants.files {
        lines.push(format!("directories = [{{ {folder} }}]"));
    }
    if wants.environment {
        lines.push("environment = [\"SOME_VARIABLE\"]".to_owned());
        lines.push("settings = { SOME_SETTING = \"value\" }".to_owned());
        lines.push("secrets = { SOME_SECRET = { file = \"/some/file\" } }".to_owned());
    }
    if wants.hosts {
        lines.push("hosts = [\"https://some.host\"]".to_owned());
    }
    if wants.answers {
        // As it is without a word; here to be made less.
        lines.push("ask = [\"elicitation\", \"sampling\", \"roots\"]".to_owned());
    }
    if !lines.is_empty() {
        lines.insert(0, format!("[plugins.{}.grants]", key_of(plugin)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_granted_is_a_configuration() {
        let all = Wants {
            files: true,
            changed_files: true,
            environment: true,
            hosts: true,
            answers: true,
        };
        for plugin in ["a", "a b\n\u{7f}\"", ""] {
            let lines = grants(plugin, all).join("\n");
            let table: toml::Table = lines.parse().unwrap();
            let granted = &table["plugins"][plugin]["grants"];
            assert_eq!(granted["directories"][0]["write"], true.into());
            assert_eq!(granted.as_table().unwrap().len(), 6);
        }
        let files = Wants {
            files: true,
            ..Wants::default()
        };
        assert_eq!(grants("a", files).len(), 2);
        assert!(grants("a", Wants::default()).is_empty());
    }

    #[test]
    fn each_thing_is_told_once_and_the_unknown_by_its_name() {
        let imports = [
            "longshore:plugin/types@0.1.0",
            "wasi:clocks/monotonic-clock@0.2.10",
            "wasi:clocks/wall-clock@0.2.6",
            "wasi:io/poll@0.2.10",
            "wasi:filesystem/types@0.2.10",
            "acme:rocket/launch@1.0.0",
        ];
        assert_eq!(
            reach(&imports.map(str::to_owned)),
            [
                "clocks and waits",
                "files: none, unless folders are granted",
                "acme:rocket/launch@1.0.0"
            ]
        );
    }
}
