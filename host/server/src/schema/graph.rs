//! A schema as a graph: which schema leads to which others, for the same value or for its members, and what each costs by itself.
//!
//! It must not know what the costs add up to.

use super::pattern;
use super::work::size;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Keywords whose value is one subschema for the same value.
const SAME: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords whose value is a list of subschemas for the same value.
const SAME_LIST: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords whose value has subschemas by name for the same value; what is no schema there lists names.
const SAME_NAMED: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords of which at most one applies to a member of a value.
const EITHER: [&str; 5] = [
    "properties",
    "additionalProperties",
    "prefixItems",
    "items",
    "additionalItems",
];
/// Keywords that may all apply to a member of a value.
const EVERY: [&str; 4] = [
    "patternProperties",
    "contains",
    "unevaluatedProperties",
    "unevaluatedItems",
];
/// What a scope decides while a value is checked.
const DYNAMIC: [&str; 2] = ["$dynamicRef", "$recursiveRef"];

/// How many schemas may apply to one value one in another. More is for a stack of its own.
pub(super) const CHAIN_MAX: usize = 256;

/// Beyond this a bound says nothing more.
pub(super) const COST_MAX: u64 = 1 << 40;

/// Work that lands on one path from the top of a value to its bottom, at most. A unit is 2 to 4 ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// For each node of the value.
    pub(super) node: u64,
    /// For each byte of its texts, in eighths.
    pub(super) byte: u64,
    /// Calls in calls.
    pub(super) calls: u64,
}

impl Cost {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            node: self.node.saturating_add(other.node),
            byte: self.byte.saturating_add(other.byte),
            calls: self.calls.max(other.calls),
        }
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self {
            node: self.node.max(other.node),
            byte: self.byte.max(other.byte),
            calls: self.calls.max(other.calls),
        }
    }

    pub(super) fn times(self, factor: u64) -> Self {
        Self {
            node: self.node.saturating_mul(factor),
            byte: self.byte.saturating_mul(factor),
            calls: self.calls,
        }
    }
}

/// One schema within a schema.
#[derive(Default)]
pub(super) struct Node {
    pub(super) own: Cost,
    /// For each member of an object or a list, beside its subschemas.
    pub(super) member: u64,
    pub(super) compile: u64,
    /// Subschemas for the same value.
    pub(super) same: Vec<usize>,
    /// Schemas that it names, for the same value.
    pub(super) named: Vec<usize>,
    /// Subschemas for members, of which one applies to each.
    pub(super) either: Vec<usize>,
    /// Subschemas for members, of which all may apply.
    pub(super) every: Vec<usize>,
    /// Subschemas for the names of members.
    pub(super) names: Vec<usize>,
    /// How many keywords look at what the others left.
    pub(super) leftovers: u64,
}

impl Node {
    pub(super) fn in_place(&self) -> impl Iterator<Item = usize> {
        self.same.iter().chain(&self.named).copied()
    }

    pub(super) fn within(&self) -> impl Iterator<Item = usize> {
        let members = self.either.iter().chain(&self.every).chain(&self.names);
        self.same.iter().chain(members).copied()
    }
}

/// A schema and all that it leads to; the first node is the schema itself.
pub(super) struct Graph<'a> {
    root: &'a Value,
    pub(super) nodes: Vec<Node>,
    places: HashMap<*const Value, usize>,
    todo: Vec<(usize, &'a Value)>,
    /// Something in it is another name for a place, or is decided by a scope.
    renames: bool,
    /// It names something that is not followed here.
    pub(super) is_foreign: bool,
    /// What it names may be anything, and large.
    pub(super) is_lost: bool,
    /// Some keyword looks at what others left.
    pub(super) looks_through: bool,
    /// Some keyword looks at all that is below a value.
    pub(super) looks_at_all: bool,
}

