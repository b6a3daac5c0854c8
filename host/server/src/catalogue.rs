//! What is served to clients: the tools, prompts and resources of all plugins, checked, under their names.
//!
//! One immutable value for each generation of the runtime's snapshot. What is wrong with one entry leaves out that entry, with
//! a line in the log; the others are served. It must not know of requests.
//!
//! - `collision`: two entries of one name.
//! - `cursor`: places in a list.
//! - `header`: arguments that are mirrored into headers.
//! - `offer`: what one plugin offers.
//! - `prompt`, `resource`, `tool`: one entry each.
//! - `served`: the catalogue that is served, and those before it.
//! - `shelf`: entries of one kind.

mod collision;
pub(crate) mod cursor;
pub(crate) mod header;
mod offer;
mod prompt;
mod resource;
mod served;
mod shelf;
mod tool;

use crate::config::Config;
use crate::wire::check;
use collision::Collision;
use longshore_runtime::{Plugin, Snapshot, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

pub(crate) use offer::{Counts, LeftOut, Offer};
pub(crate) use prompt::CataloguePrompt;
pub(crate) use resource::{CatalogueResource, CatalogueTemplate};
pub(crate) use served::Served;
pub(crate) use shelf::{Entry, Kind, Shelf};
pub(crate) use tool::{CatalogueTool, is_name};

/// What is served.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    /// By name.
    pub(crate) tools: Shelf<CatalogueTool>,
    /// By name.
    pub(crate) prompts: Shelf<CataloguePrompt>,
    /// By URI.
    pub(crate) resources: Shelf<CatalogueResource>,
    /// By URI template.
    pub(crate) templates: Shelf<CatalogueTemplate>,
    /// Whether some plugin suggests values for arguments.
    completes: bool,
    /// Whether all that lay in the directory at the start is in it, or refused.
    pub(crate) settled: bool,
    /// All that each plugin offers, also under names that another plugin has taken.
    plugins: BTreeMap<String, Offer>,
    /// What is left out for that.
    collisions: BTreeSet<Collision>,
    /// What a client is told first.
    greeting: OnceLock<String>,
}

impl Catalogue {
    /// The answer to `server/discover`, made once.
    pub(crate) fn greeting(&self, make: impl FnOnce() -> String) -> String {
        self.greeting.get_or_init(make).clone()
    }

    /// The catalogue of a snapshot. What did not change is taken over from the one before. Compiling the schemas of strangers
    /// takes a while: not for a thread that serves requests.
    pub(crate) fn build(snapshot: &Snapshot, config: &Config, former: &Self) -> Self {
        let unchanged = |plugin: &Arc<Plugin>| {
            let former = former.plugins.get(&plugin.name)?;
            Arc::ptr_eq(&former.plugin, plugin).then(|| former.clone())
        };
        let mut catalogue = Self {
            settled: snapshot.settled,
            ..Self::default()
        };
        // In the order of their names: of two entries with one name the plugin with the first name wins.
        for plugin in snapshot.plugins.values() {
            let offer = unchanged(plugin).unwrap_or_else(|| Offer::build(plugin, config));
            let lost = &mut catalogue.collisions;
            lost.extend(catalogue.tools.put(&offer.tools));
            lost.extend(catalogue.prompts.put(&offer.prompts));
            lost.extend(catalogue.resources.put(&offer.resources));
            lost.extend(catalogue.templates.put(&offer.templates));
            catalogue.completes |= plugin.completes;
            catalogue.plugins.insert(plugin.name.clone(), offer);
        }
        collision::tell(&catalogue.collisions, &former.collisions);
        catalogue.tools.seal();
        catalogue.prompts.seal();
        catalogue.resources.seal();
        catalogue.templates.seal();
        catalogue
    }

    /// Whether it has this version of a plugin.
    pub(crate) fn has(&self, plugin: &str, version: &Version) -> bool {
        let offer = self.plugins.get(plugin);
        offer.is_some_and(|offer| offer.plugin.version == *version)
    }

    /// Whether there are prompts, or may be once the first look is over: a client asks once what there is, and not again for
    /// what was not there.
    pub(crate) fn offers_prompts(&self) -> bool {
        !self.settled || !self.prompts.is_empty()
    }

    /// The same for resources, listed or by template.
    pub(crate) fn offers_resources(&self) -> bool {
        !self.settled || !self.resources.is_empty() || !self.templates.is_empty()
    }

    /// The same for suggestions of values.
    pub(crate) fn offers_completions(&self) -> bool {
        !self.settled || self.completes
    }

    /// The plugin that serves a URI: the one that lists it, else the first whose template it fits.
    pub(crate) fn plugin_of_uri(&self, uri: &str) -> Option<&Arc<Plugin>> {
        let listed = self.resources.get(uri).map(|resource| resource.plugin());
        listed.or_else(|| Some(self.template_of_uri(uri)?.plugin()))
    }

    /// The first template that a URI fits. Variables sort behind letters, so the more definite one is first. What is no URI fits
    /// none: a template is for what it expands to.
    pub(crate) fn template_of_uri(&self, uri: &str) -> Option<&Arc<CatalogueTemplate>> {
        check::uri(uri).ok()?;
        self.templates.iter().find(|template| template.fits(uri))
    }

    /// What a plugin serves: how many entries of each list, and what is left out, by itself or because another plugin has one
    /// of that name.
    pub(crate) fn of_plugin(&self, plugin: &str) -> Option<(Counts, Vec<LeftOut>)> {
        let offer = self.plugins.get(plugin)?;
        let taken = [
            self.tools.taken(&offer.tools),
            self.prompts.taken(&offer.prompts),
            self.resources.taken(&offer.resources),
            self.templates.taken(&offer.templates),
        ];
        let mut counts = offer.counts();
        for ((_, count), taken) in counts.iter_mut().zip(&taken) {
            *count -= taken.len();
        }
        let left_out = offer.left_out.iter().cloned();
        Some((
            counts,
            left_out.chain(taken.into_iter().flatten()).collect(),
        ))
    }
}
