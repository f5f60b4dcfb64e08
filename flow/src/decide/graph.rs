//! The arcs of a playbook as a graph, and who can still come to whom.
//!
//! An arc is a *back edge* when a walk from the first step, along arcs in their order, finds it leading to a step of the
//! walk's own path. Without back edges the graph has no cycles, so steps that wait for each other along forward edges
//! never wait in a circle: that is why a fan-in can be a barrier and still every loop of arcs goes on.
//!
//! Steps that can reach each other form a *knot*. A step that has ended runs again only by an arc from its own knot;
//! every other step runs at most once.

use std::collections::BTreeMap;

use crate::playbook::Playbook;

/// A step by its place in the playbook.
pub type Place = u32;

#[derive(Debug)]
pub struct Graph {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// Targets of the arcs, in their order.
    next: Vec<Place>,
    /// Steps with an arc to this one, once each, in order; true when all of these arcs are back edges.
    before: Vec<(Place, bool)>,
    knot: u32,
    /// The knot has more than this step, or the step has an arc to itself.
    cyclic: bool,
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
        let mut graph = Self { nodes };
        let entry = places.get(playbook.entry.as_str()).copied().unwrap_or(0);
        let (finished, back) = graph.walk(entry);
        graph.connect(&back);
        graph.tie(&finished);
        graph
    }

    /// Steps in the order the walk left them, and the back edges it met.
    fn walk(&self, entry: Place) -> (Vec<Place>, Vec<(Place, Place)>) {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            OnPath,
            Left,
        }
        let count = self.nodes.len() as Place;
        let mut marks = vec![Mark::New; self.nodes.len()];
        let (mut finished, mut back) = (Vec::new(), Vec::new());
        for root in std::iter::once(entry).chain(0..count) {
            if marks.get(root as usize).is_none_or(|mark| *mark != Mark::New) {
                continue;
            }
            marks[root as usize] = Mark::OnPath;
            let mut path = vec![(root, 0)];
            while let Some((place, arc)) = path.last_mut() {
                match self.nodes[*place as usize].next.get(*arc) {
                    Some(&target) => {
                        *arc += 1;
                        match marks[target as usize] {
                            Mark::New => {
                                marks[target as usize] = Mark::OnPath;
                                path.push((target, 0));
                            }
                            Mark::OnPath => back.push((*place, target)),
                            Mark::Left => {}
                        }
                    }
                    None => {
                        marks[*place as usize] = Mark::Left;
                        finished.push(*place);
                        path.pop();
                    }
                }
            }
        }
        (finished, back)
    }

    fn connect(&mut self, back: &[(Place, Place)]) {
        for place in 0..self.nodes.len() as Place {
            for target in self.nodes[place as usize].next.clone() {
                let before = &mut self.nodes[target as usize].before;
                if before.last().is_none_or(|(last, _)| *last != place) {
                    before.push((place, back.contains(&(place, target))));
                }
            }
        }
    }

    /// Finds the knots: backwards along arcs, from the step that was left last.
    fn tie(&mut self, finished: &[Place]) {
        const NONE: u32 = u32::MAX;
        let mut knots = vec![NONE; self.nodes.len()];
        let mut sizes = Vec::new();
        for &root in finished.iter().rev() {
            if knots[root as usize] != NONE {
                continue;
            }
            let knot = sizes.len() as u32;
            sizes.push(0_u32);
            let mut todo = vec![root];
            knots[root as usize] = knot;
            while let Some(place) = todo.pop() {
                sizes[knot as usize] += 1;
                for &(source, _) in &self.nodes[place as usize].before {
                    if knots[source as usize] == NONE {
                        knots[source as usize] = knot;
                        todo.push(source);
                    }
                }
            }
        }
        for (place, node) in self.nodes.iter_mut().enumerate() {
            node.knot = knots[place];
            node.cyclic = sizes[node.knot as usize] > 1 || node.next.contains(&(place as Place));
        }
    }

    pub fn next(&self, place: Place) -> &[Place] {
        &self.nodes[place as usize].next
    }

    /// Whether an arc from one to the other lets a step run again that has ended.
    pub fn same_knot(&self, source: Place, target: Place) -> bool {
        let (source, target) = (&self.nodes[source as usize], &self.nodes[target as usize]);
        source.knot == target.knot && target.cyclic
    }

    /// Whether the step has to be asked about at all: several steps lead to it.
    pub fn is_fan_in(&self, place: Place) -> bool {
        self.nodes[place as usize].before.iter().filter(|(_, back)| !back).nth(1).is_some()
    }

    /// Whether a step that leads to this one by a forward edge is live, or can be reached from a live one by forward
    /// edges. The place itself is not asked about.
    pub fn awaited(&self, place: Place, standing: &dyn Standing) -> Option<Place> {
        let before = || self.nodes[place as usize].before.iter().filter(|(_, back)| !back).map(|(source, _)| *source);
        let mut seen = vec![false; self.nodes.len()];
        before()
            .find(|source| *source != place && standing.is_live(*source))
            .or_else(|| before().find(|source| *source != place && self.search(*source, standing, true, &mut seen)))
    }

    /// Whether the step is live or can be reached from a live one.
    pub fn can_come(&self, place: Place, standing: &dyn Standing) -> bool {
        self.search(place, standing, false, &mut vec![false; self.nodes.len()])
    }

    /// Backwards from a step to a live one. Steps that were seen in vain before are not looked at again.
    fn search(&self, place: Place, standing: &dyn Standing, forward: bool, seen: &mut [bool]) -> bool {
        let mut todo = vec![place];
        while let Some(place) = todo.pop() {
            if std::mem::replace(&mut seen[place as usize], true) {
                continue;
            }
            if standing.is_live(place) {
                return true;
            }
            let ended = standing.is_ended(place);
            for &(source, back) in &self.nodes[place as usize].before {
                if (forward && back) || (ended && !self.same_knot(source, place)) {
                    continue;
                }
                todo.push(source);
            }
        }
        false
    }
}
