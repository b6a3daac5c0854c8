//! The resources that the suite reads and follows.

use serde::Deserialize;
use serde_json::{Value, json};

const PIXEL: &[u8] = include_bytes!("pixel.png");

pub(crate) fn text() -> &'static str {
    "This is the content of the static text resource."
}

pub(crate) fn binary() -> &'static [u8] {
    PIXEL
}

pub(crate) fn watched() -> &'static str {
    "Watched resource content"
}

#[derive(Deserialize)]
pub(crate) struct Item {
    id: String,
}

pub(crate) fn item(at: Item) -> Value {
    json!({ "id": at.id, "templateTest": true, "data": format!("Data for ID: {}", at.id) })
}
