//! A resource: a function that reads it, with what clients are told of it.

use crate::contract::longshore::plugin::types::{ResourceBody, ResourceContents};
use crate::contract::resources::exports::longshore::plugin::resources as contract;
use crate::{Annotations, Error, Icon, Json, Result};
use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// Ends reading: there is no such resource. It is not an empty one.
///
/// # Errors
/// Always: `return not_found();`.
pub fn not_found<T>() -> Result<T> {
    Err(Error::not_found())
}

/// What reading may return: text, bytes, [`Json`], a JSON value, [`ResourceContents`] of one's own making, `Option` of one of
/// these (`None`: [`not_found`]), or a `Result`.
pub trait Document: Sized {
    /// The contents of the resource at `uri`, of the media type that it was declared with.
    ///
    /// # Errors
    /// If it cannot be read, or is not there.
    fn contents(self, uri: &str, mime_type: Option<&str>) -> Result<Vec<ResourceContents>>;
}

fn one(uri: &str, mime_type: Option<&str>, body: ResourceBody) -> Result<Vec<ResourceContents>> {
    Ok(vec![ResourceContents {
        uri: uri.into(),
        mime_type: mime_type.map(str::to_owned),
        body,
        meta: None,
    }])
}

impl Document for String {
    fn contents(self, uri: &str, mime_type: Option<&str>) -> Result<Vec<ResourceContents>> {
        let mime_type = mime_type.or(Some("text/plain"));
        one(uri, mime_type, ResourceBody::Text(self))
    }
}

impl Document for &str {
    fn contents(self, uri: &str, mime_type: Option<&str>) -> Result<Vec<ResourceContents>> {
        self.to_owned().contents(uri, mime_type)
    }
}

impl Document for Vec<u8> {
    fn contents(self, uri: &str, mime_type: Option<&str>) -> Result<Vec<ResourceContents>> {
        one(uri, mime_type, ResourceBody::Blob(self))
    }
}

impl Document for &[u8] {
    fn contents(self, uri: &str, mime_type: Option<&str>) -> Result<Vec<ResourceContents>> {
        self.to_vec().contents(uri, mime_type)
    }
}

impl Document for Value {
    fn contents(self, uri: &str, mime_type: Option<&str>) -> Result<Vec<ResourceContents>> {
        let mime_type = mime_type.unwrap_or("application/json");
        self.to_string().contents(uri, Some(mime_type))
    }
}

impl<T: Serialize> Document for Json<T> {
    fn contents(self, uri: &str, mime_type: Option<&str>) -> Result<Vec<ResourceContents>> {
        serde_json::to_value(self.0)?.contents(uri, mime_type)
    }
}

impl Document for ResourceContents {
    fn contents(self, _uri: &str, _mime_type: Option<&str>) -> Result<Vec<ResourceContents>> {
        Ok(vec![self])
    }
}

impl Document for Vec<ResourceContents> {
    fn contents(self, _uri: &str, _mime_type: Option<&str>) -> Result<Vec<ResourceContents>> {
        Ok(self)
    }
}

impl<T: Document> Document for Option<T> {
    fn contents(self, uri: &str, mime_type: Option<&str>) -> Result<Vec<ResourceContents>> {
        match self {
            Some(document) => document.contents(uri, mime_type),
            None => not_found(),
        }
    }
}

impl<T: Document, E: Into<Error>> Document for Result<T, E> {
    fn contents(self, uri: &str, mime_type: Option<&str>) -> Result<Vec<ResourceContents>> {
        self.map_err(Into::into)?.contents(uri, mime_type)
    }
}

/// A resource at `uri` by the name of `name`, read by `handler`.
pub fn resource<H, D>(uri: &str, name: &str, handler: H) -> Resource
where
    H: Fn() -> D + 'static,
    D: Document,
{
    Resource {
        entry: contract::ResourceEntry {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            icons: Vec::new(),
            annotations: None,
            meta: None,
        },
        read: Box::new(move |uri, mime_type| handler().contents(uri, mime_type)),
    }
}

/// Reads one resource: its URI, and its media type.
type Read = Box<dyn Fn(&str, Option<&str>) -> Result<Vec<ResourceContents>>>;

/// A resource. Made by [`resource`].
pub struct Resource {
    entry: contract::ResourceEntry,
    read: Read,
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource")
            .field("uri", &self.entry.uri)
            .finish_non_exhaustive()
    }
}

/// A resource alone is a list of one: where several are wanted, one will do.
impl IntoIterator for Resource {
    type Item = Self;
    type IntoIter = std::iter::Once<Self>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self)
    }
}

impl Resource {
    /// A name for a person.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.entry.title = Some(title.into());
        self
    }

    /// What is in it.
    #[must_use]
    pub fn description(mut self, text: &str) -> Self {
        self.entry.description = Some(text.into());
        self
    }

    /// Its media type. If nothing is said, text is "text/plain" and JSON "application/json".
    #[must_use]
    pub fn mime_type(mut self, mime_type: &str) -> Self {
        self.entry.mime_type = Some(mime_type.into());
        self
    }

    /// Its size in bytes.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.entry.size = Some(bytes);
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
    pub fn meta(mut self, meta: &serde_json::Map<String, Value>) -> Self {
        self.entry.meta = Some(Value::Object(meta.clone()).to_string());
        self
    }

    /// Says whom it is meant for, and how much it matters.
    #[must_use]
    pub fn annotated(mut self, annotations: Annotations) -> Self {
        self.entry.annotations = Some(annotations);
        self
    }

    pub(crate) fn uri(&self) -> &str {
        &self.entry.uri
    }

    pub(crate) fn read(&self) -> Result<Vec<ResourceContents>> {
        (self.read)(&self.entry.uri, self.entry.mime_type.as_deref())
    }
}

/// What [`plugin!`](crate::plugin) lists.
pub fn resource_entries(resources: &[Resource]) -> Vec<contract::ResourceEntry> {
    resources
        .iter()
        .map(|listed| listed.entry.clone())
        .collect()
}
