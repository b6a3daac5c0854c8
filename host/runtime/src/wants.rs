//! What a component could use of what an operator can grant, as far as the functions that it imports tell.
//!
//! A language's runtime may import what its programs never call, so this says more than is needed, and never less.

use crate::contract::PACKAGE;
use serde::Serialize;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

/// What a component could use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Wants {
    /// Files to read.
    pub files: bool,
    /// Files to change.
    pub changed_files: bool,
    /// Variables: settings and secrets too.
    pub environment: bool,
    /// Other hosts, by HTTP.
    pub hosts: bool,
    /// Answers of the client.
    pub answers: bool,
}

/// Functions by which files are changed, and nothing else is done.
const CHANGING: [&str; 12] = [
    "[method]descriptor.append-via-stream",
    "[method]descriptor.create-directory-at",
    "[method]descriptor.link-at",
    "[method]descriptor.remove-directory-at",
    "[method]descriptor.rename-at",
    "[method]descriptor.set-size",
    "[method]descriptor.set-times",
    "[method]descriptor.set-times-at",
    "[method]descriptor.symlink-at",
    "[method]descriptor.unlink-file-at",
    "[method]descriptor.write",
    "[method]descriptor.write-via-stream",
];

/// Functions by which something of a granted folder is read.
const READING: [&str; 5] = [
    "[method]descriptor.open-at",
    "[method]descriptor.read-directory",
    "[method]descriptor.readlink-at",
    "[method]descriptor.stat-at",
    "[method]descriptor.metadata-hash-at",
];

impl Wants {
    pub(crate) fn of(component: &Component) -> Self {
        let engine = component.engine();
        let mut wants = Self::default();
        for (name, import) in component.component_type().imports(engine) {
            if let ComponentItem::ComponentInstance(instance) = import.ty {
                let interface = name.split('@').next().unwrap_or(name);
                for (function, _) in instance.exports(engine) {
                    wants.add(interface, function);
                }
            }
        }
        wants
    }

    fn add(&mut self, interface: &str, function: &str) {
        match interface {
            "wasi:filesystem/types" => {
                self.files |= READING.contains(&function);
                self.changed_files |= CHANGING.contains(&function);
            }
            "wasi:cli/environment" => self.environment |= function == "get-environment",
            "wasi:http/outgoing-handler" => self.hosts |= function == "handle",
            _ if interface.strip_prefix(PACKAGE) == Some("/task") => {
                self.answers |= function == "request-input";
            }
            _ => {}
        }
    }

    /// Each with its name, for a person.
    pub(crate) fn named(self) -> [(&'static str, bool); 5] {
        [
            ("files to read", self.files),
            ("files to change", self.changed_files),
            ("environment variables", self.environment),
            ("other hosts", self.hosts),
            ("answers of the client", self.answers),
        ]
    }
}
