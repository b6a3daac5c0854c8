//! What is served to clients: the tools of all plugins, checked, under their names.
//!
//! One immutable value for each generation of the runtime's snapshot. What is wrong with one tool leaves out that tool, with a
//! line in the log; the others are served. It must not know of requests.
//!
//! - `cursor`: places in a list.
//! - `header`: arguments that are mirrored into headers.
//! - `tool`: one tool.

pub(crate) mod cursor;
mod header;
mod tool;

use crate::config::Config;
use longshore_runtime::{Plugin, Snapshot};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use tool::CatalogueTool;

/// What is served.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    /// By name. The order is that of `tools/list`.
    tools: BTreeMap<String, Arc<CatalogueTool>>,
    /// All tools of each plugin that can be served, also those whose name another plugin has taken.
    plugins: BTreeMap<String, PluginTools>,
}

#[derive(Clone, Debug)]
struct PluginTools {
    plugin: Arc<Plugin>,
    tools: Vec<Arc<CatalogueTool>>,
    /// What was left out, and why.
    left_out: Vec<LeftOut>,
}

/// A tool that is not served.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LeftOut {
    /// Its name.
    pub(crate) tool: String,
    /// Why, and what to do.
    pub(crate) reason: String,
}

impl Catalogue {
    /// The catalogue of a snapshot. What did not change is taken over from the one before. Compiling the schemas of strangers
    /// takes a while: not for a thread that serves requests.
    pub(crate) fn build(snapshot: &Snapshot, config: &Config, former: &Self) -> Self {
        let unchanged = |plugin: &Arc<Plugin>| {
            let former = former.plugins.get(&plugin.name)?;
            Arc::ptr_eq(&former.plugin, plugin).then(|| former.clone())
        };
        let mut catalogue = Self::default();
        // In the order of their names: of two tools with one name the plugin with the first name wins.
        for plugin in snapshot.plugins.values() {
            let tools = unchanged(plugin).unwrap_or_else(|| PluginTools::build(plugin, config));
            for tool in &tools.tools {
                catalogue.offer(tool);
            }
            catalogue.plugins.insert(plugin.name.clone(), tools);
        }
        catalogue
    }

    fn offer(&mut self, tool: &Arc<CatalogueTool>) {
        match self.tools.get(tool.name()) {
            None => {
                self.tools.insert(tool.name().to_owned(), tool.clone());
            }
            Some(winner) => tracing::warn!(
                tool = tool.name(),
                plugin = %tool.plugin().name,
                serves = %winner.plugin().name,
                "a tool is left out: another plugin has one of that name"
            ),
        }
    }

    /// A tool by name.
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<CatalogueTool>> {
        self.tools.get(name)
    }

    /// How many tools of a plugin can be served, and which cannot.
    pub(crate) fn of_plugin(&self, plugin: &str) -> (usize, &[LeftOut]) {
        match self.plugins.get(plugin) {
            Some(plugin) => (plugin.tools.len(), &plugin.left_out),
            None => (0, &[]),
        }
    }

    /// At most `max` tools behind the one named, in order, and whether there are more.
    pub(crate) fn page(&self, after: Option<&str>, max: usize) -> (Vec<&Arc<CatalogueTool>>, bool) {
        use std::ops::Bound;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = self
            .tools
            .range::<str, _>((from, Bound::Unbounded))
            .map(|(_, tool)| tool);
        let page = rest.by_ref().take(max).collect();
        (page, rest.next().is_some())
    }
}

/// What is wrong with the tools of one plugin, each of which would be left out.
pub(crate) fn left_out(plugin: &Arc<Plugin>, config: &Config) -> Vec<LeftOut> {
    PluginTools::build(plugin, config).left_out
}

impl PluginTools {
    fn build(plugin: &Arc<Plugin>, config: &Config) -> Self {
        let (mut tools, mut left_out) = (Vec::<Arc<CatalogueTool>>::new(), Vec::new());
        for (index, tool) in plugin.tools.iter().enumerate() {
            let support = config.task_support(&plugin.name, &tool.name);
            let built = if tools.iter().any(|other| other.name() == tool.name) {
                Err("the plugin has two tools of this name".to_owned())
            } else {
                CatalogueTool::build(plugin, index, support)
            };
            match built {
                Ok(tool) => tools.push(Arc::new(tool)),
                Err(reason) => {
                    let name = &tool.name;
                    tracing::warn!(tool = name, plugin = %plugin.name, reason, "a tool is left out");
                    left_out.push(LeftOut {
                        tool: name.clone(),
                        reason,
                    });
                }
            }
        }
        Self {
            plugin: plugin.clone(),
            tools,
            left_out,
        }
    }
}