impl<'a> Graph<'a> {
    pub(super) fn of(root: &'a Value) -> Self {
        let mut graph = Self {
            root,
            nodes: Vec::new(),
            places: HashMap::new(),
            todo: Vec::new(),
            renames: renames(root, true),
            is_foreign: false,
            is_lost: false,
            looks_through: false,
            looks_at_all: false,
        };
        graph.place(root);
        while let Some((index, value)) = graph.todo.pop() {
            let node = graph.read(value);
            graph.nodes[index] = node;
        }
        graph
    }

    fn place(&mut self, value: &'a Value) -> usize {
        let index = self.nodes.len();
        let known = *self
            .places
            .entry(std::ptr::from_ref(value))
            .or_insert(index);
        if known == index {
            self.nodes.push(Node::default());
            self.todo.push((index, value));
        }
        known
    }

    fn read(&mut self, value: &'a Value) -> Node {
        let mut node = Node {
            own: Cost {
                node: 1,
                byte: 0,
                calls: 1,
            },
            compile: 1,
            ..Node::default()
        };
        let Value::Object(schema) = value else {
            return node;
        };
        for (keyword, value) in schema {
            self.read_keyword(keyword, value, &mut node);
        }
        node
    }

    fn read_keyword(&mut self, keyword: &str, value: &'a Value, node: &mut Node) {
        match keyword {
            "$ref" => {
                if let Some(target) = self.target(value) {
                    node.named.push(target);
                }
            }
            "propertyNames" => node.names.push(self.place(value)),
            _ if SAME.contains(&keyword) => node.same.push(self.place(value)),
            _ if SAME_LIST.contains(&keyword) || SAME_NAMED.contains(&keyword) => {
                let schemas = self.parts(value, true);
                node.same.extend(schemas);
            }
            _ if EITHER.contains(&keyword) => {
                let is_named = keyword == "properties";
                let schemas = self.parts(value, is_named);
                node.either.extend(schemas);
            }
            _ if EVERY.contains(&keyword) => {
                let is_named = keyword == "patternProperties";
                let schemas = self.parts(value, is_named);
                node.every.extend(schemas);
                if keyword.starts_with("unevaluated") {
                    node.leftovers += 1;
                    self.looks_through = true;
                }
            }
            _ if DYNAMIC.contains(&keyword) => (self.is_foreign, self.is_lost) = (true, true),
            _ => {}
        }
        let own = self.own(keyword, value);
        node.own = node.own.and(own.cost);
        node.compile = node.compile.saturating_add(own.compile);
        node.member = node.member.saturating_add(own.member);
    }

    /// The subschemas of a keyword: one, a list, or a table if it has names for them.
    fn parts(&mut self, value: &'a Value, is_named: bool) -> Vec<usize> {
        match value {
            Value::Array(list) => list.iter().map(|part| self.place(part)).collect(),
            Value::Object(table) if is_named => {
                let schemas = table.values().filter(|part| !part.is_array());
                schemas.map(|part| self.place(part)).collect()
            }
            one => vec![self.place(one)],
        }
    }

    /// What a reference leads to.
    fn target(&mut self, reference: &Value) -> Option<usize> {
        let reference = reference.as_str()?;
        let local = reference.strip_prefix('#');
        let pointer = local.filter(|local| local.is_empty() || local.starts_with('/'));
        match pointer {
            Some(pointer) if !self.renames && !pointer.contains('%') => {
                let root = self.root;
                let target = root.pointer(pointer).map(|target| self.place(target));
                // One that leads nowhere does not compile; but who compiles may take other numbers for a place in a list.
                let may_lead = pointer.contains(['+', '~']) || pointer.contains("/0");
                if target.is_none() && may_lead {
                    (self.is_foreign, self.is_lost) = (true, true);
                }
                target
            }
            // Nothing is fetched, so what is elsewhere does not compile. But a name of any other kind may be one of this schema's
            // own, also one that nobody gave it.
            _ => {
                self.is_foreign = true;
                self.is_lost |=
                    self.renames || self.root.get("$id").is_some() || !is_elsewhere(reference);
                None
            }
        }
    }

