//! Results of a tool, and the blocks they are made of.

use crate::contract::longshore::plugin::types::{
    EmbeddedResource, MediaContent, ResourceBody, ResourceContents, TextContent,
};
use crate::{Annotations, Icon, ResourceLink};
use serde::Serialize;

pub use crate::contract::longshore::plugin::types::{CallResult, ContentBlock as Content};

impl Content {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent {
            text: text.into(),
            annotations: None,
            meta: None,
        })
    }

    /// A picture: its bytes and its media type ("image/png").
    pub fn image(data: impl Into<Vec<u8>>, mime_type: impl Into<String>) -> Self {
        Self::Image(media(data.into(), mime_type.into()))
    }

    /// A sound: its bytes and its media type ("audio/wav").
    pub fn audio(data: impl Into<Vec<u8>>, mime_type: impl Into<String>) -> Self {
        Self::Audio(media(data.into(), mime_type.into()))
    }

    /// A resource by its address.
    pub fn link(link: ResourceLink) -> Self {
        Self::ResourceLink(link)
    }

    /// A text resource, whole.
    pub fn embedded_text(
        uri: impl Into<String>,
        mime_type: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self::embedded(
            uri.into(),
            mime_type.into(),
            ResourceBody::Text(text.into()),
        )
    }

    /// A resource of bytes, whole.
    pub fn embedded_blob(
        uri: impl Into<String>,
        mime_type: impl Into<String>,
        blob: impl Into<Vec<u8>>,
    ) -> Self {
        Self::embedded(
            uri.into(),
            mime_type.into(),
            ResourceBody::Blob(blob.into()),
        )
    }

    fn embedded(uri: String, mime_type: String, body: ResourceBody) -> Self {
        let contents = ResourceContents {
            uri,
            mime_type: Some(mime_type),
            body,
            meta: None,
        };
        Self::Resource(EmbeddedResource {
            contents,
            annotations: None,
            meta: None,
        })
    }

    /// Says whom the block is meant for, and how much it matters.
    #[must_use]
    pub fn annotated(mut self, annotations: Annotations) -> Self {
        let slot = match &mut self {
            Self::Text(block) => &mut block.annotations,
            Self::Image(block) | Self::Audio(block) => &mut block.annotations,
            Self::ResourceLink(block) => &mut block.annotations,
            Self::Resource(block) => &mut block.annotations,
        };
        *slot = Some(annotations);
        self
    }
}

fn media(data: Vec<u8>, mime_type: String) -> MediaContent {
    MediaContent {
        data,
        mime_type,
        annotations: None,
        meta: None,
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl ResourceLink {
    /// A link with a name. Its other fields are public.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            icons: Vec::new(),
            annotations: None,
            meta: None,
        }
    }
}

impl Icon {
    /// A picture at an `https:` or `data:` URL. Its other fields are public.
    pub fn new(src: impl Into<String>) -> Self {
        Self {
            src: src.into(),
            mime_type: None,
            sizes: Vec::new(),
            theme: None,
        }
    }
}

impl CallResult {
    /// An empty result.
    pub fn new() -> Self {
        Self {
            content: Vec::new(),
            structured_content: None,
            is_error: false,
            meta: None,
        }
    }

    /// A result that says that the work failed, and why.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::new().text(text).error()
    }

    /// Adds a block of text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.block(Content::text(text))
    }

    /// Adds a block.
    #[must_use]
    pub fn block(mut self, block: Content) -> Self {
        self.content.push(block);
        self
    }

    /// Sets the structured content. The caller gets a copy of it as text too, behind all blocks, unless one is that already.
    ///
    /// # Errors
    /// If `value` cannot be JSON (a map with keys that are no strings, say).
    pub fn structured(mut self, value: &impl Serialize) -> Result<Self, serde_json::Error> {
        self.structured_content = Some(serde_json::to_string(value)?);
        Ok(self)
    }

    /// Marks the result as a failure of the work.
    #[must_use]
    pub fn error(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// Sets `_meta`, a JSON object.
    #[must_use]
    pub fn meta(mut self, meta: &serde_json::Map<String, serde_json::Value>) -> Self {
        self.meta = Some(serde_json::Value::Object(meta.clone()).to_string());
        self
    }
}

impl Default for CallResult {
    fn default() -> Self {
        Self::new()
    }
}
