//! How much work it is to compile a schema.
//!
//! It must not know of values.

use super::graph::{CHAIN_MAX, Graph};
use std::collections::BTreeSet;

/// How many schemas may apply to one value one in another where `unevaluated...` looks through them: the compiler does so call in
/// call.
const UNEVALUATED_CHAIN_MAX: usize = 64;

/// The work to compile it. A unit is about 10 µs.
pub(super) fn compiling(graph: &Graph<'_>, order: &[usize]) -> u64 {
    if graph.is_lost {
        return u64::MAX;
    }
    if !graph.looks_through {
        let all = graph.nodes.iter().map(|node| node.compile);
        return all.fold(0, u64::saturating_add);
    }
    let mut chain = vec![0_usize; graph.nodes.len()];
    for &index in order {
        let longest = graph.nodes[index].in_place().map(|next| chain[next]).max();
        chain[index] = longest.map_or(0, |longest| longest + 1);
    }
    if chain.iter().any(|chain| *chain > UNEVALUATED_CHAIN_MAX) {
        return u64::MAX;
    }
    Compiling::new(graph).all()
}

/// The work of compiling where `unevaluated...` looks through other schemas: it compiles them again, each time that it comes
/// to them.
struct Compiling<'a> {
    graph: &'a Graph<'a>,
    plain: Vec<Memo>,
    through: Vec<Memo>,
}

#[derive(Clone, Copy)]
enum Memo {
    Unknown,
    Open,
    Known(u64),
}

impl<'a> Compiling<'a> {
    fn new(graph: &'a Graph<'a>) -> Self {
        let memos = vec![Memo::Unknown; graph.nodes.len()];
        Self {
            graph,
            plain: memos.clone(),
            through: memos,
        }
    }

    fn all(mut self) -> u64 {
        let graph = self.graph;
        let named = graph.nodes.iter().flat_map(|node| &node.named);
        let roots: BTreeSet<usize> = named.copied().chain([0]).collect();
        let costs = roots.into_iter().map(|root| self.plain(root, 0));
        costs.fold(0, u64::saturating_add)
    }

    fn plain(&mut self, index: usize, calls: usize) -> u64 {
        if let Some(known) = open(&mut self.plain, index, calls) {
            return known;
        }
        let node = &self.graph.nodes[index];
        let mut cost = node.compile;
        for part in node.within() {
            cost = cost.saturating_add(self.plain(part, calls + 1));
        }
        if node.leftovers > 0 {
            let through = self.through(index, calls + 1);
            cost = cost.saturating_add(through.saturating_mul(node.leftovers));
        }
        self.plain[index] = Memo::Known(cost);
        cost
    }

    fn through(&mut self, index: usize, calls: usize) -> u64 {
        if let Some(known) = open(&mut self.through, index, calls) {
            return known;
        }
        let node = &self.graph.nodes[index];
        let mut cost = 1_u64;
        for part in node.within() {
            cost = cost.saturating_add(self.plain(part, calls + 1));
        }
        for next in node.in_place() {
            cost = cost.saturating_add(self.through(next, calls + 1));
        }
        self.through[index] = Memo::Known(cost);
        cost
    }
}

/// What is known; where it goes round, or too deep, that nothing is.
fn open(memos: &mut [Memo], index: usize, calls: usize) -> Option<u64> {
    match memos[index] {
        Memo::Known(cost) => Some(cost),
        Memo::Open => Some(u64::MAX),
        Memo::Unknown if calls > CHAIN_MAX => Some(u64::MAX),
        Memo::Unknown => {
            memos[index] = Memo::Open;
            None
        }
    }
}
