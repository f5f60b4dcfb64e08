//! Text to values that know where they were written.
//!
//! A playbook is YAML 1.2 with the core schema. Keys are text and in the order they were written. The document has to
//! be one, below [`LARGEST`], not deeper than [`DEEPEST`], and what its aliases stand for counts as if it were written
//! out, up to [`HEAVIEST`], so that a small text cannot become a large value. Duplicate keys are errors: one of the two
//! would silently win.
//!
//! A text that is not YAML gives one problem, since nothing after it can be read.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, StrInput, Tag};
use serde_json::{Map, Value as Json};

use super::problem::{Place, Problems};
use super::scalar;

/// The most bytes of a document.
pub const LARGEST: usize = 4 << 20;
/// The most levels of nesting.
pub const DEEPEST: usize = 96;
/// The most of text and values, aliases written out.
pub const HEAVIEST: usize = 64 << 20;
/// What a value weighs besides its text.
const VALUE_WEIGHT: usize = 32;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub place: Place,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Scalar(Json),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key {
    pub place: Place,
    pub name: String,
}

impl Node {
    /// The value of a key, if this is a map that has it and it is not null.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.entries().iter().find(|(key, _)| key.name == name).map(|(_, value)| value).filter(|value| !value.is_null())
    }

    pub fn has(&self, name: &str) -> bool {
        self.entries().iter().any(|(key, _)| key.name == name)
    }

    /// Nothing for anything but a map.
    pub fn entries(&self) -> &[(Key, Node)] {
        match &self.value {
            Value::Map(entries) => entries,
            Value::Scalar(_) | Value::List(_) => &[],
        }
    }

    /// Nothing for anything but a list.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            Value::Scalar(_) | Value::Map(_) => &[],
        }
    }

    pub fn text(&self) -> Option<&str> {
        self.scalar().and_then(Json::as_str)
    }

    pub fn scalar(&self) -> Option<&Json> {
        match &self.value {
            Value::Scalar(scalar) => Some(scalar),
            Value::List(_) | Value::Map(_) => None,
        }
    }

    pub fn is_null(&self) -> bool {
        self.value == Value::Scalar(Json::Null)
    }

    pub fn is_map(&self) -> bool {
        matches!(self.value, Value::Map(_))
    }

    pub fn json(&self) -> Json {
        match &self.value {
            Value::Scalar(scalar) => scalar.clone(),
            Value::List(items) => Json::Array(items.iter().map(Node::json).collect()),
            Value::Map(_) => Json::Object(self.json_map()),
        }
    }

    /// Empty for anything but a map.
    pub fn json_map(&self) -> Map<String, Json> {
        self.entries().iter().map(|(key, value)| (key.name.clone(), value.json())).collect()
    }

    /// How much memory it takes, roughly.
    pub fn weight(&self) -> usize {
        VALUE_WEIGHT
            + match &self.value {
                Value::Scalar(Json::String(text)) => text.len(),
                Value::Scalar(_) => 0,
                Value::List(items) => items.iter().map(Node::weight).sum(),
                Value::Map(entries) => entries.iter().map(|(key, value)| key.name.len() + value.weight()).sum(),
            }
    }
}

/// The document, or nothing and a problem.
pub(super) fn read(text: &str, problems: &mut Problems) -> Option<Node> {
    if text.len() > LARGEST {
        let size = text.len();
        problems
            .error(Place::default(), format!("the document has {size} bytes, more than {LARGEST}; make it smaller"));
        return None;
    }
    if let Some(place) = find_control(text) {
        problems.error(place, "a control character is not allowed here; write it as an escape in double quotes");
        return None;
    }
    let mut reader =
        Reader { parser: Parser::new_from_str(text), problems, anchors: BTreeMap::new(), ids: 0, weight: 0 };
    match reader.document() {
        Ok(node) => Some(node),
        Err(Stop { place, message }) => {
            problems.error(place, message);
            None
        }
    }
}

