//! Every key of a playbook: what stands under it, and what it is for.
//!
//! Descriptions are read by people, in editors and in messages about keys that are missing.

use super::shape::Status::{Optional, Refused, Required, Unused};
use super::shape::{Key, Object, Others, Shape};

/// Kinds of tools that come with the system or are well known; others are whatever the catalog has.
pub(super) const KINDS: &[&str] = &[
    "artifact",
    "container",
    "duckdb",
    "ducklake",
    "http",
    "mcp",
    "nats",
    "noop",
    "park",
    "playbook",
    "postgres",
    "python",
    "rhai",
    "script",
    "shell",
    "snowflake",
    "subscription",
    "transfer",
    "wasm",
    "workbook",
];

pub(super) const MODES: &[&str] = &["exclusive", "inclusive"];
pub(super) const ACTIONS: &[&str] = &["continue", "retry", "jump", "break", "fail"];
pub(super) const BACKOFFS: &[&str] = &["none", "fixed", "linear", "exponential"];

const fn key(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, shape, about, status: Optional }
}

const fn required(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, shape, about, status: Required }
}

const fn unused(name: &'static str, instead: &'static str) -> Key {
    Key { name, shape: Shape::Any, about: instead, status: Unused(instead) }
}

const fn refused(name: &'static str, instead: &'static str) -> Key {
    Key { name, shape: Shape::Any, about: instead, status: Refused(instead) }
}

pub(super) static PLAYBOOK: Object = Object {
    name: "playbook",
    about: "Steps that run durably.",
    keys: &[
        required("apiVersion", Shape::Choice(&["noetl.io/v2"]), "the version of the language, `noetl.io/v2`"),
        required("kind", Shape::Choice(&["Playbook"]), "`Playbook`"),
        required("metadata", Shape::Object(&METADATA), "what the playbook is called and where it is kept"),
        key("workload", Shape::Map, "Variables and their defaults; the payload of a request overrides them."),
        required("workflow", Shape::List(&Shape::Object(&STEP)), "the list of steps"),
        key("workbook", Shape::List(&Shape::Object(&WORKBOOK_TASK)), "Tools that steps refer to by name."),
        key(
            "keychain",
            Shape::List(&Shape::Map),
            "Names for credentials, for templates to use: `{name, credential, map}`.",
        ),
        key("executor", Shape::Object(&EXECUTOR), "How the playbook as a whole is run."),
        key("schedule", Shape::Object(&SCHEDULE), "When the playbook is run by itself."),
        unused("vars", "put variables into `workload`"),
        unused("spec", "a playbook's settings are in `executor.spec`"),
        unused("tracing", "tracing is set up on the server"),
    ],
    others: Others::Unknown,
};

static METADATA: Object = Object {
    name: "metadata",
    about: "What the playbook is called and where it is kept.",
    keys: &[
        required("name", Shape::Text, "what the playbook is called"),
        key("path", Shape::Text, "Where the catalog keeps it; the name if left out."),
        key("description", Shape::Text, "What it is for."),
        key("labels", Shape::Map, "Words to find it by."),
        key("tags", Shape::OneOf(&[Shape::List(&Shape::Word), Shape::Word]), "Words to find it by."),
        key("version", Shape::Word, "For people; the catalog counts versions itself."),
    ],
    others: Others::Kept,
};

static EXECUTOR: Object = Object {
    name: "executor",
    about: "How the playbook as a whole is run.",
    keys: &[
        key("profile", Shape::Text, "Where it is meant to run: `auto`, `local`, `distributed`."),
        key("version", Shape::Word, "The runtime it was written for."),
        key("requires", Shape::Object(&REQUIRES), "What it cannot do without."),
        key("runtime", Shape::Choice(&["wasm"]), "`wasm`: steps without a tool are calls of `plugin`."),
        key("plugin", Shape::OneOf(&[Shape::Text, Shape::Object(&PLUGIN)]), "The plugin, by its path."),
        key("spec", Shape::Object(&EXECUTOR_SPEC), "Settings of the whole playbook."),
    ],
    others: Others::Unknown,
};

static REQUIRES: Object = Object {
    name: "requires",
    about: "What the playbook cannot do without.",
    keys: &[
        key("tools", Shape::List(&Shape::Text), "Kinds of tools."),
        key("features", Shape::List(&Shape::Text), "Features of the server."),
    ],
    others: Others::Unknown,
};

