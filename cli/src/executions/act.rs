//! `noetl cancel`, `noetl resume`, `noetl retry`: what a person does to an execution.

use clap::Args;
use noetl_dispatch::engine::ExecutionId;
use serde_json::{Value, json};

use super::at;
use crate::args::Context;
use crate::failure::Outcome;
use crate::given;
use crate::output::cell;

const CANCEL_EXAMPLES: &str = "\
Examples:
  noetl cancel 338955219312345088 --reason 'wrong day'

Steps that run are told to stop and nothing new begins; children are cancelled too.";

#[derive(Debug, Args)]
#[command(after_help = CANCEL_EXAMPLES)]
pub struct Cancel {
    /// The execution.
    id: ExecutionId,
    /// Why, for whoever asks later.
    #[arg(long, default_value = "")]
    reason: String,
}

impl Cancel {
    pub async fn run(self, context: &Context) -> Outcome {
        let path = format!("{}/cancel", at(self.id));
        let answer = context.client()?.post(&path, &json!({ "reason": self.reason })).await?;
        context.output.result(&answer, |_| format!("execution {} is being cancelled", self.id));
        Ok(())
    }
}

const RESUME_EXAMPLES: &str = "\
Examples:
  noetl resume 338955219312345088 approve --value '{\"approved\": true}'
  noetl why 338955219312345088       # tells which steps are parked and what they ask";

#[derive(Debug, Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub struct Resume {
    /// The execution.
    id: ExecutionId,
    /// The parked step.
    step: String,
    /// What the step's result will be: JSON, `@FILE` or `-` [default: null].
    #[arg(long, value_name = "JSON|@FILE|-")]
    value: Option<String>,
}

impl Resume {
    pub async fn run(self, context: &Context) -> Outcome {
        let value = self.value.as_deref().map_or(Ok(Value::Null), |text| given::json("--value", text))?;
        let body = json!({ "step": self.step, "value": value });
        let answer = context.client()?.post(&format!("{}/resume", at(self.id)), &body).await?;
        context.output.result(&answer, |_| format!("step `{}` goes on", self.step));
        Ok(())
    }
}

const RETRY_EXAMPLES: &str = "\
Examples:
  noetl retry 338955219312345088
  noetl retry 338955219312345088 --step load

A new execution takes over what was finished and runs the failed step again. Results that were recorded are not
made anew.";

#[derive(Debug, Args)]
#[command(after_help = RETRY_EXAMPLES)]
pub struct Retry {
    /// The execution that failed.
    id: ExecutionId,
    /// The step to begin with [default: the one that failed].
    #[arg(long)]
    step: Option<String>,
}

impl Retry {
    pub async fn run(self, context: &Context) -> Outcome {
        let answer = context.client()?.post(&format!("{}/retry", at(self.id)), &json!({ "step": self.step })).await?;
        let id = cell(&answer["execution_id"]);
        if !context.output.json {
            context.output.say(format_args!("execution {id} takes over from {}", self.id));
        }
        context.output.result(&answer, |_| id);
        Ok(())
    }
}
