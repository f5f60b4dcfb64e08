//! A run held against its oracle: everything that is not as it has to be.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use super::follow::Run;
use super::oracle::{HttpCheck, Oracle};
use super::stage::World;
use super::{pft, psql};
use crate::Api;

pub(super) async fn problems(
    oracle: &Oracle,
    run: &Run,
    (world, api): (&World, &Api),
    payload: &Map<String, Json>,
) -> Vec<String> {
    let mut problems = Vec::new();
    if run.status != oracle.status {
        problems.push(match run.why.as_str() {
            "" => format!("ended as {} and not {}", run.status, oracle.status),
            why => why.to_owned(),
        });
        return problems;
    }
    problems.extend(failed_steps(oracle, run));
    problems.extend(order(oracle, run));
    for wanted in &oracle.events {
        let found = run.of_type(&wanted.event, wanted.step.as_deref()).count();
        if found != wanted.count {
            let step = wanted.step.as_deref().unwrap_or("all steps");
            problems.push(format!("{} of {step}: {found} and not {}", wanted.event, wanted.count));
        }
    }
    for check in &oracle.outputs {
        let found = run.output(&check.step, check.iteration).and_then(|output| output.pointer(&check.at));
        let problem = check.wish.problem(found.unwrap_or(&Json::Null));
        problems.extend(problem.map(|problem| format!("{}{} {problem}", check.step, check.at)));
    }
    for check in &oracle.sql {
        let query = check.query.replace("{execution}", &run.execution);
        match psql::ask(&world.postgres, &query) {
            Ok(rows) => {
                // What looks like a number is one.
                let found = rows.parse::<f64>().map_or_else(|_| Json::from(rows.as_str()), Json::from);
                problems.extend(check.wish.problem(&found).map(|problem| format!("`{query}` {problem}")));
            }
            Err(error) => problems.push(format!("`{query}`: {error}")),
        }
    }
    for check in &oracle.http {
        problems.extend(http(check, world).await);
    }
    if let Some(wanted) = oracle.children {
        let path = format!("/api/executions?parent={}&consistency=strong", run.execution);
        let found = api.get(&path).await.json()["executions"].as_array().map_or(0, Vec::len);
        if found != wanted {
            problems.push(format!("{found} playbooks were started and not {wanted}"));
        }
    }
    if oracle.patients {
        let counts = pft::counts(world, pft::patients(payload));
        problems.extend(counts.into_iter().filter_map(|count| count.problem()));
    }
    problems
}

fn failed_steps(oracle: &Oracle, run: &Run) -> Option<String> {
    let wanted = oracle.failed_steps.as_ref()?;
    let last = run.events.last()?;
    let listed = last["meta"]["failed_steps"].as_array().cloned().unwrap_or_default();
    let found: Vec<&str> = listed.iter().filter_map(Json::as_str).collect();
    (found != *wanted).then(|| format!("failed steps are {found:?} and not {wanted:?}"))
}

fn order(oracle: &Oracle, run: &Run) -> Option<String> {
    let types: BTreeSet<&str> = oracle.order.iter().filter_map(|line| line.split(' ').next()).collect();
    let told = run.events.iter().filter_map(|event| {
        let kind = event["event_type"].as_str().filter(|kind| types.contains(kind))?;
        Some(format!("{kind} {}", event["node_name"].as_str().unwrap_or_default()))
    });
    let told: Vec<String> = told.collect();
    if oracle.order.is_empty() || told == oracle.order {
        return None;
    }
    let at = told.iter().zip(&oracle.order).take_while(|(found, wanted)| found == wanted).count();
    let name = |list: &[String]| list.get(at).map_or("the end", String::as_str).to_owned();
    Some(format!("event {}: {} and not {}", at + 1, name(&told), name(&oracle.order)))
}

async fn http(check: &HttpCheck, world: &World) -> Option<String> {
    let (what, found) = match (&check.requests, &check.get) {
        (Some(requests), _) => (requests.clone(), Json::from(world.http.count(requests))),
        (None, Some(path)) => {
            let answer = Api::new(&world.http.url, None).get(path).await.json();
            (format!("{path}{}", check.at), answer.pointer(&check.at).cloned().unwrap_or_default())
        }
        (None, None) => return Some("a check of the HTTP server names `get` or `requests`".to_owned()),
    };
    check.wish.problem(&found).map(|problem| format!("{what} {problem}"))
}
