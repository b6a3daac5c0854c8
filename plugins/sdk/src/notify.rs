//! Tell clients that something has changed. A burst becomes one notification.

pub use crate::contract::longshore::plugin::notify::{
    prompts_changed, resource_updated, resources_changed, tools_changed,
};
