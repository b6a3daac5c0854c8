//! The contract in `wit/` as generated types and functions. The rest of the crate is the friendly face of it; a plugin may
//! use it directly for what has no such face.
#![allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    unused_qualifications,
    clippy::allow_attributes_without_reason,
    clippy::pedantic,
    reason = "generated code"
)]

wit_bindgen::generate!({
    path: "../../wit",
    world: "plugin",
    additional_derives: [PartialEq],
    pub_export_macro: true,
    default_bindings_module: "longshore_plugin::contract",
});
