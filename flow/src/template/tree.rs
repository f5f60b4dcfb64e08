//! A JSON value with templates in it, compiled.

use serde_json::{Map, Value as Json};

use super::compiled::Template;
use super::{Context, RenderError, Value, Written, from_json, is_template};

/// A JSON value whose texts, names of fields included, may be templates.
#[derive(Debug)]
pub struct Tree(Node);

#[derive(Debug)]
enum Node {
    Constant(Json),
    Template(Template),
    List(Vec<Node>),
    Map(Vec<(Template, Node)>),
}

impl Tree {
    pub fn compile(json: &Json) -> Result<Self, RenderError> {
        compile(json).map(Self)
    }

    pub fn is_constant(&self) -> bool {
        matches!(self.0, Node::Constant(_))
    }

    /// Itself, if there is no template in it.
    pub fn constant(&self) -> Option<&Json> {
        match &self.0 {
            Node::Constant(json) => Some(json),
            _ => None,
        }
    }

    pub fn render(&self, context: &Context) -> Result<Json, RenderError> {
        render(&self.0, context)
    }

    /// The same as a value and its text, if it is what a lone expression gives; nothing for all else.
    pub fn render_lone(&self, context: &Context) -> Result<Option<(Value, Written)>, RenderError> {
        match &self.0 {
            Node::Template(template) => template.render_lone(context),
            _ => Ok(None),
        }
    }

    /// The same, for those who give it to templates again.
    pub fn render_value(&self, context: &Context) -> Result<Value, RenderError> {
        match &self.0 {
            Node::Constant(json) => Ok(from_json(json)),
            Node::Template(template) => template.render(context),
            node => render(node, context).map(|json| from_json(&json)),
        }
    }
}

fn compile(json: &Json) -> Result<Node, RenderError> {
    Ok(match json {
        Json::String(text) if is_template(text) => Node::Template(Template::compile(text)?),
        Json::Array(items) => {
            let nodes = items.iter().map(compile).collect::<Result<Vec<_>, _>>()?;
            if nodes.iter().all(is_constant) { Node::Constant(json.clone()) } else { Node::List(nodes) }
        }
        Json::Object(fields) => {
            let nodes = fields.iter().map(|(name, field)| Ok((Template::compile(name)?, compile(field)?)));
            let nodes = nodes.collect::<Result<Vec<_>, RenderError>>()?;
            let constant = nodes.iter().all(|(name, node)| name.is_plain() && is_constant(node));
            if constant { Node::Constant(json.clone()) } else { Node::Map(nodes) }
        }
        other => Node::Constant(other.clone()),
    })
}

fn is_constant(node: &Node) -> bool {
    matches!(node, Node::Constant(_))
}

fn render(node: &Node, context: &Context) -> Result<Json, RenderError> {
    match node {
        Node::Constant(json) => Ok(json.clone()),
        Node::Template(template) => template.render_json(context),
        Node::List(nodes) => nodes.iter().map(|node| render(node, context)).collect(),
        Node::Map(nodes) => {
            let mut fields = Map::new();
            for (name, node) in nodes {
                fields.insert(name.render_text(context)?, render(node, context)?);
            }
            Ok(Json::Object(fields))
        }
    }
}
