//! `longshore plugin inspect` and `check`: files, looked at as the server would.

use crate::admin::plain_text;
use crate::app::runtime_settings;
use crate::catalogue::Offer;
use crate::config::{Config, Flags};
use crate::reach::{grants, reach};
use anyhow::Context as _;
use longshore_runtime::contract::{TaskSupport, Tool};
use longshore_runtime::{Inspection, Limits, Plugin, Runtime};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a plugin is, as text or JSON.
///
/// # Errors
/// If it is no component that compiles.
pub(crate) async fn inspect(
    file: &Path,
    config: Option<&Path>,
    as_json: bool,
) -> anyhow::Result<String> {
    let bench = Bench::new(config)?;
    let named = || shown(file);
    let inspection = bench.runtime.inspect_file(file).await.with_context(named)?;
    // A component that is no plugin still has imports and exports to be seen.
    let plugin = bench.runtime.check_file(file).await;
    if as_json {
        let mut told = json!({
            "version": inspection.version,
            "component_bytes": inspection.component_bytes,
            "imports": inspection.imports,
            "exports": inspection.exports,
            "reach": reach(&inspection.imports),
            "wants": inspection.wants,
            "grants": grants(plugin_name(file), inspection.wants).join("\n"),
            "limits": bench.limits_of(file),
        });
        match plugin {
            Ok(plugin) => add_lists(&mut told, &plugin),
            Err(error) => told["problem"] = error.to_string().into(),
        }
        return Ok(serde_json::to_string_pretty(&told)?);
    }
    let mut text = inspection_text(file, &inspection, bench.limits_of(file))?;
    match plugin {
        Ok(plugin) => text.push_str(&lists_text(&plugin)),
        Err(error) => text.push_str(&format!("it cannot be served: {error}")),
    }
    Ok(text)
}

/// Load plugins as the server would. What is said of those that can be served, with the tools that would be left out, and of
/// those that cannot.
///
/// # Errors
/// If there is nothing to try them in.
pub(crate) async fn check(
    files: &[PathBuf],
    config: Option<&Path>,
) -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let bench = Bench::new(config)?;
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for file in files {
        match bench.runtime.check_file(file).await {
            Ok(plugin) => good.push(bench.good_text(file, plugin)),
            Err(reason) => {
                let reason = plain_text(&reason.to_string());
                bad.push(format!("{} cannot be served: {reason}", shown(file)));
            }
        }
    }
    Ok((good, bad))
}

/// A runtime to try files in. What it keeps, it keeps in a folder that goes with it, but for the compile cache of a
/// configuration.
struct Bench {
    runtime: Runtime,
    config: Config,
    _folder: Folder,
}

impl Bench {
    fn new(path: Option<&Path>) -> anyhow::Result<Self> {
        let folder = Folder::new()?;
        let mut config = Config::load(path, Flags::default())?;
        if path.is_none() {
            config.compile_cache_dir = folder.0.join("cache");
        }
        let runtime = Runtime::new(runtime_settings(&config, folder.0.join("components"))?)?;
        Ok(Self {
            runtime,
            config,
            _folder: folder,
        })
    }

    fn good_text(&self, file: &Path, plugin: Plugin) -> String {
        let offer = Offer::build(&Arc::new(plugin), &self.config);
        let counts = offer.counts().into_iter().filter(|(_, count)| *count > 0);
        let counts: Vec<_> = counts
            .map(|(list, count)| format!("{count} {list}"))
            .collect();
        let offered = if counts.is_empty() {
            "though it offers nothing".to_owned()
        } else {
            counts.join(", ")
        };
        let mut text = format!("{}: good, {offered}", shown(file));
        for entry in offer.left_out {
            text.push_str(&format!(
                "\nthe {} {} is left out: {}",
                entry.kind,
                plain_text(&entry.name),
                plain_text(&entry.reason)
            ));
        }
        text
    }

