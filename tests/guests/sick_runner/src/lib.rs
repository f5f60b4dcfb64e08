//! A runner that goes wrong at every turn, in the way its feature names: `trap` panics, `hang` never ends, `short`
//! leaves one answer out, and without a feature every command is done at once with a report that is no JSON.

use std::hint::black_box;

use noetl_sdk::engine::runner::running;
use running::{Action, Done, Next, Turn};

struct Service;

noetl_sdk::runner!(Service);

impl running::Guest for Service {
    fn advance(turns: Vec<Turn>) -> Vec<Next> {
        if cfg!(feature = "trap") {
            panic!("this runner panics at every turn");
        }
        if cfg!(feature = "hang") {
            loop {
                black_box(());
            }
        }
        let answered = turns.len().saturating_sub(usize::from(cfg!(feature = "short")));
        (0..answered).map(|_| garbage()).collect()
    }
}

fn garbage() -> Next {
    let done = Done { report: b"this is no report".to_vec(), bulk: None };
    Next { action: Action::Done(done), continuation: Vec::new() }
}