pub(super) static PLUGIN: Object = Object {
    name: "plugin",
    about: "A plugin of the catalog.",
    keys: &[
        required("path", Shape::Text, "where the catalog keeps the plugin"),
        key("version", Shape::Word, "The newest if left out."),
        key("capabilities", Shape::List(&Shape::Text), "What it may hold at most; all it was granted if left out."),
    ],
    others: Others::Unknown,
};

static EXECUTOR_SPEC: Object = Object {
    name: "executor_spec",
    about: "Settings of the whole playbook.",
    keys: &[
        key("entry_step", Shape::Text, "The first step, `start` if left out."),
        key("no_next_is_error", Shape::Bool, "A step of whose arcs none matches fails the execution."),
        key("timeout", Shape::Duration, "For the whole execution."),
        key("policy", Shape::Object(&EXECUTOR_POLICY), "What failures do."),
    ],
    others: Others::Unknown,
};

static EXECUTOR_POLICY: Object = Object {
    name: "executor_policy",
    about: "What failures do.",
    keys: &[
        key(
            "failures",
            Shape::Choice(&["lenient", "strict"]),
            "Whether a failed step that nothing handles fails the execution (`strict`) or is gone on from (`lenient`).",
        ),
        unused("defaults", "set `timeout` where it is wanted"),
        unused("results", "results are kept by reference when they are large"),
    ],
    others: Others::Unknown,
};

static SCHEDULE: Object = Object {
    name: "schedule",
    about: "When the playbook is run by itself.",
    keys: &[
        required("cron", Shape::Text, "five fields (minute to day of the week), or six with seconds first"),
        key("timezone", Shape::Text, "Such as `Europe/Berlin`; UTC if left out."),
        key("missed", Shape::Choice(&["run_once", "run_all", "skip"]), "What becomes of times that passed unserved."),
        key("payload", Shape::Map, "The payload of each run."),
    ],
    others: Others::Unknown,
};

static WORKBOOK_TASK: Object = Object {
    name: "workbook_task",
    about: "A tool that steps refer to by name.",
    keys: &[
        required("name", Shape::Text, "what steps call it by"),
        required("tool", Shape::Object(&TOOL), "the tool itself"),
        key("desc", Shape::Text, "What it does."),
        key("assert", Shape::Any, "What it expects and returns, for readers."),
        unused("sink", "save results with a tool of their own"),
    ],
    others: Others::Unknown,
};

static STEP: Object = Object {
    name: "step",
    about: "A step: one tool or a pipeline of tools, and what comes next.",
    keys: &[
        required("step", Shape::Text, "the name of the step"),
        key("desc", Shape::Text, "What it does."),
        key("description", Shape::Text, "What it does."),
        key("when", Shape::Guard, "If false, the step is skipped."),
        key(
            "tool",
            Shape::OneOf(&[Shape::Object(&TOOL), Shape::List(&Shape::Task(&TOOL))]),
            "One tool, or a list of tools that run one after the other. `kind: noop` does nothing.",
        ),
        key("input", INPUT, "Merged into the input of each tool, which wins."),
        key("args", INPUT, "Older word for `input`, for tools that have none."),
        key("loop", Shape::Object(&LOOP), "Run the step for each item."),
        key("set", Shape::Map, "Variables written when the step is done; `output` is its result."),
        key("output", Shape::Object(&OUTPUT), "What is kept of the result."),
        key("spec", Shape::Object(&STEP_SPEC), "Settings of the step."),
        key(
            "next",
            Shape::OneOf(&[
                Shape::Object(&NEXT),
                Shape::Text,
                Shape::List(&Shape::OneOf(&[Shape::Text, Shape::Object(&TARGET)])),
            ]),
            "Where to go on. A step without it ends its path.",
        ),
        unused("vars", "write variables with `set`"),
        refused("case", "write guards on the arcs of `next`"),
    ],
    others: Others::Unknown,
};

static OUTPUT: Object = Object {
    name: "output",
    about: "What is kept of the result.",
    keys: &[
        key(
            "output_select",
            Shape::List(&Shape::Text),
            "Fields kept at hand when the result is large; it has a `_ref` in any case.",
        ),
        key("store", Shape::Any, "The result has a `_ref`, however small it is. Where it is kept is up to the server."),
    ],
    others: Others::Unknown,
};

static STEP_SPEC: Object = Object {
    name: "step_spec",
    about: "Settings of the step.",
    keys: &[
        key("timeout", Shape::Duration, "For each run of the step's tools, retries included."),
        key("on_error", Shape::Choice(&["fail", "continue"]), "What the step's failure does to the execution."),
        key("next_mode", Shape::Choice(MODES), "Older place of `next.spec.mode`."),
        key("policy", Shape::Object(&STEP_POLICY), "Whether the step may run."),
    ],
    others: Others::Unknown,
};

