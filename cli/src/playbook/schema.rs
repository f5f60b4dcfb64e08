//! `noetl schema`: JSON schemas for editors.

use clap::{Args, ValueEnum};
use noetl_contract::description::Description;
use noetl_contract::manifest::docs;

use crate::args::Context;
use crate::failure::Outcome;
use crate::tool::known;

const EXAMPLES: &str = "\
Examples:
  noetl schema playbook > playbook.schema.json
  # then, as the first line of a playbook, for editors with the YAML language server:
  # yaml-language-server: $schema=playbook.schema.json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Schema {
    /// What the schema is of.
    what: What,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// A playbook.
    Playbook,
    /// The plugin.toml of a plugin.
    Plugin,
    /// What a tool says about itself.
    Description,
}

impl Schema {
    pub fn run(self, context: &Context) -> Outcome {
        context.output.value(&match self.what {
            What::Playbook => noetl_flow::playbook::schema_with(&known::properties()),
            What::Plugin => docs::json_schema(),
            What::Description => Description::document_schema(),
        });
        Ok(())
    }
}