    /// The limits of a run of this file, were it served under its name.
    fn limits_of(&self, file: &Path) -> &Limits {
        let plugin = self.config.plugins.get(plugin_name(file));
        plugin.map_or(&self.config.limits, |plugin| &plugin.limits)
    }
}

/// A folder that is removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Self> {
        let mut unique = [0; 8];
        getrandom::fill(&mut unique)?;
        let path = std::env::temp_dir().join(format!("longshore-{}", hex::encode(unique)));
        longshore_runtime::private_folder(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind is a few files in the system's folder for such.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The name under which a file would be served.
fn plugin_name(file: &Path) -> &str {
    let name = file.file_stem().and_then(|name| name.to_str());
    name.unwrap_or_default()
}

/// The name of a file, for people.
fn shown(file: &Path) -> String {
    plain_text(&file.display().to_string())
}

fn inspection_text(
    file: &Path,
    inspection: &Inspection,
    limits: &Limits,
) -> anyhow::Result<String> {
    let mut text = format!(
        "version {}\nsize    {} bytes\n",
        inspection.version, inspection.component_bytes
    );
    text += &list_text("imports", inspection.imports.iter());
    text += &list_text("exports", inspection.exports.iter());
    let reached = reach(&inspection.imports);
    // A language's runtime imports whatever its library might need.
    text += &list_text("can reach, if it uses what it imports", reached.iter());
    let granted = grants(plugin_name(file), inspection.wants);
    text += &list_text("to grant it all that it could use, write", granted.iter());
    let limits = serde_json::to_value(limits)?;
    let limits = limits.as_object().into_iter().flatten();
    text += &list_text(
        "limits of a run",
        limits.map(|(name, limit)| format!("{name} {limit}")),
    );
    Ok(text)
}

fn lists_text(plugin: &Plugin) -> String {
    let line = |tool: &Tool| {
        let description = tool.description.as_deref().unwrap_or_default();
        // Its line breaks are those of its author's editor.
        let words: Vec<_> = description.split_whitespace().collect();
        format!(
            "{} (task {}): {}",
            tool.name,
            support_name(tool.task_support),
            words.join(" ")
        )
    };
    let mut text = list_text("tools", plugin.tools.iter().map(line));
    let prompts = plugin.prompts.iter();
    text += &list_text("prompts", prompts.map(|prompt| &prompt.name));
    let resources = plugin.resources.iter();
    text += &list_text("resources", resources.map(|entry| &entry.uri));
    let templates = plugin.templates.iter();
    text += &list_text("templates", templates.map(|entry| &entry.uri_template));
    text.trim_end().to_owned()
}

fn list_text(name: &str, lines: impl Iterator<Item = impl AsRef<str>>) -> String {
    let lines: String = lines
        .map(|line| format!("\n  {}", plain_text(line.as_ref())))
        .collect();
    if lines.is_empty() {
        return lines;
    }
    format!("{name}{lines}\n")
}

fn add_lists(told: &mut Value, plugin: &Plugin) {
    told["tools"] = plugin.tools.iter().map(tool_json).collect();
    let prompts = plugin.prompts.iter();
    told["prompts"] = prompts
        .map(|prompt| json!({ "name": prompt.name, "description": prompt.description }))
        .collect();
    let resources = plugin.resources.iter();
    told["resources"] = resources
        .map(|entry| json!({ "uri": entry.uri, "name": entry.name }))
        .collect();
    let templates = plugin.templates.iter();
    told["templates"] = templates
        .map(|entry| json!({ "uri_template": entry.uri_template, "name": entry.name }))
        .collect();
    told["completes"] = plugin.completes.into();
}

fn tool_json(tool: &Tool) -> Value {
    let schema = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "input_schema": schema(&tool.input_schema),
        "output_schema": tool.output_schema.as_deref().map(schema),
        "task_support": support_name(tool.task_support),
        "asks_first": tool.asks_first,
    })
}

fn support_name(support: TaskSupport) -> &'static str {
    match support {
        TaskSupport::Forbidden => "forbidden",
        TaskSupport::Optional => "optional",
        TaskSupport::Required => "required",
    }
}