static STEP_POLICY: Object = Object {
    name: "step_policy",
    about: "Whether the step may run.",
    keys: &[key("admit", Shape::Object(&ADMIT), "Rules, of which the first that holds decides.")],
    others: Others::Unknown,
};

static ADMIT: Object = Object {
    name: "admit",
    about: "Whether the step may run.",
    keys: &[
        key("mode", Shape::Choice(&["exclusive"]), "The first rule that holds decides."),
        required("rules", Shape::List(&Shape::Object(&ADMIT_RULE)), "a list of `{when, then: {allow}}`"),
    ],
    others: Others::Unknown,
};

static ADMIT_RULE: Object = Object {
    name: "admit_rule",
    about: "Whether the step may run, under a condition.",
    keys: &[
        key("when", Shape::Guard, "The condition."),
        key("then", Shape::Object(&ALLOW), "What follows from it."),
        key("else", Shape::Object(&ADMIT_ELSE), "What follows when no rule before this one holds."),
    ],
    others: Others::Unknown,
};

static ADMIT_ELSE: Object = Object {
    name: "admit_else",
    about: "What follows when no rule before this one holds.",
    keys: &[
        key("then", Shape::Object(&ALLOW), "What follows."),
        key("allow", Shape::Bool, "Whether the step runs or is skipped."),
    ],
    others: Others::Unknown,
};

static ALLOW: Object = Object {
    name: "allow",
    about: "Whether the step may run.",
    keys: &[required("allow", Shape::Bool, "whether the step runs or is skipped")],
    others: Others::Unknown,
};

static NEXT: Object = Object {
    name: "next",
    about: "Where to go on.",
    keys: &[
        key("spec", Shape::Object(&NEXT_SPEC), "How arcs are chosen."),
        key("arcs", Shape::List(&Shape::Object(&ARC)), "The list of arcs; without one the path ends."),
    ],
    others: Others::Unknown,
};

static NEXT_SPEC: Object = Object {
    name: "next_spec",
    about: "How arcs are chosen.",
    keys: &[
        key("mode", Shape::Choice(MODES), "The first arc that matches (`exclusive`, the default), or all that do."),
        key(
            "on_no_match",
            Shape::Choice(&["end", "quiet", "fail"]),
            "When no arc matches: the path ends (`end`; `quiet` is an older word), or the execution fails (`fail`).",
        ),
    ],
    others: Others::Unknown,
};

static ARC: Object = Object {
    name: "arc",
    about: "A way to another step.",
    keys: &[
        required("step", Shape::Text, "the step it leads to"),
        key("when", Shape::Guard, "Whether it is open; always if left out."),
        key("set", Shape::Map, "Variables written when it is taken."),
        key("desc", Shape::Text, "What it is for."),
        unused("args", "write variables with `set`"),
        unused("cond", "write the condition as `when`"),
    ],
    others: Others::Unknown,
};

static TARGET: Object = Object {
    name: "target",
    about: "A way to another step, in the older form of a plain list.",
    keys: &[
        required("step", Shape::Text, "the step it leads to"),
        key("when", Shape::Guard, "Whether it is open; always if left out."),
        key("set", Shape::Map, "Variables written when it is taken."),
        key("args", Shape::Map, "Older word for `set`."),
    ],
    others: Others::Unknown,
};

static LOOP: Object = Object {
    name: "loop",
    about: "Run the step for each item.",
    keys: &[
        key("in", Shape::Any, "The items: a list, or a template that gives one."),
        required("iterator", Shape::Text, "the variable an item is bound to, also as `iter.<name>`"),
        key("cursor", Shape::Object(&CURSOR), "A query that hands out items until there are none."),
        key("spec", Shape::Object(&LOOP_SPEC), "How the items are gone through."),
    ],
    others: Others::Unknown,
};

static CURSOR: Object = Object {
    name: "cursor",
    about: "A tool that hands out items until there are none; its other keys are the tool's.",
    keys: &[
        required("kind", Shape::Text, "which tool hands out items, such as `postgres`"),
        key("claim", Shape::Text, "The command that claims up to `__frame_max_rows` items and returns them."),
    ],
    others: Others::Kept,
};

static LOOP_SPEC: Object = Object {
    name: "loop_spec",
    about: "How the items are gone through.",
    keys: &[
        key("mode", Shape::Choice(&["sequential", "parallel", "cursor"]), "One after the other if left out."),
        key(
            "max_in_flight",
            Shape::OneOf(&[Shape::Count, Shape::Template, Shape::Digits]),
            "How many iterations run at once.",
        ),
        key("frame", Shape::Object(&FRAME), "How a cursor hands out items."),
        unused("policy", "results are always in the order of the items"),
    ],
    others: Others::Unknown,
};