/// Where a character is that YAML does not allow, unescaped. The parser would take NUL for the end of the text.
fn find_control(text: &str) -> Option<Place> {
    let is_bad = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\r' | '\t' | '\u{85}');
    let offset = text.find(is_bad)?;
    let before = &text[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Some(Place { id: 0, line: narrow(line), column: narrow(column) })
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Why reading cannot go on.
struct Stop {
    place: Place,
    message: String,
}

struct Reader<'text, 'problems> {
    parser: Parser<'text, StrInput<'text>>,
    problems: &'problems mut Problems,
    anchors: BTreeMap<usize, Node>,
    ids: u32,
    weight: usize,
}

impl<'text> Reader<'text, '_> {
    fn document(&mut self) -> Result<Node, Stop> {
        loop {
            let (event, place) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
                Event::StreamEnd => {
                    return Err(Stop { place: Place::default(), message: "the document is empty".to_owned() });
                }
                event => {
                    let node = self.node(event, place, 0)?;
                    self.end()?;
                    return Ok(node);
                }
            }
        }
    }

    /// Nothing may follow the document.
    fn end(&mut self) -> Result<(), Stop> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(()),
                (Event::DocumentStart(_), place) => {
                    let message = "a second document begins here; put each playbook into a file of its own".to_owned();
                    return Err(Stop { place, message });
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'text>, Place), Stop> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                let place = self.place(&span.start);
                Ok((event, place))
            }
            Some(Err(error)) => {
                let place = self.place(error.marker());
                Err(Stop { place, message: format!("not YAML: {}", error.info()) })
            }
            None => Ok((Event::StreamEnd, Place::default())),
        }
    }

    fn place(&mut self, marker: &Marker) -> Place {
        self.ids += 1;
        Place { id: self.ids, line: narrow(marker.line()), column: narrow(marker.col() + 1) }
    }

    fn node(&mut self, event: Event<'text>, place: Place, depth: usize) -> Result<Node, Stop> {
        if depth > DEEPEST {
            return Err(Stop { place, message: format!("nested deeper than {DEEPEST} levels") });
        }
        let (anchor, value) = match event {
            Event::Alias(anchor) => return self.alias(anchor, place),
            Event::Scalar(text, style, anchor, tag) => {
                self.charge(VALUE_WEIGHT + text.len(), place)?;
                (anchor, Value::Scalar(self.scalar(&text, style, tag.as_deref(), place)))
            }
            Event::SequenceStart(anchor, _) => {
                self.charge(VALUE_WEIGHT, place)?;
                (anchor, self.list(depth)?)
            }
            Event::MappingStart(anchor, _) => {
                self.charge(VALUE_WEIGHT, place)?;
                (anchor, self.map(depth)?)
            }
            _ => return Err(Stop { place, message: "not YAML: a value is missing here".to_owned() }),
        };
        let node = Node { place, value };
        if anchor != 0 {
            self.charge(node.weight(), place)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn alias(&mut self, anchor: usize, place: Place) -> Result<Node, Stop> {
        // An anchor is only known once its value is complete.
        let Some(weight) = self.anchors.get(&anchor).map(Node::weight) else {
            return Err(Stop { place, message: "the alias stands for a value that contains it".to_owned() });
        };
        self.charge(weight, place)?;
        let mut node = self.anchors[&anchor].clone();
        self.number_anew(&mut node);
        Ok(node)
    }

    /// Each copy of an aliased value has a path of its own; line and column stay those of the text.
    fn number_anew(&mut self, node: &mut Node) {
        self.ids += 1;
        node.place.id = self.ids;
        match &mut node.value {
            Value::Scalar(_) => {}
            Value::List(items) => items.iter_mut().for_each(|item| self.number_anew(item)),
            Value::Map(entries) => {
                for (key, value) in entries {
                    self.ids += 1;
                    key.place.id = self.ids;
                    self.number_anew(value);
                }
            }
        }
    }

    fn charge(&mut self, weight: usize, place: Place) -> Result<(), Stop> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight > HEAVIEST {
            return Err(Stop { place, message: "the document is too large, with its aliases written out".to_owned() });
        }
        Ok(())
    }

    fn list(&mut self, depth: usize) -> Result<Value, Stop> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(items)),
                (event, place) => items.push(self.node(event, place, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Stop> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut known: BTreeMap<String, Place> = BTreeMap::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Value::Map(entries)),
                (event, place) => self.node(event, place, depth + 1)?,
            };
            let place = key.place;
            let name = match key.value {
                Value::Scalar(Json::String(name)) => name,
                Value::Scalar(other) => other.to_string(),
                Value::List(_) | Value::Map(_) => {
                    return Err(Stop { place, message: "a key has to be text".to_owned() });
                }
            };
            if name == "<<" {
                self.problems.error(place, "merge keys (`<<`) are not part of YAML 1.2; write the keys out");
            }
            let (event, value_place) = self.next()?;
            let value = self.node(event, value_place, depth + 1)?;
            if let Some(first) = known.get(&name) {
                // It is dropped, but its path is that of the first.
                let place = Place { id: first.id, ..place };
                let line = first.line;
                self.problems.error(place, format!("duplicate key `{name}`; it is already on line {line}"));
                continue;
            }
            known.insert(name.clone(), place);
            entries.push((Key { place, name }, value));
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, place: Place) -> Json {
        if let Some(tag) = tag {
            if tag.is_yaml_core_schema() && tag.suffix == "str" || tag.handle.is_empty() && tag.suffix == "!" {
                return text.into();
            }
            if !tag.is_yaml_core_schema() {
                self.problems.warning(place, format!("the tag `{tag}` is ignored"));
            }
        }
        if style != ScalarStyle::Plain {
            return text.into();
        }
        let (value, why) = scalar::resolve(text);
        if let Some(why) = why {
            self.problems.warning(place, format!("`{text}` {why}"));
        }
        value
    }
}
