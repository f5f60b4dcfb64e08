//! The arcs of a playbook as a graph, and who can still come to whom.
//!
//! Steps that lead to each other form a *loop*. The steps at which it can be entered from outside are its entries, and its
//! arcs to them are its *back edges*: each of them begins another round. Without these arcs a loop may still hold smaller
//! loops, with entries and back edges of their own, and so on until nothing leads in a circle. Which arcs are back edges
//! follows from the shape alone, never from the order in which arcs are written.
//!
//! A step of a loop waits for nobody who could come only in another round; a step outside waits until the loop is left. So
//! a wait leads either forward within a loop or from outside into it, and never round: that is why a fan-in can be a
//! barrier and still every loop of arcs goes on.
//!
//! The outermost loop of a step is its *knot*. A step that has ended runs again only by an arc from its own knot; every
//! other step runs at most once.

use std::collections::BTreeMap;

use crate::playbook::Playbook;

/// A step by its place in the playbook.
pub type Place = u32;

/// A loop by its place in the list of all loops, where outer ones come before inner ones.
type LoopId = u32;

#[derive(Debug)]
pub struct Graph {
    nodes: Vec<Node>,
    /// The loop each loop is directly part of.
    parents: Vec<Option<LoopId>>,
}

#[derive(Debug, Default)]
struct Node {
    /// Targets of the arcs, in their order.
    next: Vec<Place>,
    /// Steps with an arc to this one, once each, in order.
    before: Vec<Before>,
    /// The smallest loop the step is part of.
    innermost: Option<LoopId>,
    /// The largest.
    knot: Option<LoopId>,
}

#[derive(Debug)]
struct Before {
    source: Place,
    /// The loop whose back edge it is.
    back: Option<LoopId>,
}

/// What the search asks about a step.
pub trait Standing {
    /// It runs, is parked, waits or is about to be entered.
    fn is_live(&self, place: Place) -> bool;
    /// It ran or was skipped.
    fn is_ended(&self, place: Place) -> bool;
}

impl Graph {
    pub fn new(playbook: &Playbook) -> Self {
        let places: BTreeMap<&str, Place> =
            (0..).zip(&playbook.steps).map(|(place, step)| (step.name.as_str(), place)).collect();
        let mut nodes: Vec<Node> = Vec::with_capacity(playbook.steps.len());
        for step in &playbook.steps {
            let next = step.next.arcs.iter().filter_map(|arc| places.get(arc.step.as_str()).copied()).collect();
            nodes.push(Node { next, ..Node::default() });
        }
        let mut graph = Self { nodes, parents: Vec::new() };
        graph.connect();
        graph.find_loops(places.get(playbook.entry.as_str()).copied().unwrap_or(0));
        graph
    }

    /// Steps with an arc to this one.
    pub fn sources(&self, place: Place) -> impl Iterator<Item = Place> {
        self.nodes[place as usize].before.iter().map(|before| before.source)
    }

    fn connect(&mut self) {
        for source in 0..self.nodes.len() as Place {
            for target in self.nodes[source as usize].next.clone() {
                let before = &mut self.nodes[target as usize].before;
                if before.last().is_none_or(|last| last.source != source) {
                    before.push(Before { source, back: None });
                }
            }
        }
    }

    /// From the outermost loops inwards. Each loop loses an arc at least, so this ends.
    fn find_loops(&mut self, first: Place) {
        let mut todo: Vec<(Vec<Place>, Option<LoopId>)> = vec![((0..self.nodes.len() as Place).collect(), None)];
        while let Some((members, parent)) = todo.pop() {
            for part in self.strong_parts(&members, parent) {
                if part.len() == 1 && !self.leads_to_itself(part[0]) {
                    continue;
                }
                let id = self.parents.len() as LoopId;
                self.parents.push(parent);
                for place in &part {
                    let node = &mut self.nodes[*place as usize];
                    node.innermost = Some(id);
                    node.knot.get_or_insert(id);
                }
                let is_entry = |place: &Place| {
                    let mut before = self.nodes[*place as usize].before.iter();
                    *place == first || before.any(|arc| self.nodes[arc.source as usize].innermost != Some(id))
                };
                let mut entries: Vec<Place> = part.iter().copied().filter(is_entry).collect();
                if entries.is_empty() {
                    // Nothing leads there; any step will do.
                    entries.extend(part.first());
                }
                for entry in entries {
                    let mut before = std::mem::take(&mut self.nodes[entry as usize].before);
                    for arc in &mut before {
                        let within = arc.source == entry || self.nodes[arc.source as usize].innermost == Some(id);
                        if within && arc.back.is_none() {
                            arc.back = Some(id);
                        }
                    }
                    self.nodes[entry as usize].before = before;
                }
                todo.push((part, Some(id)));
            }
        }
    }