static FRAME: Object = Object {
    name: "frame",
    about: "How a cursor hands out items.",
    keys: &[
        key("max_rows", Shape::Count, "How many items a claim asks for; 1 if left out."),
        key("row_concurrency", Shape::Count, "How many of them run at once; 1 if left out."),
        unused("max_seconds", "bound the claim with `max_rows`"),
        unused("max_bytes", "bound the claim with `max_rows`"),
        unused("lease_seconds", "let the claim take back what was claimed too long ago"),
        unused("heartbeat_seconds", "let the claim take back what was claimed too long ago"),
        unused("process", "each row is one iteration"),
    ],
    others: Others::Unknown,
};

pub(super) static TOOL: Object = Object {
    name: "tool",
    about: "A call of a tool; keys that are not listed here are the tool's own.",
    keys: &[
        required("kind", Shape::Text, "which tool to call, such as `http` or `python`"),
        key("name", Shape::Text, "The tool's label in a pipeline, under which later tools find its result."),
        key("input", INPUT, "Values for the tool, which are also variables of its templates."),
        key("args", Shape::Any, "Older word for `input`."),
        key("set", Shape::Map, "Variables written after the tool; `output` is its result."),
        key("timeout", TIME, "For each call."),
        key("timeout_seconds", TIME, "For each call."),
        key("spec", Shape::Object(&TOOL_SPEC), "What to do after the call."),
        unused("eval", "write rules in `spec.policy.rules`"),
    ],
    others: Others::Kept,
};

/// A map, or an expression that gives one.
const INPUT: Shape = Shape::OneOf(&[Shape::Map, Shape::Template]);

const TIME: Shape = Shape::OneOf(&[Shape::Duration, Shape::Template]);

static TOOL_SPEC: Object = Object {
    name: "tool_spec",
    about: "What to do after the call; other keys count as the tool's own.",
    keys: &[
        key("policy", Shape::Object(&TOOL_POLICY), "What to do after the call."),
        key("timeout", TIME, "For each call."),
        key("retry_safe", Shape::Bool, "Whether the call may be made again when its outcome was lost in a crash."),
        key("input", INPUT, "Older place of the tool's `input`."),
    ],
    others: Others::KeptUnlessSimilar,
};

static TOOL_POLICY: Object = Object {
    name: "tool_policy",
    about: "What to do after the call.",
    keys: &[key("rules", Shape::List(&Shape::Object(&RULE)), "Rules, of which the first that holds decides.")],
    others: Others::Unknown,
};

/// The keys of what a rule does, with further ones before them.
macro_rules! consequence_keys {
    ($($first:expr),*) => {
        &[
            $($first,)*
            key("do", Shape::Choice(ACTIONS), "If left out: go on after a success, fail after an error."),
            key("attempts", Shape::Count, "`retry`: how often the tool is called in all; 3 if left out."),
            key("backoff", Shape::Choice(BACKOFFS), "`retry`: how the delay grows; `fixed` if only `delay` is given."),
            key(
                "delay",
                TIME,
                "`retry`: before the second attempt; 1 second if left out. A server's `Retry-After` is waited for too.",
            ),
            key("max_delay", Shape::Duration, "`retry`: no delay is longer; 1 hour if left out."),
            key("jitter", Shape::Fraction, "`retry`: how much of the delay is left to chance; 0 if left out."),
            key("to", Shape::Text, "`jump`: the label of a tool, or `previous`."),
            key("set", Shape::Map, "Variables written before that; `output` is the envelope of the result."),
        ]
    };
}

static RULE: Object = Object {
    name: "rule",
    about: "What to do after a call, under a condition.",
    keys: consequence_keys![
        key("when", Shape::Guard, "The condition, over `output` and `_attempt`."),
        key("then", Shape::Object(&THEN), "What to do if it holds."),
        key("else", Shape::Object(&ELSE), "What to do when no rule before this one holds.")
    ],
    others: Others::Unknown,
};

static THEN: Object = Object { name: "then", about: "What to do.", keys: consequence_keys![], others: Others::Unknown };

static ELSE: Object = Object {
    name: "else",
    about: "What to do when no rule before this one holds.",
    keys: consequence_keys![key("then", Shape::Object(&THEN), "What to do.")],
    others: Others::Unknown,
};
