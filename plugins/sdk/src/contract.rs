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

// What else a plugin may export. Each is a world of its own, so that a plugin exports no more than it has.

/// The generated types of prompts.
pub mod prompts {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package longshore:sdk; world prompts { export longshore:plugin/prompts@0.1.0; }",
        world: "longshore:sdk/prompts",
        with: { "longshore:plugin/types@0.1.0": crate::contract::longshore::plugin::types },
        additional_derives: [PartialEq],
        pub_export_macro: true,
        default_bindings_module: "longshore_plugin::contract::prompts",
    });
}

/// The generated types of resources.
pub mod resources {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package longshore:sdk; world resources { export longshore:plugin/resources@0.1.0; }",
        world: "longshore:sdk/resources",
        with: { "longshore:plugin/types@0.1.0": crate::contract::longshore::plugin::types },
        additional_derives: [PartialEq],
        pub_export_macro: true,
        default_bindings_module: "longshore_plugin::contract::resources",
    });
}

/// The generated types of completions.
pub mod completions {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package longshore:sdk; world completions { export longshore:plugin/completions@0.1.0; }",
        world: "longshore:sdk/completions",
        with: { "longshore:plugin/types@0.1.0": crate::contract::longshore::plugin::types },
        additional_derives: [PartialEq],
        pub_export_macro: true,
        default_bindings_module: "longshore_plugin::contract::completions",
    });
}