    fn leads_to_itself(&self, place: Place) -> bool {
        self.nodes[place as usize].before.iter().any(|arc| arc.source == place && arc.back.is_none())
    }

    /// The strongly connected parts of one loop (or of the whole) without its back edges, by Tarjan's walk. It goes against
    /// the arcs, which makes no difference to what is connected.
    fn strong_parts(&self, members: &[Place], within: Option<LoopId>) -> Vec<Vec<Place>> {
        const NEW: u32 = u32::MAX;
        let count = self.nodes.len();
        let (mut number, mut lowest, mut open) = (vec![NEW; count], vec![NEW; count], vec![false; count]);
        let (mut counter, mut trail, mut parts) = (0, Vec::new(), Vec::new());
        for &root in members {
            if number[root as usize] != NEW {
                continue;
            }
            let mut path = vec![(root, 0)];
            while let Some((place, arc)) = path.last_mut() {
                let (place, at) = (*place, *place as usize);
                if *arc == 0 {
                    (number[at], lowest[at], open[at]) = (counter, counter, true);
                    counter += 1;
                    trail.push(place);
                }
                let Some(before) = self.nodes[at].before.get(*arc) else {
                    path.pop();
                    if let Some((below, _)) = path.last() {
                        lowest[*below as usize] = lowest[*below as usize].min(lowest[at]);
                    }
                    if lowest[at] == number[at] {
                        let mut part = trail.split_off(trail.iter().rposition(|&on| on == place).unwrap_or(0));
                        part.iter().for_each(|&on| open[on as usize] = false);
                        part.sort_unstable();
                        parts.push(part);
                    }
                    continue;
                };
                *arc += 1;
                let source = before.source as usize;
                if before.back.is_some() || self.nodes[source].innermost != within {
                    continue;
                }
                if number[source] == NEW {
                    path.push((before.source, 0));
                } else if open[source] {
                    lowest[at] = lowest[at].min(number[source]);
                }
            }
        }
        parts
    }

    pub fn next(&self, place: Place) -> &[Place] {
        &self.nodes[place as usize].next
    }

    /// Whether an arc from one to the other lets a step run again that has ended.
    pub fn same_knot(&self, source: Place, target: Place) -> bool {
        let knot = self.nodes[target as usize].knot;
        knot.is_some() && knot == self.nodes[source as usize].knot
    }

    /// Whether the step has to be asked about at all: several steps lead to it.
    pub fn is_fan_in(&self, place: Place) -> bool {
        self.ahead(place).nth(1).is_some()
    }

    /// The steps with an arc to this one that is no back edge.
    fn ahead(&self, place: Place) -> impl Iterator<Item = Place> {
        self.nodes[place as usize].before.iter().filter(|arc| arc.back.is_none()).map(|arc| arc.source)
    }

    /// A step that leads to this one and is live, or can be reached from a live one in the same round of every loop that
    /// the place is part of.
    pub fn awaited(&self, place: Place, standing: &dyn Standing) -> Option<Place> {
        let mut seen = vec![false; self.nodes.len()];
        self.ahead(place)
            .find(|source| standing.is_live(*source))
            .or_else(|| self.ahead(place).find(|source| self.search(*source, standing, Some(place), &mut seen)))
    }

    /// Whether the step is live or can be reached from a live one.
    pub fn can_come(&self, place: Place, standing: &dyn Standing) -> bool {
        self.search(place, standing, None, &mut vec![false; self.nodes.len()])
    }

    /// Backwards from a step to a live one. Steps that were seen in vain before are not looked at again.
    fn search(&self, from: Place, standing: &dyn Standing, waiting: Option<Place>, seen: &mut [bool]) -> bool {
        let mut todo = vec![from];
        while let Some(place) = todo.pop() {
            if std::mem::replace(&mut seen[place as usize], true) {
                continue;
            }
            if standing.is_live(place) {
                return true;
            }
            let ended = standing.is_ended(place);
            for arc in &self.nodes[place as usize].before {
                let next_round = waiting.zip(arc.back).is_some_and(|(waiting, back)| self.is_part(waiting, back));
                if next_round || (ended && !self.same_knot(arc.source, place)) {
                    continue;
                }
                todo.push(arc.source);
            }
        }
        false
    }

    fn is_part(&self, place: Place, of: LoopId) -> bool {
        let mut at = self.nodes[place as usize].innermost;
        // Inner loops have larger numbers.
        while let Some(id) = at.filter(|id| *id >= of) {
            if id == of {
                return true;
            }
            at = self.parents[id as usize];
        }
        false
    }
}
