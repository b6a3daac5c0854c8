//! One resource, or one family of them, as clients see it; and which URIs belong to a family.

use super::shelf::{Entry, Kind};
use crate::wire::check;
use crate::wire::content::{annotations, guest_meta, icons};
use crate::wire::object::Object;
use longshore_runtime::Plugin;
use longshore_runtime::contract::{ResourceEntry, ResourceTemplate};
use regex::{Regex, RegexBuilder};
use std::sync::Arc;

/// Length of a URI or URI template, in bytes: it has to fit a header.
const URI_BYTES_MAX: usize = 4_096;

/// Size of a compiled template, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A resource that is served.
#[derive(Debug)]
pub(crate) struct CatalogueResource {
    plugin: Arc<Plugin>,
    uri: String,
    definition: String,
}

impl CatalogueResource {
    /// Check a resource of a plugin.
    ///
    /// # Errors
    /// Why it cannot be served, and what to do.
    pub(super) fn build(plugin: &Arc<Plugin>, entry: &ResourceEntry) -> Result<Self, String> {
        check_length(&entry.uri)?;
        check::uri(&entry.uri)?;
        entry
            .mime_type
            .as_deref()
            .map_or(Ok(()), check::media_type)?;
        let icons = icons(&entry.icons);
        let definition = Object::new()
            .value("uri", &entry.uri)
            .value("name", &entry.name)
            .option("title", entry.title.as_ref())
            .option("description", entry.description.as_ref())
            .option("mimeType", entry.mime_type.as_ref())
            .option("size", entry.size.as_ref())
            .option(
                "annotations",
                annotations(entry.annotations.as_ref()).as_ref(),
            )
            .option("icons", (!icons.is_empty()).then_some(&icons))
            .option("_meta", guest_meta(entry.meta.as_deref()).as_ref())
            .finish();
        Ok(Self {
            plugin: plugin.clone(),
            uri: entry.uri.clone(),
            definition,
        })
    }
}

impl Entry for CatalogueResource {
    const KIND: Kind = Kind::Resource;

    fn key(&self) -> &str {
        &self.uri
    }

    fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }

    fn definition(&self) -> &str {
        &self.definition
    }
}

/// A family of resources that is served.
#[derive(Debug)]
pub(crate) struct CatalogueTemplate {
    plugin: Arc<Plugin>,
    uri_template: String,
    pattern: Regex,
    definition: String,
}

impl CatalogueTemplate {
    /// Check a template of a plugin.
    ///
    /// # Errors
    /// Why it cannot be served, and what to do.
    pub(super) fn build(plugin: &Arc<Plugin>, template: &ResourceTemplate) -> Result<Self, String> {
        check_length(&template.uri_template)?;
        template
            .mime_type
            .as_deref()
            .map_or(Ok(()), check::media_type)?;
        let icons = icons(&template.icons);
        let definition = Object::new()
            .value("uriTemplate", &template.uri_template)
            .value("name", &template.name)
            .option("title", template.title.as_ref())
            .option("description", template.description.as_ref())
            .option("mimeType", template.mime_type.as_ref())
            .option(
                "annotations",
                annotations(template.annotations.as_ref()).as_ref(),
            )
            .option("icons", (!icons.is_empty()).then_some(&icons))
            .option("_meta", guest_meta(template.meta.as_deref()).as_ref())
            .finish();
        Ok(Self {
            plugin: plugin.clone(),
            pattern: pattern(&template.uri_template)?,
            uri_template: template.uri_template.clone(),
            definition,
        })
    }

    /// Whether a URI is one of the family.
    pub(crate) fn fits(&self, uri: &str) -> bool {
        self.pattern.is_match(uri)
    }
}

impl Entry for CatalogueTemplate {
    const KIND: Kind = Kind::Template;

    fn key(&self) -> &str {
        &self.uri_template
    }

    fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }

    fn definition(&self) -> &str {
        &self.definition
    }
}

fn check_length(uri: &str) -> Result<(), String> {
    if uri.len() <= URI_BYTES_MAX {
        return Ok(());
    }
    Err(format!("its URI is longer than {URI_BYTES_MAX} bytes"))
}

/// The URIs of a template (RFC 6570): `{name}` stands for a part of a path, `{+name}` for any text; neither for none.
fn pattern(template: &str) -> Result<Regex, String> {
    let mut pattern = String::from(r"\A");
    // With a letter for each variable it is a URI, or the end of one.
    let mut example = String::new();
    let mut rest = template;
    while let Some((literal, behind)) = rest.split_once('{') {
        let (variable, behind) = behind
            .split_once('}')
            .ok_or("its URI template has a { without a }")?;
        pattern.push_str(&regex::escape(literal));
        example += literal;
        example.push('x');
        let (name, stands_for) = match variable.strip_prefix('+') {
            Some(name) => (name, r"\S+"),
            None => (variable, r"[^/?#\s]+"),
        };
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_part = |part: &str| !part.is_empty() && part.bytes().all(allowed);
        if !name.split('.').all(is_part) {
            return Err(format!(
                "its URI template has {{{variable:.40}}}; only variables as {{name}} and {{+name}} are served"
            ));
        }
        pattern.push_str(stands_for);
        rest = behind;
    }
    pattern.push_str(&regex::escape(rest));
    pattern.push_str(r"\z");
    check::reference(&(example + rest))?;
    RegexBuilder::new(&pattern)
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .map_err(|error| format!("its URI template cannot be served: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_a_part_of_a_path() {
        let of = |template: &str, uri: &str| pattern(template).unwrap().is_match(uri);
        assert!(of("test://t/{id}/data", "test://t/123/data"));
        assert!(of("test://t/{id}/data", "test://t/%2F.(x)/data"));
        assert!(of("a:{+path}", "a:b/c?d"));
        assert!(of("a:(x)", "a:(x)"));
        for (template, uri) in [
            ("test://t/{id}/data", "test://t//data"),
            ("test://t/{id}/data", "test://t/1/2/data"),
            ("test://t/{id}/data", "test://t/1/data/"),
            ("test://t/{id}/data", "xtest://t/1/data"),
            ("test://t/{id}", "test://t/1\n"),
            ("a.b:{x}", "acb:1"),
        ] {
            assert!(!of(template, uri), "{template} {uri}");
        }
    }

    #[test]
    fn other_templates_are_refused() {
        for template in [
            "a:{", "a:{}", "a:{?q}", "a:{x,y}", "a:{x*}", "a:{x:3}", "a:{+}", "a:{.x}", "a:{x.}",
            "a:{x%}", "a: {x}", "a:}", "a:{x}%", "a:\u{1}",
        ] {
            assert!(pattern(template).is_err(), "{template}");
        }
    }
}
