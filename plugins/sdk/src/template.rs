//! A family of resources: a URI template, and a function that reads one of them.

use crate::contract::longshore::plugin::types::ResourceContents;
use crate::contract::resources::exports::longshore::plugin::resources as contract;
use crate::error::Kind;
use crate::resource::{Document, Resource};
use crate::uri::Pattern;
use crate::{Annotations, Error, Icon, Result, RpcError, values};
use contract::ReadOutcome;
use serde::de::DeserializeOwned;
use std::fmt;

/// A family of resources by the name of `name`, read by `handler`.
///
/// The argument of `handler` is a struct with a field for each variable. A variable is `{name}`, which matches within one
/// segment of a path, or `{+name}`, which matches over `/` too. What does not fit the fields' types is not found.
///
/// # Panics
/// If it is no such template; it shows when the plugin is loaded.
pub fn template<V, D, H>(uri_template: &str, name: &str, handler: H) -> Template
where
    V: DeserializeOwned,
    D: Document,
    H: Fn(V) -> D + 'static,
{
    let pattern = Pattern::parse(uri_template)
        .unwrap_or_else(|wrong| panic!("the template `{uri_template}` cannot be used: {wrong}"));
    Template {
        entry: contract::ResourceTemplate {
            uri_template: uri_template.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            icons: Vec::new(),
            annotations: None,
            meta: None,
        },
        pattern,
        read: Box::new(move |variables, uri, mime_type| {
            let variables = values::read(variables).ok()?;
            Some(handler(variables).contents(uri, mime_type))
        }),
    }
}

/// Reads a resource of the family, by its variables, its URI and the family's media type. `None`: the variables do not fit.
type Read =
    Box<dyn Fn(&[(String, String)], &str, Option<&str>) -> Option<Result<Vec<ResourceContents>>>>;

/// A family of resources. Made by [`template`].
pub struct Template {
    entry: contract::ResourceTemplate,
    pattern: Pattern,
    read: Read,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template")
            .field("uri_template", &self.entry.uri_template)
            .finish_non_exhaustive()
    }
}

impl Template {
    /// A name for a person.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.entry.title = Some(title.into());
        self
    }

    /// What is in the family.
    #[must_use]
    pub fn description(mut self, text: &str) -> Self {
        self.entry.description = Some(text.into());
        self
    }

    /// The media type, if all of the family have the same.
    #[must_use]
    pub fn mime_type(mut self, mime_type: &str) -> Self {
        self.entry.mime_type = Some(mime_type.into());
        self
    }

    /// Adds a picture.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.entry.icons.push(icon);
        self
    }

    /// Sets `_meta`, a JSON object.
    #[must_use]
    pub fn meta(mut self, meta: &serde_json::Map<String, serde_json::Value>) -> Self {
        self.entry.meta = Some(serde_json::Value::Object(meta.clone()).to_string());
        self
    }

    /// Says whom the family is meant for, and how much it matters.
    #[must_use]
    pub fn annotated(mut self, annotations: Annotations) -> Self {
        self.entry.annotations = Some(annotations);
        self
    }
}

/// What [`plugin!`](crate::plugin) lists.
pub fn template_entries(templates: &[Template]) -> Vec<contract::ResourceTemplate> {
    templates
        .iter()
        .map(|family| family.entry.clone())
        .collect()
}

/// Reads one resource; what [`plugin!`](crate::plugin) does.
///
/// # Errors
/// If the request is wrong, or it could not be read.
pub fn read_resource(
    resources: &[Resource],
    templates: &[Template],
    uri: &str,
) -> Result<ReadOutcome, RpcError> {
    let listed = resources.iter().find(|listed| listed.uri() == uri);
    let read = listed.map(Resource::read).or_else(|| {
        templates.iter().find_map(|family| {
            let variables = family.pattern.matches(uri)?;
            (family.read)(&variables, uri, family.entry.mime_type.as_deref())
        })
    });
    match read
        .unwrap_or_else(crate::not_found)
        .map_err(Error::into_kind)
    {
        Ok(contents) => Ok(ReadOutcome::Found(contents)),
        Err(Kind::NotFound) => Ok(ReadOutcome::NotFound),
        Err(kind) => Err(kind.into_rpc()),
    }
}

/// Whether there may be such a resource, so that somebody can follow it; what [`plugin!`](crate::plugin) asks.
///
/// # Errors
/// If there cannot.
pub fn follow_resource(
    resources: &[Resource],
    templates: &[Template],
    uri: &str,
) -> Result<(), RpcError> {
    let fits = |family: &Template| family.pattern.matches(uri).is_some();
    if resources.iter().any(|listed| listed.uri() == uri) || templates.iter().any(fits) {
        return Ok(());
    }
    Err(RpcError::invalid_params(format!(
        "there is no resource {uri}"
    )))
}