    /// The work of one keyword, its subschemas aside.
    fn own(&mut self, keyword: &str, value: &Value) -> Own {
        let mut own = Own {
            cost: Cost {
                node: 1,
                ..Cost::default()
            },
            member: 0,
            compile: 1,
        };
        match keyword {
            "pattern" => own.match_pattern(value.as_str().unwrap_or_default()),
            "patternProperties" => {
                for pattern in value.as_object().into_iter().flat_map(Map::keys) {
                    own.member = own.member.saturating_add(3);
                    own.match_pattern(pattern);
                }
            }
            "format" => {
                // The one that is compiled itself when it is checked.
                let is_regex = value == "regex";
                own.cost.node = if is_regex { COST_MAX } else { 4 };
                own.cost.byte = 16;
            }
            "minLength" | "maxLength" => own.cost.byte = 1,
            "contentEncoding" | "contentMediaType" => own.cost.byte = 16,
            "uniqueItems" => {
                self.looks_at_all = true;
                (own.cost.node, own.cost.byte) = (6, 4);
            }
            "enum" | "const" | "required" | "dependentRequired" | "dependencies" => {
                own.cost.node = size(value);
            }
            "properties" => {
                own.cost.node = value.as_object().map_or(1, |names| names.len() as u64);
                own.member = 1;
            }
            _ if EITHER.contains(&keyword) || EVERY.contains(&keyword) => own.member = 1,
            "propertyNames" => own.member = 1,
            _ => {}
        }
        own
    }

    /// All nodes, each after those that apply to the same value because of it. `None` if that goes round, or on and on.
    pub(super) fn order(&self) -> Option<Vec<usize>> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut seen = vec![Seen::No; self.nodes.len()];
        (0..self.nodes.len())
            .all(|index| self.visit(index, 0, &mut seen, &mut order))
            .then_some(order)
    }

    fn visit(&self, index: usize, chain: usize, seen: &mut [Seen], order: &mut Vec<usize>) -> bool {
        match seen[index] {
            Seen::Done => return true,
            Seen::Open => return false,
            Seen::No => {}
        }
        if chain >= CHAIN_MAX {
            return false;
        }
        seen[index] = Seen::Open;
        let all = self.nodes[index]
            .in_place()
            .all(|next| self.visit(next, chain + 1, seen, order));
        seen[index] = Seen::Done;
        order.push(index);
        all
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    No,
    Open,
    Done,
}

/// The work of one keyword.
struct Own {
    cost: Cost,
    member: u64,
    compile: u64,
}

impl Own {
    fn match_pattern(&mut self, pattern: &str) {
        let states = pattern::states(pattern).unwrap_or(COST_MAX);
        let byte = states.saturating_mul(4).saturating_add(8);
        self.cost.byte = self.cost.byte.saturating_add(byte);
        if states == COST_MAX {
            self.cost.node = COST_MAX;
        } else {
            self.cost.node = self.cost.node.saturating_add(4);
        }
        // No compiled pattern is larger than a limit. What is compiled for one that may go back has the same.
        let size = pattern::size(pattern).unwrap_or(u64::MAX);
        let compile = 10 + (size / 10).min(1_000);
        self.compile = self.compile.saturating_add(compile);
    }
}

/// Whether a reference leads out of a schema that has no name, and not to what all know.
fn is_elsewhere(reference: &str) -> bool {
    let schemes = ["http://", "https://", "file://"];
    schemes.iter().any(|scheme| reference.starts_with(scheme))
        && !reference.contains("json-schema.org")
}

/// Whether a schema within it has a name of its own, by which others may mean it, or it takes a name that all know. The oldest
/// dialect has other names.
fn renames(value: &Value, is_root: bool) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| renames(item, false)),
        Value::Object(members) => {
            let text = |key: &str| members.get(key).and_then(Value::as_str);
            text("$id").is_some_and(|id| !is_root || id.contains("json-schema.org"))
                || text("$schema").is_some_and(|dialect| dialect.contains("draft-04"))
                || members.values().any(|member| renames(member, false))
        }
        _ => false,
    }
}
