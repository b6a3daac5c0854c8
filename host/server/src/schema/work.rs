//! How much work a schema may make: to compile it, and to check a value against it. A bound, read off the schema alone.
//!
//! It decides *where* work is done, never whether a value fits: what it cannot bound is only not done on a thread that serves
//! others. So it may be coarse where schemas are strange, and must not be too low anywhere.
//!
//! It must not know of the validator, but for how its costs grow.

use super::compiling::compiling;
use super::graph::{COST_MAX, Cost, Graph, Node};
use serde_json::Value;

/// Levels of a value. Parsers take no more.
const LEVELS_MAX: usize = 128;

/// What checks against a schema may cost.
#[derive(Debug)]
pub(super) struct Work {
    /// By the depth of the value; deeper ones cost what the last one does.
    by_depth: Vec<Cost>,
    /// Levels of a value that the schema looks at.
    reach: usize,
}

/// What a check of one value may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bill {
    /// A unit is 2 to 4 ns; a hundred times that and more where errors are gathered.
    pub(super) units: u64,
    /// Calls in calls.
    pub(super) calls: u64,
}

/// What is known of a schema.
pub(super) struct Survey<'a> {
    graph: Graph<'a>,
    order: Option<Vec<usize>>,
}

impl<'a> Survey<'a> {
    pub(super) fn of(schema: &'a Value) -> Self {
        let graph = Graph::of(schema);
        let order = graph.order();
        Self { graph, order }
    }

    /// Work to compile it. A unit is about 10 µs.
    pub(super) fn compiling(&self) -> u64 {
        let order = self.order.as_ref();
        order.map_or(u64::MAX, |order| compiling(&self.graph, order))
    }

    /// Work to check values, if anything is known of it. To find out is work itself: for what may be compiled, and not more.
    pub(super) fn checking(&self) -> Option<Work> {
        let order = self.order.as_ref().filter(|_| !self.graph.is_foreign)?;
        Some(Work::of(&self.graph, order))
    }
}

impl Work {
    fn of(graph: &Graph<'_>, order: &[usize]) -> Self {
        let mut row = Row::new(graph.nodes.len());
        let mut former = row.clone();
        let mut names = None;
        let mut by_depth: Vec<Cost> = Vec::new();
        let mut reach = LEVELS_MAX;
        for depth in 0..=LEVELS_MAX {
            for &index in order {
                let node = &graph.nodes[index];
                let names = names.as_ref().filter(|_| depth > 0);
                let below = names.map(|names| node.below(&former, names));
                row.fill(index, node, below.unwrap_or_default());
            }
            if depth > 0 && row == former {
                reach = depth - 1;
                break;
            }
            by_depth.push(row.all[0]);
            names.get_or_insert_with(|| row.clone());
            if row.all[0].node >= COST_MAX || row.all[0].byte >= COST_MAX {
                break;
            }
            former.clone_from(&row);
        }
        if graph.looks_at_all {
            reach = LEVELS_MAX;
        }
        Self { by_depth, reach }
    }

    /// Whether it is bounded for values of every depth.
    pub(super) fn is_bounded(&self) -> bool {
        let deepest = self.by_depth.last();
        deepest.is_some_and(|cost| cost.node.max(cost.byte) < COST_MAX)
    }

    /// What a check of this value costs at most.
    pub(super) fn bill(&self, value: &Value) -> Bill {
        let mut extent = Extent::default();
        extent.measure(value, 0, self.reach);
        let last = self.by_depth.len().saturating_sub(1);
        let cost = self.by_depth[extent.depth.min(last)];
        let bytes = cost.byte.saturating_mul(extent.bytes) / 8;
        Bill {
            units: cost.node.saturating_mul(extent.nodes).saturating_add(bytes),
            calls: cost.calls,
        }
    }
}

/// The nodes of a value; a long text counts for more.
pub(super) fn size(value: &Value) -> u64 {
    let mut extent = Extent::default();
    extent.measure(value, 0, LEVELS_MAX);
    extent.nodes + extent.bytes / 64
}

/// How large a value is.
#[derive(Default)]
struct Extent {
    nodes: u64,
    bytes: u64,
    depth: usize,
}

impl Extent {
    fn measure(&mut self, value: &Value, depth: usize, reach: usize) {
        self.nodes += 1;
        self.depth = self.depth.max(depth);
        match value {
            Value::String(text) => self.bytes += text.len() as u64,
            Value::Array(items) if depth < reach => {
                for item in items {
                    self.measure(item, depth + 1, reach);
                }
            }
            Value::Object(members) if depth < reach => {
                for (name, member) in members {
                    self.bytes += name.len() as u64;
                    self.measure(member, depth + 1, reach);
                }
            }
            // Their names are looked at even where the members are not.
            Value::Object(members) => {
                for name in members.keys() {
                    self.bytes += name.len() as u64;
                    self.nodes += 1;
                }
            }
            // To count items none need be looked at.
            _ => {}
        }
    }
}

/// The costs of all nodes for values of one depth.
#[derive(Clone, PartialEq, Eq)]
struct Row {
    /// A check.
    all: Vec<Cost>,
    /// The search for what a check left.
    search: Vec<Cost>,
}

impl Row {
    fn new(nodes: usize) -> Self {
        Self {
            all: vec![Cost::default(); nodes],
            search: vec![Cost::default(); nodes],
        }
    }

    fn fill(&mut self, index: usize, node: &Node, below: Cost) {
        let mut all = node.own.and(below);
        let mut search = all;
        for next in node.in_place() {
            all = all.and(self.all[next]);
            search = search.and(self.all[next]).and(self.search[next]);
        }
        let mut all = all.and(search.times(node.leftovers));
        all.calls = all.calls.saturating_add(1);
        search.calls = search.calls.saturating_add(1);
        (self.all[index], self.search[index]) = (all, search);
    }
}

impl Node {
    /// The work on the members of a value.
    fn below(&self, former: &Row, names: &Row) -> Cost {
        let either = self.either.iter().map(|index| former.all[*index]);
        let every = self.every.iter().map(|index| former.all[*index]);
        let names = self.names.iter().map(|index| names.all[*index]);
        let member = Cost {
            node: self.member,
            ..Cost::default()
        };
        let either = either.fold(Cost::default(), Cost::or);
        every.chain(names).fold(member.and(either), Cost::and)
    }
}
