//! What one plugin offers: its entries, checked one by one.

use super::prompt::CataloguePrompt;
use super::resource::{CatalogueResource, CatalogueTemplate};
use super::shelf::{Entry, Kind};
use super::tool::CatalogueTool;
use crate::config::Config;
use crate::schema::Allowance;
use longshore_runtime::Plugin;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a plugin offers.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub(super) plugin: Arc<Plugin>,
    pub(super) tools: Vec<Arc<CatalogueTool>>,
    pub(super) prompts: Vec<Arc<CataloguePrompt>>,
    pub(super) resources: Vec<Arc<CatalogueResource>>,
    pub(super) templates: Vec<Arc<CatalogueTemplate>>,
    /// What is wrong with its other entries.
    pub(crate) left_out: Vec<LeftOut>,
}

/// How many entries of each list, by its name.
pub(crate) type Counts = [(&'static str, usize); 4];

/// An entry that is not served.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LeftOut {
    /// What it is: a tool, for instance.
    pub(crate) kind: &'static str,
    /// Its name or URI.
    pub(crate) name: String,
    /// Why, and what to do.
    pub(crate) reason: String,
}

impl Offer {
    /// Check all entries of a plugin.
    pub(crate) fn build(plugin: &Arc<Plugin>, config: &Config) -> Self {
        let mut offer = Self {
            plugin: plugin.clone(),
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            left_out: Vec::new(),
        };
        let mut allowance = Allowance::default();
        let tools = plugin.tools.iter().enumerate().map(|(index, tool)| {
            let built = CatalogueTool::build(plugin, index, config, &mut allowance);
            (&tool.name, built)
        });
        offer.tools = offer.sort_out(tools);
        let prompts = plugin.prompts.iter();
        let prefix = config.prefix(&plugin.name);
        let prompts = prompts.map(|prompt| {
            let built = CataloguePrompt::build(plugin, prompt, prefix);
            (&prompt.name, built)
        });
        offer.prompts = offer.sort_out(prompts);
        let resources = plugin.resources.iter();
        let resources =
            resources.map(|entry| (&entry.uri, CatalogueResource::build(plugin, entry)));
        offer.resources = offer.sort_out(resources);
        let templates = plugin.templates.iter();
        let templates = templates.map(|template| {
            let built = CatalogueTemplate::build(plugin, template);
            (&template.uri_template, built)
        });
        offer.templates = offer.sort_out(templates);
        offer
    }

    /// How many entries of each list are right.
    pub(crate) fn counts(&self) -> Counts {
        [
            ("tools", self.tools.len()),
            ("prompts", self.prompts.len()),
            ("resources", self.resources.len()),
            ("templates", self.templates.len()),
        ]
    }

    /// Keep what is right, and say of the rest why it is not. Of two with one name the first is kept.
    fn sort_out<'a, E: Entry>(
        &mut self,
        entries: impl Iterator<Item = (&'a String, Result<E, String>)>,
    ) -> Vec<Arc<E>> {
        let (mut kept, mut names) = (Vec::new(), BTreeSet::new());
        for (name, built) in entries {
            let built = built.and_then(|entry| {
                if names.insert(name) {
                    Ok(entry)
                } else {
                    Err("the plugin has two of this name".to_owned())
                }
            });
            match built {
                Ok(entry) => kept.push(Arc::new(entry)),
                Err(reason) => self.leave_out(E::KIND, name, reason),
            }
        }
        kept
    }

    fn leave_out(&mut self, kind: Kind, name: &str, reason: String) {
        let kind = kind.name();
        tracing::warn!(name, plugin = %self.plugin.name, reason, "a {kind} is left out");
        self.left_out.push(LeftOut {
            kind,
            name: name.to_owned(),
            reason,
        });
    }
}
