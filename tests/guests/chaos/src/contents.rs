//! Arbitrary contents: what lists, results, prompts and questions are made of.

use crate::contract::longshore::plugin::types::{
    Annotations, ContentBlock, EmbeddedResource, Icon, IconTheme, MediaContent, ResourceBody,
    ResourceContents, ResourceLink, Role, RpcError, TextContent,
};
use crate::dice::Dice;

pub(crate) fn role(dice: &mut Dice) -> Role {
    dice.pick(&[Role::User, Role::Assistant])
}

pub(crate) fn annotations(dice: &mut Dice) -> Annotations {
    Annotations {
        audience: dice.some(3, role),
        priority: dice.maybe(Dice::float),
        last_modified: dice.maybe(|dice| {
            let times = ["2026-01-02T03:04:05Z", "yesterday", "9999999999999"];
            dice.pick(&times).into()
        }),
    }
}

pub(crate) fn icon(dice: &mut Dice) -> Icon {
    Icon {
        src: dice.uri(),
        mime_type: dice.maybe(Dice::media_type),
        sizes: dice.some(2, |dice| dice.pick(&["48x48", "any", "huge", ""]).into()),
        theme: dice.maybe(|dice| dice.pick(&[IconTheme::Light, IconTheme::Dark])),
    }
}

pub(crate) fn text(dice: &mut Dice) -> TextContent {
    TextContent {
        text: dice.text(),
        annotations: dice.maybe(annotations),
        meta: dice.maybe(Dice::object),
    }
}

pub(crate) fn media(dice: &mut Dice) -> MediaContent {
    MediaContent {
        data: dice.bytes(),
        mime_type: dice.media_type(),
        annotations: dice.maybe(annotations),
        meta: dice.maybe(Dice::object),
    }
}

fn link(dice: &mut Dice) -> ResourceLink {
    ResourceLink {
        uri: dice.uri(),
        name: dice.text(),
        title: dice.maybe(Dice::text),
        description: dice.maybe(Dice::text),
        mime_type: dice.maybe(Dice::media_type),
        size: dice.maybe(Dice::integer),
        icons: dice.some(2, icon),
        annotations: dice.maybe(annotations),
        meta: dice.maybe(Dice::object),
    }
}

pub(crate) fn resource(dice: &mut Dice) -> ResourceContents {
    ResourceContents {
        uri: dice.uri(),
        mime_type: dice.maybe(Dice::media_type),
        body: if dice.flag() {
            ResourceBody::Text(dice.text())
        } else {
            ResourceBody::Blob(dice.bytes())
        },
        meta: dice.maybe(Dice::object),
    }
}

pub(crate) fn block(dice: &mut Dice) -> ContentBlock {
    match dice.roll(5) {
        0 => ContentBlock::Image(media(dice)),
        1 => ContentBlock::Audio(media(dice)),
        2 => ContentBlock::ResourceLink(link(dice)),
        3 => ContentBlock::Resource(EmbeddedResource {
            contents: resource(dice),
            annotations: dice.maybe(annotations),
            meta: dice.maybe(Dice::object),
        }),
        _ => ContentBlock::Text(text(dice)),
    }
}

/// Codes that a guest may raise, and others.
const CODES: [i32; 10] = [
    -32602,
    -32603,
    -32021,
    -32020,
    -32700,
    -32002,
    0,
    7,
    i32::MIN,
    i32::MAX,
];

pub(crate) fn error(dice: &mut Dice) -> RpcError {
    RpcError {
        code: dice.pick(&CODES),
        message: dice.text(),
        data: dice.maybe(Dice::json),
    }
}
